/* arena.h: memory that dies together: one request, one batch, one parsed statement. Not for more than one thread at a
 * time. Pointers stay valid until arena_free or arena_reset. */
#ifndef SLUICE_BASE_ARENA_H
#define SLUICE_BASE_ARENA_H
#include <stddef.h>

#include "base/str.h"

struct arena;

struct arena *arena_new(size_t first_block_bytes);
void arena_free(struct arena *arena);                                                  /* NULL is fine */
void arena_reset(struct arena *arena);                                                 /* keeps the first block */
void *arena_alloc(struct arena *arena, size_t bytes) __attribute__((returns_nonnull)); /* 16-byte aligned, not zeroed */
void *arena_zalloc(struct arena *arena, size_t bytes) __attribute__((returns_nonnull)); /* zeroed */
/* The same for count items; the product is checked. */
void *arena_zalloc_array(struct arena *arena, size_t item_bytes, size_t count) __attribute__((returns_nonnull));
struct str arena_dup(struct arena *arena, struct str s); /* copy, NUL-terminated */
char *arena_printf(struct arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
size_t arena_bytes(const struct arena *arena); /* taken from the system */
#define ARENA_NEW(arena, type) ((type *)arena_zalloc((arena), sizeof(type)))
#define ARENA_ARRAY(arena, type, count) ((type *)arena_zalloc_array((arena), sizeof(type), (count)))
#endif
