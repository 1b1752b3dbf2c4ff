/* Cells to Parquet values and back. */
#include "format/parquet_values.h"
#include "format/bfloat.h"

#include <stdlib.h>
#include <string.h>

#include "format/text_value.h"

void *pq_room(struct pq_room *room, size_t bytes)
{
    if (bytes > room->cap || room->data == NULL) {
        free(room->data);
        room->cap = MAX(bytes, room->cap * 2);
        room->data = mem_alloc(MAX(room->cap, (size_t)64));
    }
    return room->data;
}

void pq_room_fini(struct pq_room *room)
{
    free(room->data);
    *room = (struct pq_room){ 0 };
}

void pq_values_room_fini(struct pq_values_room *room)
{
    pq_room_fini(&room->cells);
    pq_room_fini(&room->fixed);
    pq_room_fini(&room->ends);
    strbuf_fini(&room->bytes);
}

/* ---- cells to values ---- */

static size_t count_nulls(const struct column *c, size_t from, size_t to)
{
    size_t nulls = 0;
    if (c->nulls != NULL)
        for (size_t i = from; i < to; i++)
            nulls += c->nulls[i];
    return nulls;
}

/* The cells of the rows that are not NULL, next to each other. */
static const uint8_t *dense_cells(const struct column *c, size_t from, size_t to, size_t nulls, struct pq_room *room)
{
    if (nulls == 0)
        return c->data == NULL ? (const uint8_t *)"" : c->data + from * c->width;
    size_t width = c->width;
    uint8_t *start = pq_room(room, (to - from) * width), *at = start;
    for (size_t i = from; i < to; i++) {
        memcpy(at, c->data + i * width, width);
        at += c->nulls[i] ? 0 : width;
    }
    return start;
}

static struct pq_strings dense_strings(const struct column *c, size_t from, size_t to, size_t nulls,
                                       struct pq_room *room)
{
    struct pq_strings s = { .bytes = c->data == NULL ? "" : (const char *)c->data };
    if (from == to)
        return s;
    s.start = column_start(c, from);
    s.ends = c->offsets + from;
    if (nulls == 0)
        return s;
    uint64_t *ends = pq_room(room, (to - from) * sizeof *ends);
    size_t n = 0;
    for (size_t i = from; i < to; i++) {
        ends[n] = c->offsets[i]; /* a NULL holds no bytes, so the next value starts where it does */
        n += !c->nulls[i];
    }
    s.ends = ends;
    return s;
}

#define WIDEN(cell_type, value_type)                                                                                   \
    do {                                                                                                               \
        value_type *to_ = pq_room(room, count * sizeof(value_type));                                                   \
        for (size_t i = 0; i < count; i++) {                                                                           \
            cell_type cell_;                                                                                           \
            memcpy(&cell_, cells + i * sizeof cell_, sizeof cell_);                                                    \
            to_[i] = (value_type)cell_;                                                                                \
        }                                                                                                              \
        return (const uint8_t *)to_;                                                                                   \
    } while (0)

static const uint8_t *widen_halves(const uint8_t *cells, size_t count, struct pq_room *room)
{
    float *to = pq_room(room, count * sizeof *to);
    for (size_t i = 0; i < count; i++)
        to[i] = bfloat_load(cells + i * 2);
    return (const uint8_t *)to;
}

static const uint8_t *widen(const struct type *type, const uint8_t *cells, size_t count, struct pq_room *room)
{
    switch (type->kind) {
    case TYPE_INT8:
        WIDEN(int8_t, int32_t);
    case TYPE_INT16:
        WIDEN(int16_t, int32_t);
    case TYPE_UINT8:
        WIDEN(uint8_t, int32_t);
    case TYPE_UINT32:
        WIDEN(uint32_t, int64_t);
    case TYPE_BFLOAT16:
        return widen_halves(cells, count, room);
    default: /* UInt16, Date */
        WIDEN(uint16_t, int32_t);
    }
}

