/* process_stats.c: getrusage, getrlimit and three small files of /proc, which cost no disk access. */
#include "base/process_stats.h"

#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/must.h"

enum { PROC_FILE_MAX = 1 << 20 };

/* The n-th of the fields that spaces separate, from 0, as a number; 0 where there is none. */
static uint64_t field(struct str text, unsigned n)
{
    struct str piece = STR_EMPTY;
    uint64_t value = 0;
    for (unsigned i = 0; i <= n; i++)
        if (!str_cut(&text, ' ', &piece))
            return 0;
    return str_to_u64(str_trim(piece), &value) ? value : 0;
}

static void read_sizes(struct process_stats *stats)
{
    struct strbuf text = { 0 };
    struct err err;
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    if (fs_read_file(fs_posix(), "/proc/self/statm", PROC_FILE_MAX, &text, &err)) {
        stats->virtual_bytes = field(strbuf_view(&text), 0) * page;
        stats->resident_bytes = field(strbuf_view(&text), 1) * page;
    }
    strbuf_fini(&text);
}

/* The time the machine started, plus the ticks after which the process did. */
static void read_start(struct process_stats *stats)
{
    struct strbuf self = { 0 }, machine = { 0 };
    struct err err;
    if (!fs_read_file(fs_posix(), "/proc/self/stat", PROC_FILE_MAX, &self, &err) ||
        !fs_read_file(fs_posix(), "/proc/stat", PROC_FILE_MAX, &machine, &err))
        goto done;
    struct str text = strbuf_view(&self), boot = strbuf_view(&machine);
    ptrdiff_t name_end = STR_NONE, boot_at = str_find(boot, STR("\nbtime "));
    for (size_t i = 0; i < text.len; i++) /* the name, in parentheses, may hold any byte */
        if (text.data[i] == ')')
            name_end = (ptrdiff_t)i;
    if (name_end == STR_NONE || boot_at == STR_NONE)
        goto done;
    uint64_t ticks = field(str_from(text, (size_t)name_end + 2), 19), boot_seconds = 0;
    struct str line;
    boot = str_from(boot, (size_t)boot_at + strlen("\nbtime "));
    if (str_cut(&boot, '\n', &line) && str_to_u64(line, &boot_seconds))
        stats->start_seconds = (double)boot_seconds + (double)ticks / (double)sysconf(_SC_CLK_TCK);
done:
    strbuf_fini(&self);
    strbuf_fini(&machine);
}

void process_stats_read(struct process_stats *stats)
{
    struct rusage usage;
    struct rlimit limit;
    struct fs_names names;
    struct err err;
    *stats = (struct process_stats){ 0 };
    must(getrusage(RUSAGE_SELF, &usage) == 0);
    stats->cpu_ns = (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * NS_PER_S +
                    (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * NS_PER_US;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
        stats->max_fds = limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : (uint64_t)limit.rlim_cur;
    if (fs_list(fs_posix(), "/proc/self/fd", &names, &err)) {
        stats->open_fds = names.count > 0 ? names.count - 1 : 0; /* but for the one that the listing itself opened */
        fs_names_fini(&names);
    }
    read_sizes(stats);
    read_start(stats);
}
