/* partition_id.c: see partition_id.h.
 *
 * An id is the values joined by '-' where all are whole numbers (a Date counts as YYYYMMDD); otherwise the hash of the
 * values, each with a byte for its kind before it, as the engine's Field is hashed. */
#include "storage/partition_id.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/strbuf.h"
#include "format/format_settings.h"
#include "format/text_value.h"
#include "format/timezone.h"
#include "storage/catalog_name.h"

/* ---- SipHash ---- */

struct sip {
    uint64_t v0, v1, v2, v3;
};

static uint64_t rotate(uint64_t x, unsigned bits)
{
    return x << bits | x >> (64 - bits);
}

static void sip_round(struct sip *s)
{
    s->v0 += s->v1;
    s->v1 = rotate(s->v1, 13) ^ s->v0;
    s->v0 = rotate(s->v0, 32);
    s->v2 += s->v3;
    s->v3 = rotate(s->v3, 16) ^ s->v2;
    s->v0 += s->v3;
    s->v3 = rotate(s->v3, 21) ^ s->v0;
    s->v2 += s->v1;
    s->v1 = rotate(s->v1, 17) ^ s->v2;
    s->v2 = rotate(s->v2, 32);
}

static void sip_word(struct sip *s, uint64_t word)
{
    s->v3 ^= word;
    sip_round(s);
    sip_round(s);
    s->v0 ^= word;
}

static uint64_t little_endian(const char *bytes, size_t count)
{
    uint64_t word = 0;
    for (size_t i = 0; i < count; i++)
        word |= (uint64_t)(unsigned char)bytes[i] << (8 * i);
    return word;
}

static void print_hex(uint64_t word, char *out)
{
    for (size_t i = 0; i < 8; i++)
        snprintf(out + 2 * i, 3, "%02x", (unsigned)(word >> (8 * i) & 0xff));
}

void partition_siphash_hex(struct str bytes, char out[33])
{
    struct sip s = { 0x736f6d6570736575, 0x646f72616e646f6d, 0x6c7967656e657261, 0x7465646279746573 };
    size_t whole = bytes.len / 8 * 8;
    for (size_t i = 0; i < whole; i += 8)
        sip_word(&s, little_endian(bytes.data + i, 8));
    sip_word(&s, little_endian(bytes.data + whole, bytes.len - whole) | (uint64_t)(bytes.len & 0xff) << 56);
    s.v2 ^= 0xff;
    for (int i = 0; i < 4; i++)
        sip_round(&s);
    print_hex(s.v0 ^ s.v1, out);
    print_hex(s.v2 ^ s.v3, out + 16);
}

/* ---- the id ---- */

enum field_kind { /* the engine's numbers for kinds of values */
                  FIELD_NULL = 0,
                  FIELD_UINT64 = 1,
                  FIELD_INT64 = 2,
                  FIELD_UINT128 = 4,
                  FIELD_INT128 = 5,
                  FIELD_STRING = 16,
                  FIELD_DECIMAL32 = 19,
                  FIELD_DECIMAL64 = 20,
                  FIELD_DECIMAL128 = 21,
                  FIELD_DECIMAL256 = 23,
                  FIELD_UINT256 = 24,
                  FIELD_INT256 = 25
};

/* The cell as a number: *is_signed says how to read it. False for what is none. */
static bool whole_number(const struct partition_value *value, uint64_t *out, bool *is_signed)
{
    const struct column *c = value->column;
    const void *cell = column_is_null(c, value->row) ? NULL : column_cell(c, value->row);
    if (cell == NULL)
        return false;
    *is_signed = false;
    switch (c->type->kind) {
    case TYPE_UINT8:
    case TYPE_BOOL:
        *out = *(const uint8_t *)cell;
        return true;
    case TYPE_UINT16:
    case TYPE_DATE:
    case TYPE_UINT32:
    case TYPE_DATETIME:
    case TYPE_IPV4:
    case TYPE_UINT64:
        *out = little_endian(cell, c->width);
        return true;
    case TYPE_INT8:
    case TYPE_ENUM8:
    case TYPE_INT16:
    case TYPE_ENUM16:
    case TYPE_INT32:
    case TYPE_DATE32:
    case TYPE_INT64: {
        unsigned unused = (unsigned)(64 - 8 * c->width);
        *out = (uint64_t)((int64_t)(little_endian(cell, c->width) << unused) >> unused);
        *is_signed = true;
        return true;
    }
    default:
        return false;
    }
}

static bool add_number(const struct partition_value *value, struct strbuf *id)
{
    uint64_t number = 0;
    bool is_signed = false;
    if (!whole_number(value, &number, &is_signed))
        return false;
    if (value->column->type->kind == TYPE_DATE) {
        int64_t year = 0;
        unsigned month = 0, day = 0;
        civil_date((int64_t)number, &year, &month, &day);
        number = (uint64_t)year * 10000 + month * 100 + day;
    }
    if (is_signed)
        strbuf_add_i64(id, (int64_t)number);
    else
        strbuf_add_u64(id, number);
    return true;
}

static void add_field(struct strbuf *out, enum field_kind kind, const void *bytes, size_t len)
{
    strbuf_add_char(out, (char)kind);
    if (len > 0)
        strbuf_add_bytes(out, bytes, len);
}

static void add_string_field(struct strbuf *out, struct str s)
{
    uint64_t len = s.len;
    add_field(out, FIELD_STRING, &len, sizeof len);
    strbuf_add(out, s);
}

