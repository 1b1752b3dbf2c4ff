/* arena.c: a chain of blocks, the newest first. The arena itself lies at the start of its first block, so a request
 * costs one malloc. What is not handed out is poisoned under AddressSanitizer. */
#include "base/arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/must.h"

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#include <sanitizer/asan_interface.h>
#define poison(p, n) ASAN_POISON_MEMORY_REGION((p), (n))
#define unpoison(p, n) ASAN_UNPOISON_MEMORY_REGION((p), (n))
#else
#define poison(p, n) ((void)(p), (void)(n))
#define unpoison(p, n) ((void)(p), (void)(n))
#endif

enum { ARENA_ALIGN = 16, ARENA_FIRST_MIN = 256, ARENA_BLOCK_MAX = 1 << 20 };

struct block {
    struct block *older;
    size_t bytes, used; /* of data */
    _Alignas(16) unsigned char data[];
};

struct arena {
    struct block *newest, *first;
    size_t total_bytes, next_bytes;
};

static size_t rounded(size_t bytes)
{
    must(bytes <= SIZE_MAX / 4);
    return (bytes + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1);
}

static struct block *block_new(size_t bytes, struct block *older)
{
    struct block *b = mem_alloc(sizeof(*b) + bytes);
    *b = (struct block){ .older = older, .bytes = bytes };
    poison(b->data, bytes);
    return b;
}

static void block_free(struct block *b)
{
    unpoison(b->data, b->bytes);
    free(b);
}

struct arena *arena_new(size_t first_block_bytes)
{
    size_t bytes = rounded(MAX(first_block_bytes, (size_t)ARENA_FIRST_MIN));
    struct block *first = block_new(bytes, NULL);
    struct arena *arena = (struct arena *)(void *)first->data;
    first->used = rounded(sizeof(*arena));
    unpoison(arena, sizeof(*arena));
    *arena = (struct arena){ .newest = first,
                             .first = first,
                             .total_bytes = sizeof(*first) + bytes,
                             .next_bytes = MIN(bytes * 2, (size_t)ARENA_BLOCK_MAX) };
    return arena;
}

static void free_down_to(struct block *b, const struct block *last)
{
    while (b != last) {
        struct block *older = b->older;
        block_free(b);
        b = older;
    }
}

void arena_free(struct arena *arena)
{
    if (arena == NULL)
        return;
    free_down_to(arena->newest, NULL);
}

void arena_reset(struct arena *arena)
{
    struct block *first = arena->first;
    free_down_to(arena->newest, first);
    first->used = rounded(sizeof(*arena));
    poison(first->data + first->used, first->bytes - first->used);
    arena->newest = first;
    arena->total_bytes = sizeof(*first) + first->bytes;
    arena->next_bytes = MIN(first->bytes * 2, (size_t)ARENA_BLOCK_MAX);
}

static void *block_take(struct block *b, size_t step, size_t bytes)
{
    void *p = b->data + b->used;
    b->used += step;
    unpoison(p, bytes);
    return p;
}

/* A large piece gets a block of its own behind the newest, whose rest stays in use. */
static void *take_large(struct arena *arena, size_t step, size_t bytes)
{
    struct block *b = block_new(step, arena->newest->older);
    arena->newest->older = b;
    arena->total_bytes += sizeof(*b) + step;
    return block_take(b, step, bytes);
}

void *arena_alloc(struct arena *arena, size_t bytes)
{
    size_t step = rounded(MAX(bytes, (size_t)1));
    struct block *b = arena->newest;
    if (step <= b->bytes - b->used)
        return block_take(b, step, bytes);
    if (step > arena->next_bytes / 4 && b != arena->first)
        return take_large(arena, step, bytes);
    size_t block_bytes = MAX(arena->next_bytes, step);
    b = arena->newest = block_new(block_bytes, b);
    arena->total_bytes += sizeof(*b) + block_bytes;
    arena->next_bytes = MIN(arena->next_bytes * 2, (size_t)ARENA_BLOCK_MAX);
    return block_take(b, step, bytes);
}

void *arena_zalloc(struct arena *arena, size_t bytes)
{
    return memset(arena_alloc(arena, bytes), 0, bytes);
}

void *arena_zalloc_array(struct arena *arena, size_t item_bytes, size_t count)
{
    size_t bytes;
    must(!__builtin_mul_overflow(item_bytes, count, &bytes));
    return arena_zalloc(arena, bytes);
}

struct str arena_dup(struct arena *arena, struct str s)
{
    char *copy = arena_alloc(arena, s.len + 1);
    if (s.len > 0)
        memcpy(copy, s.data, s.len);
    copy[s.len] = '\0';
    return str_make(copy, s.len);
}

char *arena_printf(struct arena *arena, const char *format, ...)
{
    char small[256];
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int len = vsnprintf(small, sizeof(small), format, args);
    must(len >= 0);
    char *text = arena_alloc(arena, (size_t)len + 1);
    if ((size_t)len < sizeof(small))
        memcpy(text, small, (size_t)len + 1);
    else
        must(vsnprintf(text, (size_t)len + 1, format, again) == len);
    va_end(again);
    va_end(args);
    return text;
}

size_t arena_bytes(const struct arena *arena)
{
    return arena->total_bytes;
}
