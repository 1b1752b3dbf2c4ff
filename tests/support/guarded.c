/* guarded.c: whole pages for the copy, pushed to their end, and one page behind them that nobody may touch. */
#include "support/guarded.h"

#include <sys/mman.h>
#include <unistd.h>

#include "base/must.h"

struct str guarded_str(struct str bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t room = (bytes.len + page - 1) / page * page;
    char *start = mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(start != MAP_FAILED);
    must(mprotect(start + room, page, PROT_NONE) == 0);
    if (bytes.len > 0)
        memcpy(start + room - bytes.len, bytes.data, bytes.len);
    return str_make(start + room - bytes.len, bytes.len);
}

struct str guarded(const char *text)
{
    return guarded_str(str_of(text));
}
