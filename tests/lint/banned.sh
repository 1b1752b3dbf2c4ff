#!/usr/bin/env bash
# banned.sh ROOT: calls that have a better one here, and calls that have one place only.
. "$(dirname "$0")/common.sh"

# shellcheck disable=SC2086 # folders are words
take_findings < <(c_files $product_folders tests bench examples | xargs -r awk "$awk_strip"'
BEGIN {
    never = "strcpy|strcat|sprintf|vsprintf|gets|strtok|atoi|atol|atoll|atof|alloca|rand|srand|rand_r|random|drand48"
    memory = "malloc|calloc|realloc|reallocarray|aligned_alloc|posix_memalign|strdup|strndup|asprintf|vasprintf"
    disk = "open|openat|openat2|creat|freopen|rename|renameat|renameat2|unlink|unlinkat|remove|fsync|fdatasync|" \
           "sync_file_range|mkdir|mkdirat|rmdir|opendir|scandir|truncate|ftruncate|link|symlink|mkstemp|mkdtemp|tmpfile"
    bytes = "read|write|pread|pwrite|readv|writev|preadv|pwritev"
    clock = "time|clock_gettime|gettimeofday|clock"
    pause = "sleep|usleep|nanosleep"
    environment = "getenv|secure_getenv|setenv|putenv"
}
function rules(file,    r) {
    r = never
    if (file ~ /^tests\/(unit|prop|sim|support)\//) r = r "|" pause
    if (file ~ /^(tests|bench|examples)\//) return r
    if (file !~ /^base\//) r = r "|" memory
    # The sandbox only names directories to the kernel.
    if (file != "base/fs_posix.c" && file != "gateway/sandbox.c") r = r "|" disk
    if (file !~ /^cli\//) r = r "|fopen" # there: what the user names, which may be a pipe
    if (file != "base/clock.c") r = r "|" clock
    if (file !~ /^config\// && file !~ /\/main[.]c$/ && file != "base/crash_points.c") r = r "|" environment
    return r
}
FNR == 1 {
    in_comment = 0
    calls = rules(FILENAME)
    # read() without <unistd.h> is a function of our own; sockets, stdin and stdout are for the programs.
    bytes_count = FILENAME !~ /^(tests|bench|examples|gateway|cli)\// && FILENAME !~ /^base\/(fs_posix|log)[.]c$/
    unistd = 0
}
/^[ \t]*#[ \t]*include[ \t]*<unistd.h>/ { unistd = 1 }
{
    text = strip($0)
    while (match(text, "(" calls (bytes_count && unistd ? "|" bytes : "") ")[ \t]*[(]")) {
        # Neither the end of a longer name nor a member: fs->rename() and strbuf_read() are fine.
        before = RSTART == 1 ? "" : substr(text, RSTART - 1, 1)
        name = substr(text, RSTART, RLENGTH); sub(/[ \t]*[(]$/, "", name)
        if (before !~ /[A-Za-z0-9_.>]/)
            print FILENAME ":" FNR ": " name "() is not called here"
        text = substr(text, RSTART + RLENGTH)
    }
}')
finish banned
