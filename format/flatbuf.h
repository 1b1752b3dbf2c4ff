/* flatbuf.h: reading FlatBuffers that nobody vouches for.
 *
 * A table's fields are looked up by number; what is not there has its default. Whatever lies outside of the buffer sets
 * `bad` and reads as not there, so that one look at the end tells whether all of it was true. */
#ifndef SLUICE_FORMAT_FLATBUF_H
#define SLUICE_FORMAT_FLATBUF_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct flatbuf {
    struct str bytes;
    bool bad;
};
struct flatbuf_table {
    struct flatbuf *buffer; /* NULL: not there */
    size_t at, vtable, vtable_bytes;
};
struct flatbuf_vector {
    size_t at, count; /* at: the first element */
};

struct flatbuf_table flatbuf_root(struct flatbuf *buffer);
/* width: 1, 2, 4 or 8 bytes; the value with its sign. */
int64_t flatbuf_int(const struct flatbuf_table *table, unsigned field, unsigned width, int64_t absent);
struct flatbuf_table flatbuf_child(const struct flatbuf_table *table, unsigned field);
struct str flatbuf_string(const struct flatbuf_table *table, unsigned field);
/* Elements of element_bytes each; of tables these are 4. */
struct flatbuf_vector flatbuf_vector(const struct flatbuf_table *table, unsigned field, size_t element_bytes);
struct flatbuf_table flatbuf_vector_table(struct flatbuf *buffer, struct flatbuf_vector vector, size_t index);
/* must: inside the vector. */
int64_t flatbuf_i64_at(const struct flatbuf *buffer, size_t at);
#endif
