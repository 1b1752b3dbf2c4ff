/* parquet_values.h: the values of a leaf in Parquet's own form, and the way there from cells and back; and what
 * statistics say about them. Internal to the reader and writer. */
#ifndef SLUICE_FORMAT_PARQUET_VALUES_H
#define SLUICE_FORMAT_PARQUET_VALUES_H
#include "format/parquet_encode.h"
#include "format/parquet_impl.h"

/* Memory that is used again; contents do not survive a call of pq_room. */
struct pq_room {
    void *data;
    size_t cap;
};
void *pq_room(struct pq_room *room, size_t bytes) __attribute__((returns_nonnull));
void pq_room_fini(struct pq_room *room);

struct pq_values_room {
    struct pq_room cells, fixed, ends;
    struct strbuf bytes;
};
void pq_values_room_fini(struct pq_values_room *room);

/* Values without the nulls, in order. BOOLEAN: one byte a value. */
struct pq_values {
    size_t count;
    const uint8_t *fixed;      /* leaf->width bytes each */
    struct pq_strings strings; /* BYTE_ARRAY */
    const uint32_t *codes;     /* of a coded column: value i is string codes[i]; else NULL */
    size_t codes_end;          /* all are below */
};
static inline struct str pq_value_string(const struct pq_values *v, size_t i)
{
    return pq_string(&v->strings, v->codes == NULL ? i : v->codes[i]);
}
static inline uint32_t pq_value_width(const struct pq_leaf *leaf)
{
    return leaf->physical == PQ_BOOLEAN ? 1 : leaf->width;
}
static inline struct str pq_value(const struct pq_leaf *leaf, const struct pq_values *v, size_t i)
{
    if (leaf->physical == PQ_BYTE_ARRAY)
        return pq_value_string(v, i);
    uint32_t width = pq_value_width(leaf);
    return str_make(v->fixed + i * width, width);
}

/* The values of rows [from, to) of c, the leaf's own column. They live in c and in room until the next call. Errors:
 * ARGUMENT_OUT_OF_BOUND for a time that its Parquet type cannot hold. */
must_use bool pq_values_of(const struct pq_leaf *leaf, const struct column *c, size_t from, size_t to,
                           struct pq_values_room *room, struct pq_values *out, struct err *err);

/* Values of a coded column become plain strings in room, the one that they were made with. */
void pq_values_decode(struct pq_values *v, struct pq_values_room *room);

/* Appends values as cells to c. Errors: CORRUPTED_DATA for a value that the cell's type cannot hold,
 * VALUE_IS_OUT_OF_RANGE_OF_DATA_TYPE for an INT96 beyond DateTime64(9). */
must_use bool pq_values_append(const struct pq_leaf *leaf, const struct pq_values *v, struct column *c,
                               struct err *err);

/* The part of it that only files of other writers need (parquet_foreign.c). */
must_use bool pq_foreign_append(const struct pq_leaf *leaf, const struct pq_values *v, struct column *c,
                                struct err *err);

/* Largest and smallest of some values. Strings point at the values. */
struct pq_bounds {
    bool known;
    union {
        int64_t i;
        uint64_t u;
        double d;
    } min, max;
    struct str min_bytes, max_bytes;
    uint64_t nans;
};
void pq_bounds_add(struct pq_bounds *b, const struct pq_leaf *leaf, const struct pq_values *v, size_t from,
                   size_t count);
void pq_bounds_merge(struct pq_bounds *b, const struct pq_leaf *leaf, const struct pq_bounds *more);

/* Bounds as the file holds them: PLAIN, strings cut. */
struct pq_bounds_text {
    bool known;
    struct str min, max;
    bool min_exact, max_exact;
};
struct pq_bounds_text pq_bounds_print(const struct pq_bounds *b, const struct pq_leaf *leaf, struct arena *arena);
/* <0, 0, >0 in the leaf's order, of two PLAIN values. */
int pq_plain_compare(const struct pq_leaf *leaf, struct str a, struct str b);
/* File statistics of a leaf as bounds of cells, in arena. Not known where the order of the cells is another one, and
 * where anything about them is odd. */
bool pq_bounds_read(const struct pq_leaf *leaf, struct str min, struct str max, struct arena *arena,
                    struct parquet_stats *out);
#endif