static bool scale(const struct pq_leaf *leaf, const uint8_t *cells, size_t count, struct pq_room *room,
                  const uint8_t **out, struct err *err)
{
    int64_t *to = pq_room(room, count * sizeof *to);
    *out = (const uint8_t *)to;
    if (leaf->type->kind == TYPE_DATETIME) {
        for (size_t i = 0; i < count; i++) {
            uint32_t seconds;
            memcpy(&seconds, cells + i * 4, 4);
            to[i] = (int64_t)seconds * leaf->factor;
        }
        return true;
    }
    bool over = false;
    for (size_t i = 0; i < count; i++) {
        int64_t ticks;
        memcpy(&ticks, cells + i * 8, 8);
        over |= __builtin_mul_overflow(ticks, leaf->factor, &to[i]);
    }
    if (over)
        return err_set(err, ERR_ARGUMENT_OUT_OF_BOUND, "a " STR_FMT " is out of range", STR_ARG(leaf->type->text));
    return true;
}

static const uint8_t *big_endian(const struct pq_leaf *leaf, const uint8_t *cells, size_t count, struct pq_room *room)
{
    size_t width = leaf->width;
    uint8_t *to = pq_room(room, count * width);
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < width; j++)
            to[i * width + j] = cells[i * width + width - 1 - j];
        if (leaf->flip)
            to[i * width] ^= 0x80;
    }
    return to;
}

static struct pq_strings fixed_as_strings(const uint8_t *cells, size_t count, size_t width, struct pq_room *room)
{
    uint64_t *ends = pq_room(room, count * sizeof *ends);
    for (size_t i = 0; i < count; i++)
        ends[i] = (i + 1) * width;
    return (struct pq_strings){ .bytes = (const char *)cells, .ends = ends };
}

static void add_uuid(struct strbuf *out, const uint8_t *bytes)
{
    static const char digits[] = "0123456789abcdef";
    char *at = strbuf_room(out, 36);
    for (unsigned i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *at++ = '-';
        *at++ = digits[bytes[i] >> 4];
        *at++ = digits[bytes[i] & 15];
    }
    strbuf_grew(out, 36);
}

static int enum_cell(const struct type *type, const void *cell)
{
    int8_t narrow;
    int16_t wide;
    if (type->kind == TYPE_ENUM8) {
        memcpy(&narrow, cell, sizeof narrow);
        return narrow;
    }
    memcpy(&wide, cell, sizeof wide);
    return wide;
}

/* Binary formats can bring a value that no element of the Enum has: its number stands for its name. */
static bool add_nameless(const struct pq_leaf *leaf, int value, struct strbuf *out, struct err *err)
{
    size_t start = out->len;
    strbuf_add_i64(out, value);
    return type_enum_by_name(leaf->type, str_from(strbuf_view(out), start)) == NULL ||
           err_set(err, ERR_ARGUMENT_OUT_OF_BOUND, "value %d is not in " STR_FMT, value, STR_ARG(leaf->type->text));
}

static bool add_text(const struct pq_leaf *leaf, const struct column *c, size_t row, struct strbuf *out,
                     struct err *err)
{
    const struct type_enum *named;
    int value;
    switch (leaf->convert) {
    case PQ_UUID_TEXT:
        add_uuid(out, column_cell(c, row));
        return true;
    case PQ_ENUM_NAME:
        value = enum_cell(leaf->type, column_cell(c, row));
        named = type_enum_by_value(leaf->type, value);
        if (named == NULL)
            return add_nameless(leaf, value, out, err);
        strbuf_add(out, named->name);
        return true;
    default:
        text_value_print(c, row, TEXT_PLAIN, format_settings_default(), out);
        return true;
    }
}

static bool texts(const struct pq_leaf *leaf, const struct column *c, size_t from, size_t to,
                  struct pq_values_room *room, struct pq_strings *out, struct err *err)
{
    strbuf_clear(&room->bytes);
    uint64_t *ends = pq_room(&room->ends, (to - from) * sizeof *ends);
    size_t n = 0;
    for (size_t i = from; i < to; i++) {
        if (column_is_null(c, i))
            continue;
        if (!add_text(leaf, c, i, &room->bytes, err))
            return false;
        ends[n++] = room->bytes.len;
    }
    *out = (struct pq_strings){ .bytes = room->bytes.len == 0 ? "" : room->bytes.data, .ends = ends };
    return true;
}

