/* native_read.c: columns as Native holds them.
 *
 *   numbers          cell after cell              String    length and bytes, one after the other
 *   Nullable         a byte a row, then the cells as if none were NULL
 *   Array, Map       the end of each row as u64, counted from this block's start; then all elements as one column
 *   Tuple            one column after the other   Nothing   a byte a row
 *   LowCardinality   (u64 1 ahead of the whole column) runs of: u64 flags | width of the index, u64 n, n keys, u64 m,
 *                    m indexes. Key 0 of a nullable one is NULL.
 *
 * Rows are counted in the block's head, so each length is first compared with the bytes that are left. */
#include "format/native_read.h"

#include "base/must.h"
#include "format/binary_read.h"

enum { KEYS_VERSION = 1, INDEX_WIDTH_MAX = 3 };
enum { GLOBAL_DICTIONARY = 0x100, ADDITIONAL_KEYS = 0x200, UPDATE_DICTIONARY = 0x400 };

static const uint64_t ELEMENTS_MAX = UINT64_C(1) << 40;

struct native {
    struct text_reader *r;
    uint64_t *expanded;
    bool in_nullable; /* between the marks of NULL rows and the values */
};

static bool read_data(struct native *n, const struct type *wire, size_t rows, struct column *c);

static bool rows_missing(struct native *n, size_t read, size_t rows)
{
    if (n->in_nullable)
        return text_fail(n->r, ERR_INCORRECT_DATA,
                         "Different number of rows in a Nullable column: %zu of values, %zu of NULL marks", read, rows);
    return text_fail(n->r, ERR_CANNOT_READ_ALL_DATA,
                     "Cannot read all data in NativeReader. Rows read: %zu. Rows expected: %zu", read, rows);
}

/* `rows` cells of width bytes each, where they are. */
static bool take_cells(struct native *n, size_t rows, size_t width, const uint8_t **cells)
{
    if (binary_left(n->r) / width < rows)
        return rows_missing(n, binary_left(n->r) / width, rows);
    *cells = (const uint8_t *)n->r->at;
    n->r->at += rows * width;
    return true;
}

/* ---- plain cells ---- */

static bool is_null_at(const uint8_t *nulls, size_t row)
{
    return nulls != NULL && nulls[row] != 0;
}

/* Cells of NULL rows hold the type's default, whatever came for them. */
static void default_nulls(struct column *c, size_t rows, const uint8_t *nulls)
{
    struct column one;
    column_init(&one, c->type);
    column_push_default(&one);
    for (size_t i = 0; i < rows; i++)
        if (is_null_at(nulls, i))
            memcpy(c->data + (c->rows + i) * c->width, one.data, c->width);
    column_fini(&one);
}

static bool read_fixed(struct native *n, size_t rows, const uint8_t *nulls, struct column *c)
{
    const uint8_t *cells;
    if (!take_cells(n, rows, c->width, &cells))
        return false;
    uint8_t *to = c->data + c->rows * c->width;
    if (c->type->kind == TYPE_UUID)
        for (size_t i = 0; i < rows; i++)
            binary_uuid((const char *)cells + i * 16, to + i * 16);
    else if (c->type->kind == TYPE_BOOL)
        for (size_t i = 0; i < rows; i++)
            to[i] = cells[i] != 0;
    else
        memcpy(to, cells, rows * c->width);
    if (nulls != NULL)
        default_nulls(c, rows, nulls);
    c->data_bytes += rows * c->width;
    return true;
}

static bool read_strings(struct native *n, size_t rows, const uint8_t *nulls, struct column *c)
{
    struct text_reader *r = n->r;
    uint64_t len;
    for (size_t i = 0; i < rows; i++) {
        if (text_eof(r))
            return rows_missing(n, i, rows);
        if (!binary_varint(r, &len))
            return false;
        if (len > binary_left(r))
            return binary_cut(r, len);
        size_t keep = is_null_at(nulls, i) ? 0 : (size_t)len;
        if (c->data_cap - c->data_bytes < keep || c->data == NULL)
            column_reserve(c, 0, keep);
        memcpy(c->data + c->data_bytes, r->at, keep);
        r->at += len;
        c->data_bytes += keep;
        c->offsets[c->rows + i] = c->data_bytes;
    }
    return true;
}

