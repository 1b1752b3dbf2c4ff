/* text_print.c: one cell as text, in each spelling. */
#include <math.h>
#include <string.h>

#include "base/must.h"
#include "base/text.h"
#include "format/bfloat.h"
#include "format/text_date.h"
#include "format/text_net.h"
#include "format/text_number.h"
#include "format/text_value.h"
#include "format/timezone.h"

struct printer {
    struct strbuf *out;
    const struct format_settings *settings;
};

/* ---- strings ---- */

/* Control bytes, backslash and quote as TSV and SQL escape them. */
static void add_escaped(struct strbuf *out, struct str s)
{
    static const char from[] = "\b\f\n\r\t\\'", to[] = "bfnrt\\'";
    size_t done = 0;
    for (size_t i = 0; i < s.len; i++) {
        char c = s.data[i];
        const char *known = c == '\0' ? "" : strchr(from, c);
        if (known == NULL)
            continue;
        strbuf_add(out, str_sub(s, done, i - done));
        strbuf_add_char(out, '\\');
        strbuf_add_char(out, c == '\0' ? '0' : to[known - from]);
        done = i + 1;
    }
    strbuf_add(out, str_from(s, done));
}

static void add_between(struct strbuf *out, char quote, struct str s)
{
    strbuf_add_char(out, quote);
    strbuf_add(out, s);
    strbuf_add_char(out, quote);
}

static void add_sql(struct strbuf *out, struct str s)
{
    strbuf_add_char(out, '\'');
    add_escaped(out, s);
    strbuf_add_char(out, '\'');
}

static void add_csv(struct strbuf *out, struct str s)
{
    strbuf_add_char(out, '"');
    for (ptrdiff_t at; (at = str_find_char(s, '"')) >= 0; s = str_from(s, (size_t)at + 1)) {
        strbuf_add(out, str_sub(s, 0, (size_t)at));
        strbuf_add_text(out, "\"\"");
    }
    strbuf_add(out, s);
    strbuf_add_char(out, '"');
}

static void add_json(const struct printer *p, struct str s)
{
    static const char from[] = "\b\f\n\r\t\\\"", to[] = "bfnrt\\\"";
    struct strbuf *out = p->out;
    size_t done = 0;
    strbuf_add_char(out, '"');
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.data[i];
        const char *known = c == '\0' ? NULL : strchr(from, (char)c);
        bool slash = c == '/' && p->settings->output_format_json_escape_forward_slashes;
        /* U+2028 and U+2029 end lines in JavaScript */
        bool line = c == 0xE2 && s.len - i > 2 && (unsigned char)s.data[i + 1] == 0x80 &&
                    ((unsigned char)s.data[i + 2] | 1) == 0xA9;
        if (c >= 0x20 && known == NULL && !slash && !line)
            continue;
        strbuf_add(out, str_sub(s, done, i - done));
        if (line) {
            strbuf_add_text(out, (unsigned char)s.data[i + 2] == 0xA8 ? "\\u2028" : "\\u2029");
            i += 2;
        } else if (known == NULL && !slash)
            strbuf_addf(out, "\\u%04X", c);
        else {
            strbuf_add_char(out, '\\');
            strbuf_add_char(out, slash ? '/' : to[known - from]);
        }
        done = i + 1;
    }
    strbuf_add(out, str_from(s, done));
    strbuf_add_char(out, '"');
}

static void add_string(const struct printer *p, enum text_style style, struct str s)
{
    switch (style) {
    case TEXT_ESCAPED:
        add_escaped(p->out, s);
        return;
    case TEXT_QUOTED:
        add_sql(p->out, s);
        return;
    case TEXT_CSV:
        add_csv(p->out, s);
        return;
    case TEXT_JSON:
        add_json(p, s);
        return;
    default:
        strbuf_add(p->out, s);
    }
}

/* Text without anything to escape, in the quotes of the style. */
static void add_quotes(const struct printer *p, enum text_style style)
{
    if (style == TEXT_QUOTED)
        strbuf_add_char(p->out, '\'');
    else if (style == TEXT_CSV || style == TEXT_JSON)
        strbuf_add_char(p->out, '"');
}

