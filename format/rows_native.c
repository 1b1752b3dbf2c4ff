/* rows_native.c: Native: blocks of columns, each with its name and type.
 *
 *   varint columns, varint rows, then each column: name, type, data (native_read.c)
 *
 * Columns are matched by name alone, letter for letter; one that comes twice counts once. What has the table's type
 * goes straight into the table's column; what has another is read as it is and converted (rows_block.c).
 *
 * The block info that the native protocol puts before a block (01, overflow flag, 02, bucket number, 00) and the byte
 * behind each type (0: no custom serialization) are in answers, not in inserts; who sends an answer's bytes back is
 * understood. As a block without info these bytes would be a column whose type's name holds a 0 or 3: there is none. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/must.h"
#include "base/text.h"
#include "format/binary_read.h"
#include "format/binary_type.h"
#include "format/column_cast.h"
#include "format/native_read.h"
#include "format/rows_internal.h"

enum { COLUMNS_MAX = 1000000, COLUMNS_HELD_MAX = 1 << 16, ROWS_WITHOUT_BYTES_MAX = 1 << 16 };

static const uint64_t ROWS_MAX = UINT64_C(1000000000000);

struct row_native {
    struct arena *arena;
    struct row_block columns; /* of the block being read; types are kept for the next */
    struct str *spelled;      /* each type's text, in the arena */
    size_t spelled_cap;
    struct strbuf type_text; /* of a type that came as bytes */
    uint64_t expanded;
    bool info, custom; /* the bytes of answers are there */
    bool ended;
};

/* ---- a block's head ---- */

/* Bytes of the block info that is next: fields 1 and 2, since version 54480 an empty field 3, and 0. */
static size_t info_bytes(const struct text_reader *r)
{
    enum { SHORT = 8, LONG = 10 };
    if (binary_left(r) < SHORT || r->at[0] != 1 || (uint8_t)r->at[1] > 1 || r->at[2] != 2)
        return 0;
    if (r->at[SHORT - 1] == 0)
        return SHORT;
    return binary_left(r) >= LONG && memcmp(r->at + SHORT - 1, "\x03\0", 3) == 0 ? LONG : 0;
}

static bool read_head(struct row_parser *p, struct row_native *own)
{
    uint64_t columns, rows;
    if (own->info)
        p->r.at += info_bytes(&p->r);
    if (!binary_varint(&p->r, &columns) || !binary_varint(&p->r, &rows))
        return false;
    if (columns > COLUMNS_MAX)
        return text_fail(&p->r, ERR_TOO_LARGE_ARRAY_SIZE, "Suspiciously many columns in Native format: %llu",
                         (unsigned long long)columns);
    if (rows > ROWS_MAX || (columns == 0 && rows > ROWS_WITHOUT_BYTES_MAX))
        return text_fail(&p->r, ERR_TOO_LARGE_ARRAY_SIZE, "Suspiciously many rows in Native format: %llu",
                         (unsigned long long)rows);
    own->columns.count = (size_t)columns;
    own->columns.rows = (size_t)rows;
    own->columns.at = 0;
    own->ended = columns == 0 && rows == 0;
    return true;
}

/* ---- a column ---- */

static bool read_type_text(struct row_parser *p, struct row_native *own, struct str *text)
{
    if (!p->target->settings->input_format_native_decode_types_in_binary_format)
        return binary_string(&p->r, text);
    bool ok = binary_type_text(&p->r, &own->type_text);
    *text = strbuf_view(&own->type_text);
    return ok;
}

/* Types of a place seldom change from one block to the next. */
static bool take_type(struct row_parser *p, struct row_native *own, size_t place, struct str text)
{
    struct row_column *column = &own->columns.list[place];
    const struct type *type;
    if (place >= own->spelled_cap) {
        own->spelled_cap = own->columns.cap;
        own->spelled = (struct str *)mem_realloc(own->spelled, own->spelled_cap * sizeof own->spelled[0]);
    }
    if (column->type != NULL && str_eq(own->spelled[place], text))
        return true;
    struct str spelled = arena_dup(own->arena, text);
    if (!type_parse(spelled, own->arena, &type, p->r.err))
        return false;
    own->spelled[place] = spelled;
    column->type = type;
    return true;
}

static int find_column(struct row_parser *p, struct str name)
{
    return row_names_find(p->names, p->target, name, (struct row_match){ .exact = true });
}

static enum type_kind stored_kind(const struct type *type)
{
    return type->kind == TYPE_BOOL ? TYPE_UINT8 : type->kind;
}

/* Without conversion of types: do the cells mean the same? NULL may still become the default. */
static bool means_the_same(const struct type *wire, const struct type *to, bool null_as_default)
{
    if (stored_kind(wire) != stored_kind(to) || type_width(wire) != type_width(to) || wire->scale != to->scale ||
        wire->fixed_bytes != to->fixed_bytes || wire->children_count != to->children_count ||
        (wire->nullable != to->nullable && (to->nullable || !null_as_default)) ||
        (wire->kind == TYPE_DATETIME64 && wire->precision != to->precision))
        return false;
    for (size_t i = 0; i < wire->children_count; i++)
        if (!means_the_same(wire->children[i], to->children[i], null_as_default))
            return false;
    return true;
}