static enum field_kind wide_kind(const struct type *type, size_t width)
{
    switch (type->kind) {
    case TYPE_UINT128:
        return FIELD_UINT128;
    case TYPE_INT128:
        return FIELD_INT128;
    case TYPE_UINT256:
        return FIELD_UINT256;
    case TYPE_INT256:
        return FIELD_INT256;
    default:
        return width == 4    ? FIELD_DECIMAL32
               : width == 8  ? FIELD_DECIMAL64
               : width == 16 ? FIELD_DECIMAL128
                             : FIELD_DECIMAL256;
    }
}

static void hash_value(const struct partition_value *value, struct strbuf *out)
{
    const struct column *c = value->column;
    uint64_t number = 0;
    bool is_signed = false;
    if (column_is_null(c, value->row)) {
        add_field(out, FIELD_NULL, NULL, 0);
    } else if (whole_number(value, &number, &is_signed)) {
        add_field(out, is_signed ? FIELD_INT64 : FIELD_UINT64, &number, sizeof number);
    } else if (c->type->kind == TYPE_STRING || c->type->kind == TYPE_FIXED_STRING) {
        add_string_field(out, column_str(c, value->row));
    } else if (c->type->kind == TYPE_IPV6) {
        add_string_field(out, str_make(column_cell(c, value->row), 16));
    } else if (c->type->kind == TYPE_UUID) { /* two big-endian halves, kept as a number */
        const char *text_order = column_cell(c, value->row);
        char swapped[16];
        for (size_t i = 0; i < 16; i++)
            swapped[i] = text_order[i < 8 ? 7 - i : 23 - i];
        add_field(out, FIELD_UINT128, swapped, sizeof swapped);
    } else {
        add_field(out, wide_kind(c->type, c->width), column_cell(c, value->row), c->width);
    }
}

static void make_id(const struct partition_value *values, size_t count, char id[PARTITION_ID_BYTES])
{
    struct strbuf text = { 0 };
    bool numbers = true;
    for (size_t i = 0; i < count && numbers; i++) {
        if (i > 0)
            strbuf_add_char(&text, '-');
        numbers = add_number(&values[i], &text);
    }
    if (numbers && text.len < PARTITION_ID_BYTES) {
        memcpy(id, strbuf_cstr(&text), text.len + 1);
    } else {
        char hex[33];
        strbuf_clear(&text);
        for (size_t i = 0; i < count; i++)
            hash_value(&values[i], &text);
        partition_siphash_hex(strbuf_view(&text), hex);
        memcpy(id, hex, sizeof hex);
    }
    strbuf_fini(&text);
}

/* ---- text and directory ---- */

static void make_text(const struct partition_value *values, size_t count, bool is_tuple, struct strbuf *out)
{
    if (is_tuple)
        strbuf_add_char(out, '(');
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            strbuf_add_char(out, ',');
        if (column_is_null(values[i].column, values[i].row))
            strbuf_add_text(out, is_tuple ? "NULL" : "\xe1\xb4\xba\xe1\xb5\x81\xe1\xb4\xb8\xe1\xb4\xb8");
        else
            text_value_print(values[i].column, values[i].row, is_tuple ? TEXT_QUOTED : TEXT_PLAIN,
                             format_settings_default(), out);
    }
    if (is_tuple)
        strbuf_add_char(out, ')');
}

/* Two instants of a zone with summer time can have one text; then the id, which is the number, tells them apart. */
static bool text_is_ambiguous(const struct type *type)
{
    return (type->kind == TYPE_DATETIME || type->kind == TYPE_DATETIME64) && type->timezone.len > 0 &&
           !str_is(type->timezone, "UTC");
}

static void make_dir(const struct partition_key *key, const struct partition_value *values, size_t count, bool is_tuple,
                     struct str plain_column, char dir[CATALOG_NAME_BYTES])
{
    const struct partition_value *first = &values[0];
    bool by_id = count != 1 || is_tuple || text_is_ambiguous(first->column->type);
    struct str value = str_of(by_id ? key->id : key->text);
    if (plain_column.len == 0 || by_id) {
        catalog_name_encode(value, dir);
        return;
    }
    char name[CATALOG_NAME_BYTES], encoded[CATALOG_NAME_BYTES] = "__HIVE_DEFAULT_PARTITION__";
    catalog_name_encode(plain_column, name);
    if (!column_is_null(first->column, first->row))
        catalog_name_encode(value, encoded);
    struct strbuf whole = { 0 };
    strbuf_addf(&whole, "%s=%s", name, encoded);
    if (whole.len <= CATALOG_NAME_LEN_MAX) {
        memcpy(dir, strbuf_cstr(&whole), whole.len + 1);
    } else {
        struct hash128 hash = hash128(strbuf_view(&whole));
        snprintf(dir, CATALOG_NAME_BYTES, "%%h%016" PRIx64 "%016" PRIx64, hash.hi, hash.lo);
    }
    strbuf_fini(&whole);
}

void partition_key_make(const struct partition_value *values, size_t count, bool is_tuple, struct str plain_column,
                        struct partition_key *key)
{
    char dir[CATALOG_NAME_BYTES];
    struct strbuf text = { 0 };
    must(count > 0);
    *key = (struct partition_key){ 0 };
    make_id(values, count, key->id);
    make_text(values, count, is_tuple, &text);
    key->text = mem_strdup(strbuf_cstr(&text));
    strbuf_fini(&text);
    make_dir(key, values, count, is_tuple, plain_column, dir);
    key->dir = mem_strdup(dir);
}
