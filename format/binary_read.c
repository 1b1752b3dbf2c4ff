/* binary_read.c: cells of RowBinary. */
#include "format/binary_read.h"

bool binary_cut(struct text_reader *r, uint64_t expected)
{
    return text_fail(r, ERR_CANNOT_READ_ALL_DATA, "Cannot read all data. Bytes read: %zu. Bytes expected: %llu",
                     binary_left(r), (unsigned long long)expected);
}

bool binary_varint_slow(struct text_reader *r, uint64_t *out)
{
    enum { BYTES_MAX = 10 };
    uint64_t value = 0;
    for (unsigned i = 0; i < BYTES_MAX; i++) {
        if (text_eof(r))
            return text_fail(r, ERR_ATTEMPT_TO_READ_AFTER_EOF, "Attempt to read after eof");
        uint8_t byte = (uint8_t)*r->at++;
        value |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80)
            break;
    }
    *out = value;
    return true;
}

void binary_uuid(const char *from, uint8_t to[static 16])
{
    for (size_t i = 0; i < 16; i++)
        to[i] = (uint8_t)from[i < 8 ? 7 - i : 23 - i];
}

void binary_push_nothing(struct column *c, size_t rows)
{
    column_reserve(c, rows, 0);
    if (c->nulls != NULL)
        memset(c->nulls + c->rows, 1, rows);
    c->rows += rows;
}

static bool fixed_cell(struct text_reader *r, struct column *c)
{
    uint8_t cell[16];
    if (binary_left(r) < c->width)
        return binary_cut(r, c->width);
    const char *from = r->at;
    r->at += c->width;
    if (c->type->kind == TYPE_UUID) {
        binary_uuid(from, cell);
        column_push_fixed(c, cell);
    } else if (c->type->kind == TYPE_BOOL)
        column_push_fixed(c, &(uint8_t){ *from != 0 });
    else
        column_push_fixed(c, from);
    return true;
}

/* Array, Map, Nested. */
static bool list_cell(struct text_reader *r, struct column *c)
{
    uint64_t count;
    if (!binary_varint(r, &count))
        return false;
    if (count > BINARY_ARRAY_MAX)
        return text_fail(r, ERR_TOO_LARGE_ARRAY_SIZE, "Too large array size: %llu. The maximum is: %d",
                         (unsigned long long)count, BINARY_ARRAY_MAX);
    for (uint64_t i = 0; i < count; i++) {
        const char *from = r->at;
        for (size_t k = 0; k < c->children_count; k++)
            if (!binary_cell(r, &c->children[k]))
                return false;
        if (r->at == from) /* an element of no bytes: any count would do */
            return text_fail(r, ERR_INCORRECT_DATA, "Elements of " STR_FMT " take no bytes in this format",
                             STR_ARG(str_sub(c->type->text, 0, 80)));
    }
    column_push_row_end(c);
    return true;
}

bool binary_cell(struct text_reader *r, struct column *c)
{
    struct str string = STR_EMPTY;
    if (c->type->nullable) {
        if (text_eof(r))
            return binary_cut(r, 1);
        if (*r->at++ != 0 && c->type->kind != TYPE_NOTHING) {
            column_push_null(c);
            return true;
        }
    }
    switch (c->type->kind) {
    case TYPE_STRING:
        if (!binary_string(r, &string))
            return false;
        column_push_str(c, string);
        return true;
    case TYPE_TUPLE:
        for (size_t i = 0; i < c->children_count; i++)
            if (!binary_cell(r, &c->children[i]))
                return false;
        column_push_row_end(c);
        return true;
    case TYPE_ARRAY:
    case TYPE_MAP:
    case TYPE_NESTED:
        return list_cell(r, c);
    case TYPE_NOTHING:
        binary_push_nothing(c, 1);
        return true;
    default:
        return fixed_cell(r, c);
    }
}
