/* codebook.c: see struct codebook in block.h. */
#include <stdlib.h>

#include "base/hash.h"
#include "format/block.h"

enum { SLOTS_FIRST = 1 << 10 };

/* The slot of a string, or the free one where it belongs. */
static uint64_t *find(const struct codebook *book, struct str s, uint32_t hash)
{
    size_t at = hash & book->mask;
    for (;; at = (at + 1) & book->mask) {
        uint64_t slot = book->slots[at];
        if (slot == 0 || ((uint32_t)(slot >> 32) == hash && str_eq(column_str(&book->strings, (uint32_t)slot - 1), s)))
            return &book->slots[at];
    }
}

static void grow(struct codebook *book)
{
    uint64_t *old = book->slots;
    size_t old_count = book->mask + 1;
    book->mask = old_count * 4 - 1;
    book->slots = mem_zalloc((book->mask + 1) * sizeof *book->slots);
    for (size_t i = 0; i < old_count; i++) {
        size_t at = (size_t)(old[i] >> 32) & book->mask;
        while (book->slots[at] != 0)
            at = (at + 1) & book->mask;
        book->slots[at] = old[i];
    }
    free(old);
}

void codebook_init(struct codebook *book)
{
    *book = (struct codebook){ .mask = SLOTS_FIRST - 1 };
    book->slots = mem_zalloc(SLOTS_FIRST * sizeof *book->slots);
    column_init(&book->strings, type_of_kind(TYPE_STRING));
    must(codebook_code(book, STR_EMPTY) == 0);
}

void codebook_fini(struct codebook *book)
{
    column_fini(&book->strings);
    free(book->slots);
}

uint32_t codebook_code(struct codebook *book, struct str s)
{
    uint32_t hash = (uint32_t)hash64_seed(s, hash_process_seed());
    uint64_t *slot = find(book, s, hash);
    if (*slot != 0)
        return (uint32_t)*slot - 1;
    must(book->strings.rows < UINT32_MAX - 1);
    column_push_str(&book->strings, s);
    book->longest = MAX(book->longest, s.len);
    *slot = (uint64_t)hash << 32 | book->strings.rows;
    uint32_t code = (uint32_t)book->strings.rows - 1;
    if (book->strings.rows * 2 > book->mask)
        grow(book);
    return code;
}