/* ---- scalars ---- */

static void print_float(const struct printer *p, const struct column *c, size_t row, enum text_style style)
{
    const struct format_settings *s = p->settings;
    double value;
    float narrow = 0;
    if (c->type->kind == TYPE_FLOAT64)
        memcpy(&value, column_cell(c, row), sizeof value);
    else {
        if (c->type->kind == TYPE_BFLOAT16)
            narrow = bfloat_load(column_cell(c, row));
        else
            memcpy(&narrow, column_cell(c, row), sizeof narrow);
        value = (double)narrow;
    }
    bool json = style == TEXT_JSON, odd = !isfinite(value);
    bool quote = json && ((odd && s->output_format_json_quote_denormals) ||
                          (s->output_format_json_quote_64bit_floats && c->type->kind == TYPE_FLOAT64));
    bool null = json && odd && !s->output_format_json_quote_denormals; /* in quotes where Float64 is quoted, as it is */
    if (quote)
        strbuf_add_char(p->out, '"');
    if (json && !null && isnan(value) && signbit(value)) /* its sign shows in JSON only */
        strbuf_add_char(p->out, '-');
    if (null)
        strbuf_add_text(p->out, "null");
    else if (c->type->kind == TYPE_FLOAT64)
        number_print_double(p->out, value);
    else
        number_print_float(p->out, narrow);
    if (quote)
        strbuf_add_char(p->out, '"');
}

static const struct time_zone *zone_of(const struct printer *p, const struct type *type)
{
    const struct time_zone *zone =
        timezone_find(type->timezone.len > 0 ? type->timezone : p->settings->session_timezone);
    return zone == NULL ? timezone_utc() : zone; /* a zone without data prints as UTC */
}

static void print_time(const struct printer *p, const struct column *c, size_t row, enum text_style style)
{
    const void *cell = column_cell(c, row);
    uint16_t days;
    int32_t wide;
    uint32_t seconds;
    int64_t ticks;
    add_quotes(p, style);
    switch (c->type->kind) {
    case TYPE_DATE:
        memcpy(&days, cell, sizeof days);
        date_print_date(p->out, days);
        break;
    case TYPE_DATE32:
        memcpy(&wide, cell, sizeof wide);
        date_print_date(p->out, wide);
        break;
    case TYPE_DATETIME:
        memcpy(&seconds, cell, sizeof seconds);
        date_print_datetime(p->out, zone_of(p, c->type), seconds, p->settings);
        break;
    case TYPE_TIME:
        memcpy(&wide, cell, sizeof wide);
        date_print_time(p->out, 0, wide);
        break;
    case TYPE_TIME64:
        memcpy(&ticks, cell, sizeof ticks);
        date_print_time(p->out, c->type->precision, ticks);
        break;
    default:
        memcpy(&ticks, cell, sizeof ticks);
        date_print_datetime64(p->out, zone_of(p, c->type), c->type->precision, ticks, p->settings);
    }
    add_quotes(p, style);
}

static void print_net(const struct printer *p, const struct column *c, size_t row, enum text_style style)
{
    const void *cell = column_cell(c, row);
    uint32_t ip;
    add_quotes(p, style);
    if (c->type->kind == TYPE_UUID)
        net_print_uuid(p->out, (const uint8_t *)cell);
    else if (c->type->kind == TYPE_IPV6)
        net_print_ipv6(p->out, (const uint8_t *)cell);
    else {
        memcpy(&ip, cell, sizeof ip);
        net_print_ipv4(p->out, ip);
    }
    add_quotes(p, style);
}

static void print_enum(const struct printer *p, const struct column *c, size_t row, enum text_style style)
{
    int8_t small;
    int16_t wide;
    memcpy(&small, column_cell(c, row), sizeof small);
    if (c->width == sizeof wide)
        memcpy(&wide, column_cell(c, row), sizeof wide);
    else
        wide = small;
    const struct type_enum *element = type_enum_by_value(c->type, wide);
    if (element != NULL)
        add_string(p, style, element->name);
    else /* stored by a NULL where 0 is no element */
        strbuf_add_i64(p->out, wide);
}