/* ---- compound ---- */

static bool read_list(struct native *n, const struct type *wire, size_t rows, struct column *c)
{
    const uint8_t *cells;
    uint64_t base = c->children[0].rows, last = 0, offset = 0;
    if (!take_cells(n, rows, sizeof offset, &cells))
        return false;
    for (size_t i = 0; i < rows; i++, last = offset) {
        memcpy(&offset, cells + i * sizeof offset, sizeof offset);
        if (offset < last)
            return text_fail(n->r, ERR_INCORRECT_DATA,
                             "Arrays offsets are not monotonically increasing (starting at %llu, value %llu)",
                             (unsigned long long)last, (unsigned long long)offset);
        c->offsets[c->rows + i] = base + offset;
    }
    if (last > ELEMENTS_MAX)
        return text_fail(n->r, ERR_TOO_LARGE_ARRAY_SIZE, "Array sizes are too large: %llu", (unsigned long long)last);
    for (size_t i = 0; i < c->children_count; i++)
        if (!read_data(n, wire->children[i], (size_t)last, &c->children[i]))
            return false;
    return true;
}

static bool read_tuple(struct native *n, const struct type *wire, size_t rows, struct column *c)
{
    for (size_t i = 0; i < c->children_count; i++)
        if (!read_data(n, wire->children[i], rows, &c->children[i]))
            return false;
    return true;
}

/* A byte a row, which says nothing: Nothing, and a Tuple of no elements. */
static bool read_nothing(struct native *n, size_t rows, struct column *c)
{
    const uint8_t *ignored;
    if (!take_cells(n, rows, 1, &ignored))
        return false;
    binary_push_nothing(c, rows);
    n->in_nullable = false;
    return true;
}

/* ---- LowCardinality ---- */

static bool read_index_head(struct native *n, unsigned *width_log)
{
    uint64_t flags;
    if (!binary_u64(n->r, &flags))
        return false;
    *width_log = (unsigned)(flags & 0xff);
    if (*width_log > INDEX_WIDTH_MAX || flags >> 8 > (GLOBAL_DICTIONARY | ADDITIONAL_KEYS | UPDATE_DICTIONARY) >> 8)
        return text_fail(n->r, ERR_INCORRECT_DATA, "Invalid type for SerializationLowCardinality index column");
    if ((flags & GLOBAL_DICTIONARY) != 0)
        return text_fail(n->r, ERR_INCORRECT_DATA, "LowCardinality in Native format cannot use a global dictionary");
    if ((flags & ADDITIONAL_KEYS) == 0)
        return text_fail(n->r, ERR_INCORRECT_DATA, "LowCardinality: no additional keys found");
    return true;
}

static uint64_t index_at(const uint8_t *cells, size_t row, unsigned width_log)
{
    uint64_t index = 0;
    memcpy(&index, cells + (row << width_log), (size_t)1 << width_log);
    return index;
}

static bool expand(struct native *n, const struct column *keys, const uint8_t *cells, unsigned width_log, size_t rows,
                   struct column *c)
{
    for (size_t i = 0; i < rows; i++) {
        uint64_t index = index_at(cells, i, width_log);
        if (index >= keys->rows)
            return text_fail(n->r, ERR_INCORRECT_DATA,
                             "Index for LowCardinality is out of range. Dictionary size is %zu, but found index with "
                             "value %llu",
                             keys->rows, (unsigned long long)index);
        if (c->type->nullable && index == 0) {
            column_push_null(c);
            continue;
        }
        struct str key = STR_EMPTY;
        if (keys->width == 0)
            key = column_str(keys, (size_t)index);
        *n->expanded += keys->width + key.len;
        if (*n->expanded > NATIVE_EXPANDED_MAX)
            return text_fail(n->r, ERR_TOO_LARGE_STRING_SIZE,
                             "The values of LowCardinality columns take more than %d bytes in one insert",
                             NATIVE_EXPANDED_MAX);
        if (keys->width == 0)
            column_push_str(c, key);
        else
            column_push_fixed(c, column_cell(keys, (size_t)index));
    }
    return true;
}