/* The columns this block has had are marked in p->state. */
static int find_target(struct row_parser *p, struct str name)
{
    int found = find_column(p, name);
    if (found < 0 || p->state[found] == CELL_READ)
        return FIELD_UNKNOWN;
    p->state[found] = CELL_READ;
    return found;
}

static bool read_column(struct row_parser *p, struct row_native *own, size_t place)
{
    struct text_reader *r = &p->r;
    struct str name = STR_EMPTY, text = STR_EMPTY;
    if (place == COLUMNS_HELD_MAX)
        return text_fail(r, ERR_TOO_LARGE_ARRAY_SIZE, "More than %d columns in Native format", COLUMNS_HELD_MAX);
    struct row_column *column = row_block_begin(&own->columns, place);
    size_t rows = own->columns.rows;
    if (!binary_string(r, &name) || !read_type_text(p, own, &text) || !take_type(p, own, place, text))
        return false;
    if (own->custom && own->info) {
        if (text_eof(r))
            return binary_cut(r, 1);
        if (*r->at++ != 0)
            return text_fail(r, ERR_NOT_IMPLEMENTED, "Custom serialization in Native format is not supported");
    }
    column->target = find_target(p, name);
    p->column = column->target;
    struct column *to = column->target < 0 ? NULL : &p->block->columns[column->target];
    if (to != NULL && column_cast_is_copy(column->type, to->type))
        return native_read(r, column->type, rows, &own->expanded, to);
    const struct format_settings *s = p->target->settings;
    if (to != NULL && !s->input_format_native_allow_types_conversion &&
        !means_the_same(column->type, to->type, s->input_format_null_as_default))
        return text_fail(r, ERR_TYPE_MISMATCH, "Cannot convert: " STR_FMT " to " STR_FMT, STR_ARG(column->type->text),
                         STR_ARG(to->type->text));
    column_init(&column->data, column->type);
    if (!native_read(r, column->type, rows, &own->expanded, &column->data))
        return false;
    if (to != NULL)
        return row_block_convert(p, &own->columns, column);
    p->report->fields_skipped += rows;
    if (find_column(p, name) >= 0 || p->target->settings->input_format_skip_unknown_fields)
        return true;
    struct strbuf shown = { 0 };
    text_add_printable(&shown, name, 64);
    (void)text_fail(r, ERR_INCORRECT_DATA, "Unknown column with name %s found while reading data in Native format",
                    strbuf_cstr(&shown));
    strbuf_fini(&shown);
    return false;
}

static bool read_block(struct row_parser *p, struct row_native *own)
{
    size_t count = p->target->schema->columns_count;
    if (!read_head(p, own))
        return false;
    for (size_t i = 0; i < own->columns.count; i++)
        if (!read_column(p, own, i))
            return false;
    memcpy(p->state, p->state_new, count);
    p->column = -1;
    return true;
}

/* ---- rows ---- */

static enum row_step native_row(struct row_parser *p)
{
    struct row_native *own = p->own;
    while (own->columns.at == own->columns.rows) {
        if (own->ended || text_eof(&p->r))
            return ROW_END;
        if (!read_block(p, own))
            return ROW_FAILED;
    }
    return row_block_row(p, &own->columns);
}

/* With block info: is there a byte behind each type? All of the body has to make sense one way or the other. */
static bool makes_sense(struct row_parser *p, struct row_native *own)
{
    struct text_reader before = p->r;
    struct err *err = p->r.err, ignored = { 0 };
    size_t rows = p->row;
    bool ok = true;
    p->r.err = &ignored;
    while (ok && !text_eof(&p->r) && !own->ended) {
        ok = read_block(p, own);
        for (size_t i = 0; i < p->block->columns_count; i++)
            column_truncate(&p->block->columns[i], rows);
    }
    before.scratch = p->r.scratch;
    before.field = p->r.field;
    p->r = before;
    p->r.err = err;
    p->column = -1;
    p->report->fields_skipped = 0;
    memcpy(p->state, p->state_new, p->target->schema->columns_count);
    own->columns.rows = own->columns.at = 0;
    own->expanded = 0;
    own->ended = false;
    return ok;
}

static bool native_start(struct row_parser *p)
{
    struct row_native *own = NEW(struct row_native);
    p->own = own;
    own->arena = arena_new(1024);
    own->info = info_bytes(&p->r) > 0;
    own->custom = own->info && !makes_sense(p, own);
    return true;
}

static void native_end(struct row_parser *p)
{
    struct row_native *own = p->own;
    if (own == NULL)
        return;
    row_block_fini(&own->columns);
    free(own->spelled);
    strbuf_fini(&own->type_text);
    arena_free(own->arena);
    free(own);
}

/* Not to be joined as bytes: an empty block ends what is read, and some clients close with one. */
const struct row_format rows_native = { .name = "Native", .start = native_start, .row = native_row, .end = native_end };