static void print_bool(const struct printer *p, bool value, enum text_style style)
{
    const struct format_settings *s = p->settings;
    if (style == TEXT_JSON || style == TEXT_QUOTED)
        strbuf_add_text(p->out, value ? "true" : "false");
    else
        strbuf_add(p->out, value ? s->bool_true_representation : s->bool_false_representation);
}

static void print_int(const struct printer *p, const struct column *c, size_t row, enum text_style style)
{
    bool quote = style == TEXT_JSON && c->width >= 8 && p->settings->output_format_json_quote_64bit_integers;
    if (quote)
        strbuf_add_char(p->out, '"');
    number_print_int(p->out, c->type->kind, column_cell(c, row));
    if (quote)
        strbuf_add_char(p->out, '"');
}

static void print_null(const struct printer *p, enum text_style style)
{
    switch (style) {
    case TEXT_ESCAPED:
    case TEXT_RAW:
        strbuf_add(p->out, p->settings->format_tsv_null_representation);
        return;
    case TEXT_CSV:
        strbuf_add(p->out, p->settings->format_csv_null_representation);
        return;
    case TEXT_JSON:
        strbuf_add_text(p->out, "null");
        return;
    default:
        strbuf_add_text(p->out, "NULL");
    }
}

/* ---- arrays, maps, tuples ---- */

static void print_cell(const struct printer *p, const struct column *c, size_t row, enum text_style style);

static enum text_style inner_style(enum text_style style)
{
    return style == TEXT_JSON ? TEXT_JSON : TEXT_QUOTED;
}

static void print_fields(const struct printer *p, const struct column *c, size_t row, enum text_style style)
{
    bool json = style == TEXT_JSON;
    bool object = json && c->type->names != NULL && p->settings->output_format_json_named_tuples_as_objects;
    strbuf_add_char(p->out, object ? '{' : json ? '[' : '(');
    for (size_t i = 0; i < c->children_count; i++) {
        if (i > 0)
            strbuf_add_char(p->out, ',');
        if (object) {
            add_json(p, c->type->names[i]);
            strbuf_add_char(p->out, ':');
        }
        print_cell(p, &c->children[i], row, inner_style(style));
    }
    strbuf_add_char(p->out, object ? '}' : json ? ']' : ')');
}

static void print_array(const struct printer *p, const struct column *c, size_t row, enum text_style style)
{
    strbuf_add_char(p->out, '[');
    for (uint64_t i = column_start(c, row); i < c->offsets[row]; i++) {
        if (i > column_start(c, row))
            strbuf_add_char(p->out, ',');
        if (c->type->kind == TYPE_NESTED)
            print_fields(p, c, (size_t)i, style);
        else
            print_cell(p, &c->children[0], (size_t)i, inner_style(style));
    }
    strbuf_add_char(p->out, ']');
}

/* In JSON every key is a string. */
static void print_key(const struct printer *p, const struct column *keys, size_t row, enum text_style style)
{
    if (style != TEXT_JSON) {
        print_cell(p, keys, row, TEXT_QUOTED);
        return;
    }
    struct strbuf text = { 0 };
    print_cell(&(struct printer){ &text, p->settings }, keys, row, TEXT_PLAIN);
    add_json(p, strbuf_view(&text));
    strbuf_fini(&text);
}

/* An element as a tuple of the fields keys and values. */
static void print_pair(const struct printer *p, const struct column *c, size_t at)
{
    bool object = p->settings->output_format_json_named_tuples_as_objects;
    strbuf_add_text(p->out, object ? "{\"keys\":" : "[");
    print_cell(p, &c->children[0], at, TEXT_JSON);
    strbuf_add_text(p->out, object ? ",\"values\":" : ",");
    print_cell(p, &c->children[1], at, TEXT_JSON);
    strbuf_add_char(p->out, object ? '}' : ']');
}