bool pq_values_of(const struct pq_leaf *leaf, const struct column *c, size_t from, size_t to,
                  struct pq_values_room *room, struct pq_values *out, struct err *err)
{
    size_t nulls = count_nulls(c, from, to), count = to - from - nulls;
    *out = (struct pq_values){ .count = count };
    if (c->book != NULL) {
        out->codes = (const uint32_t *)(const void *)dense_cells(c, from, to, nulls, &room->cells);
        out->codes_end = c->book->strings.rows;
        out->strings = dense_strings(&c->book->strings, 0, c->book->strings.rows, 0, NULL);
        return true;
    }
    if (leaf->convert == PQ_BYTES) {
        out->strings = dense_strings(c, from, to, nulls, &room->ends);
        return true;
    }
    if (leaf->convert == PQ_ENUM_NAME || leaf->convert == PQ_UUID_TEXT || leaf->convert == PQ_TEXT)
        return texts(leaf, c, from, to, room, &out->strings, err);
    const uint8_t *cells = dense_cells(c, from, to, nulls, &room->cells);
    switch (leaf->convert) {
    case PQ_WIDEN:
        out->fixed = widen(leaf->type, cells, count, &room->fixed);
        return true;
    case PQ_SCALE:
        return scale(leaf, cells, count, &room->fixed, &out->fixed, err);
    case PQ_BIG_ENDIAN:
        out->fixed = big_endian(leaf, cells, count, &room->fixed);
        return true;
    case PQ_FIXED_BYTES:
        out->strings = fixed_as_strings(cells, count, c->width, &room->ends);
        return true;
    default: /* COPY, BOOL */
        out->fixed = cells;
        return true;
    }
}

void pq_values_decode(struct pq_values *v, struct pq_values_room *room)
{
    uint64_t *ends = pq_room(&room->ends, v->count * sizeof *ends);
    strbuf_clear(&room->bytes);
    for (size_t i = 0; i < v->count; i++) {
        strbuf_add(&room->bytes, pq_value_string(v, i));
        ends[i] = room->bytes.len;
    }
    v->strings = (struct pq_strings){ .bytes = room->bytes.len == 0 ? "" : room->bytes.data, .ends = ends };
    v->codes = NULL;
}

/* ---- values to cells ---- */

static bool bad_value(const struct pq_leaf *leaf, struct err *err)
{
    return err_set(err, ERR_CORRUPTED_DATA, "a value does not fit " STR_FMT, STR_ARG(leaf->type->text));
}

#define NARROW(value_type, cell_type)                                                                                  \
    for (size_t i = 0; i < v->count; i++) {                                                                            \
        value_type value_;                                                                                             \
        memcpy(&value_, v->fixed + i * sizeof value_, sizeof value_);                                                  \
        cell_type cell_ = (cell_type)value_;                                                                           \
        bad |= (value_type)cell_ != value_;                                                                            \
        memcpy(to + i * sizeof cell_, &cell_, sizeof cell_);                                                           \
    }                                                                                                                  \
    break

static bool narrow_to_halves(const struct pq_values *v, uint8_t *to)
{
    bool bad = false;
    for (size_t i = 0; i < v->count; i++) {
        float value;
        memcpy(&value, v->fixed + i * sizeof value, sizeof value);
        bfloat_store(value, to + i * 2);
        float back = bfloat_load(to + i * 2);
        bad |= memcmp(&back, &value, sizeof value) != 0;
    }
    return !bad;
}

static bool append_narrowed(const struct pq_leaf *leaf, const struct pq_values *v, uint8_t *to)
{
    bool bad = false;
    switch (leaf->type->kind) {
    case TYPE_INT8:
        NARROW(int32_t, int8_t);
    case TYPE_INT16:
        NARROW(int32_t, int16_t);
    case TYPE_UINT8:
        NARROW(int32_t, uint8_t);
    case TYPE_UINT32:
        NARROW(int64_t, uint32_t);
    case TYPE_DECIMAL: /* of others: few digits in INT64 */
        NARROW(int64_t, int32_t);
    case TYPE_BFLOAT16:
        return narrow_to_halves(v, to);
    case TYPE_DATETIME64: /* of others: TIME in INT32 */
        NARROW(int32_t, int64_t);
    default: /* UInt16, Date */
        NARROW(int32_t, uint16_t);
    }
    return !bad;
}

