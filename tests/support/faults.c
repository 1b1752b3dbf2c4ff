/* faults.c: a library to preload into the real daemon: slow syncs, and a wall clock that jumps.
 *
 *   FAULT_SYNC_MS      every fsync and fdatasync takes so much longer
 *   FAULT_CLOCK_FILE   the wall clock is off by the seconds that stand in this file now */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int fsync(int fd)
{
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    const char *ms = getenv("FAULT_SYNC_MS");
    unsigned long more = ms == NULL ? 0 : strtoul(ms, NULL, 10);
    const struct timespec pause = { (time_t)(more / 1000), (long)(more % 1000) * 1000000 };
    (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL); /* the slow disk itself */
    return real(fd);
}

int fdatasync(int fd)
{
    return fsync(fd);
}

static long clock_offset_s(const char *path)
{
    char text[32] = "";
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return 0;
    if (fgets(text, sizeof(text), file) == NULL)
        text[0] = '\0';
    (void)fclose(file);
    return strtol(text, NULL, 10);
}

int clock_gettime(clockid_t id, struct timespec *time)
{
    int (*real)(clockid_t, struct timespec *) =
        (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    const char *path = getenv("FAULT_CLOCK_FILE");
    int result = real(id, time);
    if (path != NULL && result == 0 && id == CLOCK_REALTIME)
        time->tv_sec += clock_offset_s(path);
    return result;
}
