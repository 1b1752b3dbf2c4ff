/* guarded.c: whole pages for the copy, pushed to their end, and one page behind them that nobody may touch. */
#include "support/guarded.h"

#include <sys/mman.h>
#include <unistd.h>

#include "base/must.h"

/* The end of room for so many bytes, or a few more. */
static char *guarded_end(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t room = (bytes + page - 1) / page * page;
    char *start = mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(start != MAP_FAILED);
    must(mprotect(start + room, page, PROT_NONE) == 0);
    return start + room;
}

static struct str copy_before(char *end, struct str bytes)
{
    if (bytes.len > 0)
        memcpy(end - bytes.len, bytes.data, bytes.len);
    return str_make(end - bytes.len, bytes.len);
}

struct str guarded_str(struct str bytes)
{
    return copy_before(guarded_end(bytes.len), bytes);
}

struct str guarded_again(struct str bytes)
{
    static char *end;
    static size_t room;
    if (end == NULL || bytes.len > room) {
        room = MAX(bytes.len, (size_t)1 << 16);
        end = guarded_end(room);
    }
    return copy_before(end, bytes);
}

struct str guarded(const char *text)
{
    return guarded_str(str_of(text));
}
