/* must.c: the end of the process, and the allocations that can only end that way. */
#include "base/must.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Noreturn void must_fail(const char *fact, const char *file, int line)
{
    fprintf(stderr, "%s:%d: broken promise: %s\n", file, line, fact);
    fflush(stderr);
    abort();
}

static _Noreturn void out_of_memory(size_t bytes)
{
    fprintf(stderr, "out of memory: %zu bytes\n", bytes);
    fflush(stderr);
    abort();
}

void *mem_alloc(size_t bytes)
{
    void *p = malloc(bytes == 0 ? 1 : bytes);
    if (p == NULL)
        out_of_memory(bytes);
    return p;
}

void *mem_zalloc(size_t bytes)
{
    void *p = calloc(1, bytes == 0 ? 1 : bytes);
    if (p == NULL)
        out_of_memory(bytes);
    return p;
}

void *mem_realloc(void *old, size_t bytes)
{
    void *p = realloc(old, bytes == 0 ? 1 : bytes);
    if (p == NULL)
        out_of_memory(bytes);
    return p;
}

char *mem_strdup(const char *text)
{
    size_t bytes = strlen(text) + 1;
    return memcpy(mem_alloc(bytes), text, bytes);
}

void mem_keep_freed(uint64_t budget)
{
    enum { KEEP_SHARE = 16, KEEP_MAX = 64 << 20, TOP_PAD = 1 << 20 };
    int keep = (int)MIN(budget / KEEP_SHARE, (uint64_t)KEEP_MAX);
    mallopt(M_MMAP_THRESHOLD, keep / 2);
    mallopt(M_TRIM_THRESHOLD, keep);
    mallopt(M_TOP_PAD, TOP_PAD);
}
