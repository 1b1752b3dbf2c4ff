/* thrift.h: the Thrift compact protocol, as far as Parquet uses it.
 *
 * Source: the public Apache Thrift specification (thrift-compact-protocol). The writer emits fields in rising id order
 * with the short header. The reader works on one buffer, never reads outside it, allocates nothing, and keeps its first
 * error: after that every read gives zero and every loop ends, so callers ask thrift_reader.why once at the end. */
#ifndef SLUICE_FORMAT_THRIFT_H
#define SLUICE_FORMAT_THRIFT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "base/strbuf.h"

enum thrift_type {
    THRIFT_TRUE = 1, /* a field's type carries the value; in lists it means "bool" */
    THRIFT_FALSE = 2,
    THRIFT_I8 = 3,
    THRIFT_I16 = 4,
    THRIFT_I32 = 5,
    THRIFT_I64 = 6,
    THRIFT_DOUBLE = 7,
    THRIFT_BINARY = 8,
    THRIFT_LIST = 9,
    THRIFT_SET = 10,
    THRIFT_MAP = 11,
    THRIFT_STRUCT = 12
};
enum { THRIFT_DEPTH_MAX = 32, THRIFT_ELEMENTS_MAX = 16 * 1024 * 1024 };

/* ---- writing ---- */
struct thrift_writer {
    struct strbuf *out;
    int last[THRIFT_DEPTH_MAX]; /* id of the last field of each open struct */
    unsigned depth;
};

/* Opens the outermost struct; close it with thrift_end(). */
void thrift_begin(struct thrift_writer *w, struct strbuf *out);
void thrift_end(struct thrift_writer *w);
void thrift_bool(struct thrift_writer *w, int id, bool value);
void thrift_i8(struct thrift_writer *w, int id, int8_t value);
void thrift_i16(struct thrift_writer *w, int id, int16_t value);
void thrift_i32(struct thrift_writer *w, int id, int32_t value);
void thrift_i64(struct thrift_writer *w, int id, int64_t value);
void thrift_binary(struct thrift_writer *w, int id, struct str value);
/* A struct field: fields follow, thrift_end() closes it. */
void thrift_struct(struct thrift_writer *w, int id);
void thrift_empty_struct(struct thrift_writer *w, int id);
/* A list field of count elements, each of which follows by one of the thrift_item functions. */
void thrift_list(struct thrift_writer *w, int id, enum thrift_type elements, size_t count);
void thrift_item_struct(struct thrift_writer *w); /* close with thrift_end() */
void thrift_item_i32(struct thrift_writer *w, int32_t value);
void thrift_item_i64(struct thrift_writer *w, int64_t value);
void thrift_item_bool(struct thrift_writer *w, bool value);
void thrift_item_binary(struct thrift_writer *w, struct str value);

/* ---- reading ---- */
struct thrift_reader {
    const uint8_t *start, *at, *end;
    const char *why; /* NULL while all is well */
    int last[THRIFT_DEPTH_MAX];
    unsigned depth;
    uint64_t elements; /* seen so far, against THRIFT_ELEMENTS_MAX */
};
struct thrift_field {
    int id;
    enum thrift_type type;
};

void thrift_reader_init(struct thrift_reader *r, struct str bytes);
/* Notes the first error; returns false. */
bool thrift_fail(struct thrift_reader *r, const char *why);
/* Enters a struct: the outermost one, a field's, or a list element's. */
void thrift_enter(struct thrift_reader *r);
/* The next field of the struct entered last. False at its end (which leaves it) and after an error. Every field that
 * comes must be read or skipped. */
bool thrift_next(struct thrift_reader *r, struct thrift_field *field);
/* The value of a field; a type that does not fit is an error. Integers are checked against their width. */
bool thrift_get_bool(struct thrift_reader *r, struct thrift_field field);
int32_t thrift_get_i32(struct thrift_reader *r, struct thrift_field field);       /* i8, i16 and i32 */
int64_t thrift_get_i64(struct thrift_reader *r, struct thrift_field field);       /* any integer */
struct str thrift_get_binary(struct thrift_reader *r, struct thrift_field field); /* points into the buffer */
/* Enters the struct of a field; false when the field is none. */
bool thrift_get_struct(struct thrift_reader *r, struct thrift_field field);
/* Number of elements of a list field whose elements have the given type; 0 after an error. */
size_t thrift_get_list(struct thrift_reader *r, struct thrift_field field, enum thrift_type elements);
/* An element of a list of that type. */
int32_t thrift_item_get_i32(struct thrift_reader *r);
int64_t thrift_item_get_i64(struct thrift_reader *r);
bool thrift_item_get_bool(struct thrift_reader *r);
struct str thrift_item_get_binary(struct thrift_reader *r);
void thrift_skip(struct thrift_reader *r, struct thrift_field field);
/* Writes the field with its value as it stands there, and is behind it. */
void thrift_copy(struct thrift_reader *r, struct thrift_field field, struct thrift_writer *w);
#endif