/* One run; more of them follow while rows are missing. */
static bool read_run(struct native *n, struct column *keys, size_t rows, size_t *read, struct column *c)
{
    unsigned width_log;
    uint64_t keys_count, run;
    const uint8_t *cells;
    if (!read_index_head(n, &width_log) || !binary_u64(n->r, &keys_count))
        return false;
    if (keys_count > binary_left(n->r)) /* none takes less than a byte */
        return binary_cut(n->r, keys_count);
    if (!read_data(n, keys->type, (size_t)keys_count, keys) || !binary_u64(n->r, &run))
        return false;
    size_t count = (size_t)MIN(run, (uint64_t)rows);
    if (!take_cells(n, count, (size_t)1 << width_log, &cells))
        return false;
    *read = count;
    return expand(n, keys, cells, width_log, count, c);
}

static bool read_dictionary(struct native *n, const struct type *wire, size_t rows, struct column *c)
{
    struct type plain = *wire;
    struct column keys;
    bool ok = true;
    plain.nullable = plain.low_cardinality = false;
    column_init(&keys, &plain);
    for (size_t done = 0, read = 0; ok && done < rows; done += read) {
        column_clear(&keys);
        ok = text_eof(n->r) ? rows_missing(n, done, rows) : read_run(n, &keys, rows - done, &read, c);
    }
    column_fini(&keys);
    return ok;
}

/* ---- a column ---- */

/* Room for rows whose bytes are there; of strings, for as many as these bytes can be. */
static bool make_room(struct native *n, size_t rows, struct column *c)
{
    size_t left = binary_left(n->r), width = c->width > 0 ? c->width : sizeof(uint64_t);
    bool strings = c->type->kind == TYPE_STRING;
    if (!strings && left / width < rows)
        return rows_missing(n, left / width, rows);
    column_reserve(c, strings ? MIN(rows, left) : rows, 0);
    return true;
}

static bool read_cells(struct native *n, const struct type *wire, size_t rows, const uint8_t *nulls, struct column *c)
{
    if (wire->kind == TYPE_TUPLE) {
        if (!read_tuple(n, wire, rows, c))
            return false;
        column_reserve(c, rows, 0);
        return true;
    }
    if (!make_room(n, rows, c))
        return false;
    if (wire->kind == TYPE_STRING)
        return read_strings(n, rows, nulls, c);
    return c->width > 0 ? read_fixed(n, rows, nulls, c) : read_list(n, wire, rows, c);
}

static bool read_data(struct native *n, const struct type *wire, size_t rows, struct column *c)
{
    const uint8_t *nulls = NULL;
    if (rows == 0)
        return true;
    if (wire->low_cardinality)
        return read_dictionary(n, wire, rows, c);
    if (wire->nullable) {
        n->in_nullable = !text_eof(n->r);
        if (!take_cells(n, rows, 1, &nulls))
            return false;
    }
    if (wire->kind == TYPE_NOTHING || (wire->kind == TYPE_TUPLE && wire->children_count == 0))
        return read_nothing(n, rows, c);
    if (!read_cells(n, wire, rows, nulls, c))
        return false;
    n->in_nullable = false;
    for (size_t i = 0; nulls != NULL && i < rows; i++)
        c->nulls[c->rows + i] = nulls[i] != 0;
    c->rows += rows;
    return true;
}

/* Each LowCardinality inside says its version ahead of all data. */
static bool read_prefix(struct native *n, const struct type *wire)
{
    uint64_t version;
    if (wire->low_cardinality) {
        if (!binary_u64(n->r, &version))
            return false;
        return version == KEYS_VERSION ||
               text_fail(n->r, ERR_INCORRECT_DATA, "Invalid version for SerializationLowCardinality key column");
    }
    for (size_t i = 0; i < wire->children_count; i++)
        if (!read_prefix(n, wire->children[i]))
            return false;
    return true;
}

bool native_read(struct text_reader *r, const struct type *wire, size_t rows, uint64_t *expanded, struct column *c)
{
    struct native n = { .r = r, .expanded = expanded };
    return rows == 0 || (read_prefix(&n, wire) && read_data(&n, wire, rows, c));
}