static bool append_scaled(const struct pq_leaf *leaf, const struct pq_values *v, uint8_t *to)
{
    bool bad = false, seconds = leaf->type->kind == TYPE_DATETIME;
    for (size_t i = 0; i < v->count; i++) {
        int64_t value;
        memcpy(&value, v->fixed + i * 8, 8);
        int64_t ticks = leaf->factor == 1 ? value : value / leaf->factor;
        bad |= ticks * leaf->factor != value;
        if (seconds) {
            uint32_t cell = (uint32_t)ticks;
            bad |= (int64_t)cell != ticks;
            memcpy(to + i * 4, &cell, 4);
        } else {
            memcpy(to + i * 8, &ticks, 8);
        }
    }
    return !bad;
}

static bool append_enum(const struct pq_leaf *leaf, struct str text, struct column *c, struct err *err)
{
    const struct type_enum *named = type_enum_by_name(leaf->type, text);
    int64_t value = named == NULL ? 0 : named->value;
    if (named == NULL && (!str_to_i64(text, &value) || value < INT16_MIN || value > INT16_MAX))
        return bad_value(leaf, err);
    int8_t narrow = (int8_t)value;
    int16_t wide = (int16_t)value;
    if (leaf->type->kind == TYPE_ENUM8 && narrow != value)
        return bad_value(leaf, err);
    column_push_fixed(c, leaf->type->kind == TYPE_ENUM8 ? (const void *)&narrow : (const void *)&wide);
    return true;
}

/* Binary formats bring decimals of more digits than their type has: all that 32 bytes hold were written, so all are
 * read. */
static bool append_printed(struct str text, struct column *c, struct err *err)
{
    enum { DIGITS_MAX = 77 };
    const struct type *type = c->type;
    struct type wide = *type;
    if (type->kind == TYPE_DECIMAL) {
        wide.precision = DIGITS_MAX;
        c->type = &wide;
    }
    bool ok = text_value_parse(text, TEXT_PLAIN, format_settings_default(), c, err);
    c->type = type;
    if (!ok)
        err->code = ERR_CORRUPTED_DATA;
    return ok;
}

static bool append_text(const struct pq_leaf *leaf, struct str text, struct column *c, struct err *err)
{
    switch (leaf->convert) {
    case PQ_ENUM_NAME:
        return append_enum(leaf, text, c, err);
    case PQ_FIXED_BYTES:
        if (text.len != c->width)
            return bad_value(leaf, err);
        column_push_fixed(c, text.data);
        return true;
    default:
        return append_printed(text, c, err);
    }
}

static void append_strings(const struct pq_values *v, struct column *c)
{
    size_t bytes = 0;
    for (size_t i = 0; i < v->count; i++)
        bytes += pq_string(&v->strings, i).len;
    column_reserve(c, v->count, bytes);
    for (size_t i = 0; i < v->count; i++)
        column_push_str(c, pq_string(&v->strings, i));
}

bool pq_values_append(const struct pq_leaf *leaf, const struct pq_values *v, struct column *c, struct err *err)
{
    bool ok = true;
    if (v->count == 0)
        return true;
    switch (leaf->convert) {
    case PQ_BYTES:
        append_strings(v, c);
        return true;
    case PQ_DECIMAL_BYTES:
    case PQ_JULIAN:
    case PQ_HALF:
        return pq_foreign_append(leaf, v, c, err);
    case PQ_ENUM_NAME:
    case PQ_UUID_TEXT:
    case PQ_TEXT:
    case PQ_FIXED_BYTES:
        for (size_t i = 0; i < v->count; i++)
            if (!append_text(leaf, pq_string(&v->strings, i), c, err))
                return false;
        return true;
    default:
        break;
    }
    column_reserve(c, v->count, 0);
    uint8_t *to = c->data + c->rows * c->width;
    switch (leaf->convert) {
    case PQ_WIDEN:
        ok = append_narrowed(leaf, v, to);
        break;
    case PQ_SCALE:
        ok = append_scaled(leaf, v, to);
        break;
    case PQ_BIG_ENDIAN:
        for (size_t i = 0; i < v->count; i++) {
            for (size_t j = 0; j < c->width; j++)
                to[i * c->width + j] = v->fixed[i * c->width + c->width - 1 - j];
            if (leaf->flip)
                to[(i + 1) * c->width - 1] ^= 0x80;
        }
        break;
    default:
        memcpy(to, v->fixed, v->count * c->width);
    }
    if (!ok)
        return bad_value(leaf, err);
    if (c->nulls != NULL)
        memset(c->nulls + c->rows, 0, v->count);
    c->rows += v->count;
    c->data_bytes = c->rows * c->width;
    return true;
}