static void print_map(const struct printer *p, const struct column *c, size_t row, enum text_style style)
{
    bool pairs = style == TEXT_JSON && p->settings->output_format_json_map_as_array_of_tuples;
    strbuf_add_char(p->out, pairs ? '[' : '{');
    for (uint64_t i = column_start(c, row); i < c->offsets[row]; i++) {
        if (i > column_start(c, row))
            strbuf_add_char(p->out, ',');
        if (pairs) {
            print_pair(p, c, (size_t)i);
            continue;
        }
        print_key(p, &c->children[0], (size_t)i, style);
        strbuf_add_char(p->out, ':');
        print_cell(p, &c->children[1], (size_t)i, inner_style(style));
    }
    strbuf_add_char(p->out, pairs ? ']' : '}');
}

static void print_compound(const struct printer *p, const struct column *c, size_t row, enum text_style style)
{
    if (c->type->kind == TYPE_TUPLE)
        print_fields(p, c, row, style);
    else if (c->type->kind == TYPE_MAP)
        print_map(p, c, row, style);
    else
        print_array(p, c, row, style);
}

/* A tuple is its elements as columns of their own; the others are one field. */
static void print_compound_csv(const struct printer *p, const struct column *c, size_t row)
{
    if (c->type->kind == TYPE_TUPLE) {
        for (size_t i = 0; i < c->children_count; i++) {
            if (i > 0)
                strbuf_add(p->out, p->settings->format_csv_delimiter);
            print_cell(p, &c->children[i], row, TEXT_CSV);
        }
        return;
    }
    struct strbuf text = { 0 };
    print_compound(&(struct printer){ &text, p->settings }, c, row, TEXT_QUOTED);
    add_csv(p->out, strbuf_view(&text));
    strbuf_fini(&text);
}

static void print_cell(const struct printer *p, const struct column *c, size_t row, enum text_style style)
{
    if (column_is_null(c, row)) {
        print_null(p, style);
        return;
    }
    switch (c->type->kind) {
    case TYPE_BFLOAT16:
    case TYPE_FLOAT32:
    case TYPE_FLOAT64:
        print_float(p, c, row, style);
        return;
    case TYPE_BOOL:
        print_bool(p, *(const uint8_t *)column_cell(c, row) != 0, style);
        return;
    case TYPE_STRING:
    case TYPE_FIXED_STRING:
        add_string(p, style, column_str(c, row));
        return;
    case TYPE_DATE:
    case TYPE_DATE32:
    case TYPE_DATETIME:
    case TYPE_DATETIME64:
    case TYPE_TIME:
    case TYPE_TIME64:
        print_time(p, c, row, style);
        return;
    case TYPE_DECIMAL:
        if (style == TEXT_JSON && p->settings->output_format_json_quote_decimals) {
            struct strbuf text = { 0 };
            number_print_decimal(&text, c->type, column_cell(c, row));
            add_between(p->out, '"', strbuf_view(&text));
            strbuf_fini(&text);
        } else
            number_print_decimal(p->out, c->type, column_cell(c, row));
        return;
    case TYPE_ENUM8:
    case TYPE_ENUM16:
        print_enum(p, c, row, style);
        return;
    case TYPE_UUID:
    case TYPE_IPV4:
    case TYPE_IPV6:
        print_net(p, c, row, style);
        return;
    case TYPE_ARRAY:
    case TYPE_MAP:
    case TYPE_TUPLE:
    case TYPE_NESTED:
        if (style == TEXT_CSV)
            print_compound_csv(p, c, row);
        else
            print_compound(p, c, row, style);
        return;
    case TYPE_NOTHING:
        print_null(p, style);
        return;
    default:
        print_int(p, c, row, style);
    }
}

void text_value_print(const struct column *c, size_t row, enum text_style style, const struct format_settings *settings,
                      struct strbuf *out)
{
    must(row < c->rows);
    print_cell(&(struct printer){ out, settings }, c, row, style);
}
