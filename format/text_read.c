/* text_read.c: one value of a column's type, off the front of a text, in each spelling.
 *
 * For each spelling there is one function with a switch over the kinds of type; what several share (an optional quote,
 * the brackets of arrays) stands above. Strings are in text_string.c, numbers in text_number.c, dates in text_date.c.
 */
#include "format/text_read.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "base/text.h"
#include "format/text_date.h"
#include "format/text_net.h"
#include "format/text_number.h"
#include "format/timezone.h"

enum { CELL_MAX = 32, SHOWN_MAX = 160 };

/* ---- the reader ---- */

bool text_reader_init(struct text_reader *r, struct str text, const struct format_settings *settings, int64_t wall_ns,
                      struct err *err)
{
    *r = (struct text_reader){ .at = text.data,
                               .end = text.data + text.len,
                               .start = text.data,
                               .settings = settings,
                               .csv_delimiter = settings->format_csv_delimiter.data[0],
                               .err = err,
                               .wall_ns = wall_ns,
                               .session = timezone_find(settings->session_timezone) };
    if (r->session == NULL)
        return err_set(err, ERR_BAD_ARGUMENTS, "Unknown session_timezone: " STR_FMT,
                       STR_ARG(settings->session_timezone));
    return true;
}

void text_reader_fini(struct text_reader *r)
{
    strbuf_fini(&r->scratch);
    strbuf_fini(&r->field);
}

bool text_take_word(struct text_reader *r, const char *word)
{
    size_t len = strlen(word);
    if ((size_t)(r->end - r->at) < len || memcmp(r->at, word, len) != 0)
        return false;
    r->at += len;
    return true;
}

bool text_take_word_nocase(struct text_reader *r, const char *word)
{
    size_t len = strlen(word);
    if ((size_t)(r->end - r->at) < len || strncasecmp(r->at, word, len) != 0)
        return false;
    r->at += len;
    return true;
}

bool text_take_str(struct text_reader *r, struct str word)
{
    if ((size_t)(r->end - r->at) < word.len || (word.len > 0 && memcmp(r->at, word.data, word.len) != 0))
        return false;
    r->at += word.len;
    return true;
}

bool text_fail(struct text_reader *r, enum err_code code, const char *format, ...)
{
    va_list args;
    r->err->code = code;
    va_start(args, format);
    (void)vsnprintf(r->err->text, sizeof r->err->text, format, args);
    va_end(args);
    return false;
}

bool text_fail_at(struct text_reader *r, enum err_code code, const char *from, size_t max, const char *format)
{
    struct strbuf shown = { 0 };
    size_t len = (size_t)(r->end - from);
    text_add_printable(&shown, str_make(from, len < max ? len : max), max);
    r->err->code = code;
    const char *gap = strstr(format, "%s");
    must(gap != NULL);
    (void)snprintf(r->err->text, sizeof r->err->text, "%.*s%s%s", (int)(gap - format), format, strbuf_cstr(&shown),
                   gap + 2);
    strbuf_fini(&shown);
    return false;
}

bool text_expected(struct text_reader *r, const char *what)
{
    char escape[4] = "";
    if (what[0] != '\0' && what[1] == '\0' && strchr("\t\n\r", what[0]) != NULL) {
        (void)snprintf(escape, sizeof escape, "\\%c", what[0] == '\t' ? 't' : what[0] == '\n' ? 'n' : 'r');
        what = escape;
    }
    if (text_eof(r))
        return text_fail(r, ERR_CANNOT_PARSE_INPUT_ASSERTION_FAILED,
                         "Cannot parse input: expected '%s' at end of stream", what);
    struct strbuf shown = { 0 };
    text_add_printable(&shown, str_make(r->at, MIN((size_t)(r->end - r->at), (size_t)SHOWN_MAX)), SHOWN_MAX);
    (void)text_fail(r, ERR_CANNOT_PARSE_INPUT_ASSERTION_FAILED, "Cannot parse input: expected '%s' before: '%s'", what,
                    strbuf_cstr(&shown));
    strbuf_fini(&shown);
    return false;
}

bool text_ended(struct text_reader *r)
{
    return text_fail(r, ERR_ATTEMPT_TO_READ_AFTER_EOF, "Attempt to read after eof");
}

static const struct time_zone *zone_of(struct text_reader *r, const struct type *type)
{
    if (type->timezone.len == 0)
        return r->session;
    if (r->zone_type != type) {
        r->zone = timezone_find(type->timezone);
        r->zone_type = type;
    }
    if (r->zone == NULL)
        (void)text_fail(r, ERR_BAD_ARGUMENTS, "No data for time zone " STR_FMT, STR_ARG(type->timezone));
    return r->zone;
}

void column_push_zero(struct column *c)
{
    static const uint8_t zero[CELL_MAX];
    if (c->type->kind == TYPE_TUPLE) {
        for (size_t i = 0; i < c->children_count; i++)
            column_push_zero(&c->children[i]);
        column_push_row_end(c);
    } else if (!c->type->nullable && c->width != 0 && c->width <= sizeof zero)
        column_push_fixed(c, zero);
    else
        column_push_default(c);
}

/* ---- NULL ---- */

bool text_read_null_json(struct text_reader *r)
{
    return text_is(r, 'n') && text_take_word(r, "null");
}

/* The text of NULL, and after it one of the delimiters or the end. */
static bool take_null(struct text_reader *r, struct str null, char a, char b, bool cr)
{
    size_t left = (size_t)(r->end - r->at);
    if (left < null.len || memcmp(r->at, null.data, null.len) != 0)
        return false;
    const char *after = r->at + null.len;
    if (after < r->end && *after != a && *after != b && !(cr && *after == '\r'))
        return false;
    r->at = after;
    return true;
}

bool text_read_null_escaped(struct text_reader *r)
{
    const struct format_settings *s = r->settings;
    if (text_eof(r)) /* nothing is not NULL, whatever NULL looks like */
        return false;
    return take_null(r, s->format_tsv_null_representation, '\t', '\n', s->input_format_tsv_crlf_end_of_line);
}

bool text_read_null_quoted(struct text_reader *r)
{
    return r->at < r->end && (*r->at | 0x20) == 'n' && text_take_word_nocase(r, "NULL");
}

bool text_read_null_csv(struct text_reader *r)
{
    struct str null = r->settings->format_csv_null_representation;
    const char *from = r->at;
    if (text_eof(r))
        return false;
    if (r->csv_delimiter_long.len == 0)
        return take_null(r, null, r->csv_delimiter, '\n', true);
    bool taken = text_take_str(r, null);
    const char *after = r->at;
    taken = taken && text_take_str(r, r->csv_delimiter_long);
    r->at = taken ? after : from;
    return taken;
}

bool text_read_null_whole(struct text_reader *r)
{
    struct str rest = str_make(r->at, (size_t)(r->end - r->at));
    if (!str_eq_nocase(rest, STR("NULL")) && !str_eq(rest, STR("ᴺᵁᴸᴸ")))
        return false;
    r->at = r->end;
    return true;
}

bool text_read_element(struct text_reader *r, struct column *c, text_read_fn *read,
                       bool (*read_null)(struct text_reader *))
{
    if (!column_takes_null(c) && r->settings->input_format_null_as_default && read_null(r)) {
        column_push_zero(c);
        return true;
    }
    return read(r, c);
}

/* ---- scalars from a slice or the cursor ---- */

static bool push_fixed_string(struct text_reader *r, struct column *c, struct str s)
{
    if (s.len > c->width)
        return text_fail(r, ERR_TOO_LARGE_STRING_SIZE, "Too large value for FixedString(%zu)", c->width);
    if (s.len == c->width) {
        column_push_fixed(c, s.data);
        return true;
    }
    strbuf_clear(&r->field);
    char *cell = strbuf_room(&r->field, c->width);
    memcpy(cell, s.data, s.len);
    memset(cell + s.len, 0, c->width - s.len);
    column_push_fixed(c, cell);
    return true;
}

bool text_push_string(struct text_reader *r, struct column *c, struct str s)
{
    if (c->type->kind == TYPE_FIXED_STRING)
        return push_fixed_string(r, c, s);
    column_push_str(c, s);
    return true;
}

static void push_enum_value(struct column *c, int value)
{
    int8_t small = (int8_t)value;
    int16_t wide = (int16_t)value;
    column_push_fixed(c, c->type->kind == TYPE_ENUM8 ? (const void *)&small : (const void *)&wide);
}

/* A number that is the whole of the text, as far as enums need it. */
static bool small_number(struct str text, int *value)
{
    const char *p = text.data, *end = p + text.len;
    bool minus = p < end && *p == '-';
    p += p < end && (*p == '-' || *p == '+');
    const char *from = p;
    int sum = 0;
    for (; p < end && scan_is_digit(*p) && sum <= INT16_MAX; p++)
        sum = sum * 10 + (*p - '0');
    *value = minus ? -sum : sum;
    return p == end && p > from && *value >= INT16_MIN && *value <= INT16_MAX;
}

/* By name, or by the decimal number of an element. */
static bool push_enum(struct text_reader *r, struct column *c, struct str name)
{
    const struct type_enum *element = type_enum_by_name(c->type, name);
    int value;
    if (element == NULL && small_number(name, &value))
        element = type_enum_by_value(c->type, value);
    if (element == NULL) {
        struct strbuf shown = { 0 };
        text_add_printable(&shown, name, 64);
        (void)text_fail(r, ERR_UNKNOWN_ELEMENT_OF_ENUM, "Unknown element '%s' for enum " STR_FMT, strbuf_cstr(&shown),
                        STR_ARG(c->type->text));
        strbuf_fini(&shown);
        return false;
    }
    push_enum_value(c, element->value);
    return true;
}

static bool read_enum_number(struct text_reader *r, struct column *c)
{
    int8_t small;
    int16_t wide;
    bool narrow = c->type->kind == TYPE_ENUM8;
    if (!number_read_int(r, narrow ? TYPE_INT8 : TYPE_INT16, narrow ? (void *)&small : (void *)&wide))
        return false;
    int value = narrow ? small : wide;
    if (type_enum_by_value(c->type, value) == NULL)
        return text_fail(r, ERR_UNKNOWN_ELEMENT_OF_ENUM, "Unknown value %d for enum " STR_FMT, value,
                         STR_ARG(c->type->text));
    push_enum_value(c, value);
    return true;
}

static bool read_net(struct text_reader *r, enum type_kind kind, void *cell)
{
    const char *from = r->at;
    if (kind == TYPE_UUID)
        return net_read_uuid(&r->at, r->end, (uint8_t *)cell) ||
               text_fail_at(r, ERR_CANNOT_PARSE_UUID, from, 40, "Cannot parse uuid '%s'");
    if (kind == TYPE_IPV4)
        return net_read_ipv4(&r->at, r->end, (uint32_t *)cell) ||
               text_fail_at(r, ERR_CANNOT_PARSE_IPV4, from, 40, "Cannot parse IPv4 '%s'");
    return net_read_ipv6(&r->at, r->end, (uint8_t *)cell) ||
           text_fail_at(r, ERR_CANNOT_PARSE_IPV6, from, 40, "Cannot parse IPv6 '%s'");
}

static bool is_time(enum type_kind kind)
{
    return kind == TYPE_TIME || kind == TYPE_TIME64;
}

static bool read_datetime(struct text_reader *r, const struct type *type, void *cell)
{
    if (is_time(type->kind))
        return type->kind == TYPE_TIME ? date_read_time(r, (int32_t *)cell)
                                       : date_read_time64(r, type->precision, (int64_t *)cell);
    const struct time_zone *zone = zone_of(r, type);
    if (zone == NULL)
        return false;
    return type->kind == TYPE_DATETIME ? date_read_datetime(r, zone, (uint32_t *)cell)
                                       : date_read_datetime64(r, zone, type->precision, (int64_t *)cell);
}

/* A bare number for a DateTime or a Time is its raw value; what a Time has no bits for is cut off. */
static bool read_datetime_number(struct text_reader *r, enum type_kind kind, void *cell)
{
    int64_t value;
    if (!number_read_int(r, TYPE_INT64, &value))
        return false;
    if (kind == TYPE_DATETIME) {
        uint32_t seconds = (uint32_t)(value < 0 ? 0 : value > UINT32_MAX ? UINT32_MAX : value);
        memcpy(cell, &seconds, sizeof seconds);
    } else
        memcpy(cell, &value, sizeof value);
    return true;
}

/* A fixed-width value as it stands without quotes. */
static bool read_bare(struct text_reader *r, const struct type *type, bool plain_ints, void *cell)
{
    switch (type->kind) {
    case TYPE_BFLOAT16:
    case TYPE_FLOAT32:
    case TYPE_FLOAT64:
        return number_read_float(r, type->kind, cell);
    case TYPE_DECIMAL:
        return number_read_decimal(r, type, cell);
    case TYPE_DATE:
        return date_read_date(r, (uint16_t *)cell);
    case TYPE_DATE32:
        return date_read_date32(r, DATE32_MIN, (int32_t *)cell);
    case TYPE_DATETIME:
    case TYPE_DATETIME64:
    case TYPE_TIME:
    case TYPE_TIME64:
        return read_datetime(r, type, cell);
    case TYPE_UUID:
    case TYPE_IPV4:
    case TYPE_IPV6:
        return read_net(r, type->kind, cell);
    default:
        return plain_ints ? number_read_int_plain(r, type->kind, cell) : number_read_int(r, type->kind, cell);
    }
}

/* ---- Bool ---- */

static bool bool_word(struct text_reader *r, bool *value)
{
    static const struct {
        const char *word;
        bool value;
    } words[] = { /* a word stands before what it begins with */
                  { "true", true },      { "t", true },        { "false", false },  { "f", false },
                  { "yes", true },       { "y", true },        { "no", false },     { "n", false },
                  { "on", true },        { "off", false },     { "enabled", true }, { "enable", true },
                  { "disabled", false }, { "disable", false }, { "1", true },       { "0", false }
    };
    for (size_t i = 0; i < ARRAY_COUNT(words); i++)
        if (text_take_word_nocase(r, words[i].word)) {
            *value = words[i].value;
            return true;
        }
    return false;
}

typedef bool bool_end_fn(const struct text_reader *r);

static bool ends_escaped(const struct text_reader *r)
{
    return text_eof(r) || *r->at == '\t' || *r->at == '\n' ||
           (r->settings->input_format_tsv_crlf_end_of_line && *r->at == '\r');
}
static bool ends_csv(const struct text_reader *r)
{
    return text_eof(r) || *r->at == r->csv_delimiter || *r->at == '\n' || *r->at == '\r';
}
static bool ends_quoted(const struct text_reader *r)
{
    return text_is(r, '\'');
}
static bool ends_whole(const struct text_reader *r)
{
    return text_eof(r);
}

static bool take_representation(struct text_reader *r, struct str word, bool_end_fn *ends)
{
    const char *from = r->at;
    if ((size_t)(r->end - from) < word.len || memcmp(from, word.data, word.len) != 0)
        return false;
    r->at += word.len;
    if (ends(r))
        return true;
    r->at = from;
    return false;
}

static bool read_bool(struct text_reader *r, struct column *c, bool_end_fn *ends)
{
    const char *from = r->at;
    bool value = true;
    if (text_eof(r))
        return text_fail(r, ERR_CANNOT_PARSE_BOOL, "Expected boolean value but get EOF");
    if (!take_representation(r, r->settings->bool_true_representation, ends)) {
        value = false;
        if (!take_representation(r, r->settings->bool_false_representation, ends) && !(bool_word(r, &value) && ends(r)))
            return text_fail_at(r, ERR_CANNOT_PARSE_BOOL, from, 10, "Cannot parse boolean value here: '%s'");
    }
    column_push_fixed(c, &(uint8_t){ value });
    return true;
}

/* true, false, or for the engine's reasons 1 and 0 without taking them: what follows then fails. */
static bool read_bool_quoted(struct text_reader *r, struct column *c)
{
    uint8_t value = 0;
    if (text_take(r, '\''))
        return read_bool(r, c, ends_quoted) && text_need(r, '\'');
    char first = text_eof(r) ? '\0' : scan_lower(*r->at);
    if (first == 't' || first == 'f') {
        value = first == 't';
        if (!text_take_word_nocase(r, value != 0 ? "true" : "false"))
            return text_expected(r, value != 0 ? "true" : "false");
    } else if (first == '1' || first == '0')
        value = first == '1';
    else
        return text_fail_at(r, ERR_CANNOT_PARSE_BOOL, r->at, 10, "Cannot parse boolean value here: '%s'");
    column_push_fixed(c, &value);
    return true;
}

static bool read_bool_json(struct text_reader *r, struct column *c)
{
    uint8_t value = 0;
    if (text_is(r, 't') || text_is(r, 'f')) {
        value = *r->at == 't';
        if (!text_take_word(r, value != 0 ? "true" : "false"))
            return text_expected(r, value != 0 ? "true" : "false");
    } else if (text_is(r, '1') || text_is(r, '0'))
        value = *r->at++ == '1';
    else
        return text_fail_at(r, ERR_CANNOT_PARSE_BOOL, r->at, 1,
                            "Invalid boolean value, should be true/false, 1/0, but it starts with the '%s' character");
    column_push_fixed(c, &value);
    return true;
}

/* ---- arrays, maps, tuples ---- */

struct element_style {
    text_read_fn *read;
    bool (*read_null)(struct text_reader *);
};
static const struct element_style style_json = { text_read_json, text_read_null_json };
static const struct element_style style_quoted = { text_read_quoted, text_read_null_quoted };
static const struct element_style style_csv = { text_read_csv, text_read_null_csv };

static bool enter(struct text_reader *r)
{
    if (r->depth >= TEXT_DEPTH_MAX)
        return text_fail(r, ERR_TOO_DEEP_RECURSION, "Value is nested too deep");
    r->depth++;
    return true;
}

static bool read_element(struct text_reader *r, struct column *c, const struct element_style *style)
{
    if (style == &style_json && r->settings->input_format_json_empty_as_default && text_take_word(r, "\"\"")) {
        column_push_zero(c);
        return true;
    }
    return text_read_element(r, c, style->read, style->read_null);
}

static bool read_tuple_json(struct text_reader *r, struct column *c);
static bool read_tuple_quoted(struct text_reader *r, struct column *c);

/* One element of an Array, or of a Nested: there a tuple of its fields. */
static bool read_array_element(struct text_reader *r, struct column *c, const struct element_style *style)
{
    if (c->type->kind == TYPE_NESTED)
        return style == &style_json ? read_tuple_json(r, c) : read_tuple_quoted(r, c);
    return read_element(r, &c->children[0], style);
}

/* unenclosed: in a CSV field the brackets may be missing. */
static bool read_array(struct text_reader *r, struct column *c, const struct element_style *style, bool unenclosed)
{
    bool brackets = text_take(r, '[');
    if (!brackets) {
        if (!unenclosed)
            return text_fail(r, ERR_CANNOT_READ_ARRAY_FROM_TEXT, "Array does not start with '[' character");
        text_skip_spaces(r);
        if (text_eof(r))
            return text_fail(r, ERR_CANNOT_READ_ARRAY_FROM_TEXT,
                             "Cannot read array from text, expected opening bracket '[' or array element");
    }
    if (!enter(r))
        return false;
    for (bool first = true; !text_eof(r) && *r->at != ']'; first = false) {
        if (!first && !text_take(r, ','))
            return text_fail_at(r, ERR_CANNOT_READ_ARRAY_FROM_TEXT, r->at, 1,
                                "Cannot read array from text, expected comma or end of array, found '%s'");
        text_skip_spaces(r);
        if (text_is(r, ']'))
            break;
        if (!read_array_element(r, c, style))
            return false;
        text_skip_spaces(r);
    }
    if (brackets ? !text_need(r, ']') : !text_eof(r) && !text_expected(r, "eof"))
        return false;
    r->depth--;
    column_push_row_end(c);
    return true;
}

static bool read_map(struct text_reader *r, struct column *c, const struct element_style *style)
{
    if (!text_need(r, '{') || !enter(r))
        return false;
    for (bool first = true; !text_eof(r) && *r->at != '}'; first = false) {
        if (!first && !text_take(r, ','))
            return text_fail_at(r, ERR_CANNOT_READ_MAP_FROM_TEXT, r->at, 1,
                                "Cannot read Map from text, expected comma or end of map, found '%s'");
        text_skip_spaces(r);
        if (text_is(r, '}'))
            break;
        if (!read_element(r, &c->children[0], style))
            return false;
        text_skip_spaces(r);
        if (!text_need(r, ':'))
            return false;
        text_skip_spaces(r);
        if (!read_element(r, &c->children[1], style))
            return false;
        text_skip_spaces(r);
    }
    if (!text_need(r, '}'))
        return false;
    r->depth--;
    column_push_row_end(c);
    return true;
}

static bool read_tuple_elements(struct text_reader *r, struct column *c, char close, const struct element_style *style)
{
    for (size_t i = 0; i < c->children_count; i++) {
        text_skip_spaces(r);
        if (i > 0) {
            if (!text_need(r, ','))
                return false;
            text_skip_spaces(r);
        }
        if (!read_element(r, &c->children[i], style))
            return false;
    }
    text_skip_spaces(r);
    if (c->children_count == 1 && close == ')') { /* (1,) */
        (void)text_take(r, ',');
        text_skip_spaces(r);
    }
    return text_need(r, close);
}

static bool read_tuple_quoted(struct text_reader *r, struct column *c)
{
    if (!text_need(r, '(') || !enter(r) || !read_tuple_elements(r, c, ')', &style_quoted))
        return false;
    r->depth--;
    return true;
}

static size_t element_by_name(const struct type *type, struct str name)
{
    for (size_t i = 0; i < type->children_count; i++)
        if (str_eq(type->names[i], name))
            return i;
    return type->children_count;
}

/* One "name": value of an object that stands for a tuple. Rows of the children before it: `row`. */
static bool read_tuple_member(struct text_reader *r, struct column *c, const struct column *children,
                              const size_t *rows)
{
    struct str name;
    if (!text_double_quoted(r, &name))
        return false;
    size_t index = element_by_name(c->type, name);
    text_skip_spaces(r);
    if (!text_need(r, ':'))
        return false;
    text_skip_spaces(r);
    if (index == c->children_count && !r->settings->input_format_json_ignore_unknown_keys_in_named_tuple)
        return text_fail(r, ERR_NOT_FOUND_COLUMN_IN_BLOCK,
                         "Tuple doesn't have element with name '" STR_FMT
                         "', enable setting input_format_json_ignore_unknown_keys_in_named_tuple",
                         STR_ARG(str_sub(name, 0, 64)));
    if (index == c->children_count)
        return text_json_skip(r, STR("tuple element"));
    if (children[index].rows != rows[index])
        return text_fail(r, ERR_INCORRECT_DATA, "JSON object contains duplicate key '" STR_FMT "'",
                         STR_ARG(c->type->names[index]));
    if (read_element(r, &c->children[index], &style_json))
        return true;
    size_t len = strlen(r->err->text);
    (void)snprintf(r->err->text + len, sizeof r->err->text - len,
                   ": (while reading the value of nested key " STR_FMT ")", STR_ARG(c->type->names[index]));
    return false;
}

enum { TUPLE_STACK = 64 };

static bool read_tuple_object(struct text_reader *r, struct column *c)
{
    size_t on_stack[TUPLE_STACK], *rows = on_stack, count = 0, taken = 0;
    bool ok = false;
    if (c->children_count > TUPLE_STACK)
        rows = (size_t *)mem_alloc(sizeof(size_t) * c->children_count);
    for (size_t i = 0; i < c->children_count; i++)
        rows[i] = c->children[i].rows;
    text_skip_spaces(r);
    if (!text_need(r, '{'))
        goto done;
    for (text_skip_spaces(r); !text_eof(r) && *r->at != '}'; text_skip_spaces(r), count++) {
        if (!r->settings->input_format_json_ignore_unknown_keys_in_named_tuple && count == c->children_count) {
            (void)text_fail(
                r, ERR_INCORRECT_DATA,
                "Unexpected number of elements in named tuple. Expected no more than %zu (consider enabling "
                "input_format_json_ignore_unknown_keys_in_named_tuple setting)",
                c->children_count);
            goto done;
        }
        if (count > 0 && !text_need(r, ','))
            goto done;
        text_skip_spaces(r);
        if (!read_tuple_member(r, c, c->children, rows))
            goto done;
    }
    if (!text_need(r, '}'))
        goto done;
    for (size_t i = 0; i < c->children_count; i++) {
        if (c->children[i].rows != rows[i]) {
            taken++;
            continue;
        }
        if (!r->settings->input_format_json_defaults_for_missing_elements_in_named_tuple) {
            (void)text_fail(r, ERR_INCORRECT_DATA,
                            "JSON object doesn't contain tuple element " STR_FMT
                            ". If you want to insert defaults in case of missing elements, enable setting "
                            "input_format_json_defaults_for_missing_elements_in_named_tuple",
                            STR_ARG(c->type->names[i]));
            goto done;
        }
        column_push_zero(&c->children[i]);
    }
    ok = true;
done:
    if (rows != on_stack)
        free(rows);
    (void)taken;
    return ok;
}

static bool read_tuple_json(struct text_reader *r, struct column *c)
{
    bool ok;
    if (!enter(r))
        return false;
    if (c->type->names != NULL && r->settings->input_format_json_named_tuples_as_objects)
        ok = read_tuple_object(r, c);
    else {
        text_skip_spaces(r);
        ok = text_need(r, '[') && read_tuple_elements(r, c, ']', &style_json);
    }
    r->depth--;
    return ok;
}

static bool read_tuple(struct text_reader *r, struct column *c, bool json)
{
    if (json ? !read_tuple_json(r, c) : !read_tuple_quoted(r, c))
        return false;
    column_push_row_end(c);
    return true;
}

/* ---- JSON ---- */

static void number_of_null(enum type_kind kind, void *cell)
{
    if (type_kind_is_float(kind))
        number_store_float(kind, (double)NAN, cell);
    else
        memset(cell, 0, CELL_MAX);
}

static bool number_of_bool(struct text_reader *r, enum type_kind kind, void *cell)
{
    bool value = *r->at == 't';
    if (!text_take_word(r, value ? "true" : "false"))
        return text_expected(r, value ? "true" : "false");
    memset(cell, 0, CELL_MAX);
    if (type_kind_is_float(kind))
        number_store_float(kind, value, cell);
    else
        return number_read_int(&(struct text_reader){ .at = value ? "1" : "0", .end = (value ? "1" : "0") + 1 }, kind,
                               cell);
    return true;
}

static bool read_number_json(struct text_reader *r, enum type_kind kind, void *cell)
{
    bool quote = text_take(r, '"');
    if (!quote && text_is(r, 'n')) {
        if (!text_take_word(r, "null"))
            return text_expected(r, "null");
        number_of_null(kind, cell);
        return true;
    }
    if (text_eof(r))
        return text_ended(r);
    bool bools = r->settings->input_format_json_read_bools_as_numbers || kind == TYPE_UINT8 || kind == TYPE_INT8;
    if (bools && (*r->at == 't' || *r->at == 'f')) {
        if (!number_of_bool(r, kind, cell))
            return false;
    } else if (type_kind_is_float(kind)) {
        if (!number_read_float(r, kind, cell))
            return false;
    } else if (!number_read_int(r, kind, cell))
        return false;
    return !quote || text_need(r, '"');
}

/* true, false, a number: as their text. */
static bool read_other_as_string(struct text_reader *r, struct column *c)
{
    const struct format_settings *s = r->settings;
    if (s->input_format_json_read_bools_as_strings && (*r->at == 't' || *r->at == 'f')) {
        bool value = *r->at == 't';
        if (!text_take_word(r, value ? "true" : "false"))
            return text_expected(r, value ? "true" : "false");
        column_push_str(c, value ? STR("true") : STR("false"));
        return true;
    }
    struct str string;
    if (!s->input_format_json_read_numbers_as_strings)
        return text_json_string(r, &string) && text_push_string(r, c, string);
    const char *from = r->at;
    if (!text_json_skip(r, STR("json_field")))
        return false;
    if (!scan_is_digit(*from) && strchr("+-.", *from) == NULL)
        return text_fail_at(r, ERR_INCORRECT_DATA, from, 40, "Cannot parse JSON String value here: %s");
    column_push_str(c, str_make(from, (size_t)(r->at - from)));
    return true;
}

static bool read_string_json(struct text_reader *r, struct column *c)
{
    const struct format_settings *s = r->settings;
    struct str string;
    if (text_is(r, '"') || text_eof(r))
        return text_json_string(r, &string) && text_push_string(r, c, string);
    if (s->input_format_json_read_objects_as_strings && *r->at == '{')
        return text_balanced(r, '{', '}', '"', &string) && text_push_string(r, c, string);
    if (s->input_format_json_read_arrays_as_strings && *r->at == '[')
        return text_balanced(r, '[', ']', '"', &string) && text_push_string(r, c, string);
    return read_other_as_string(r, c);
}

static bool read_date_json(struct text_reader *r, struct column *c)
{
    uint8_t cell[CELL_MAX] __attribute__((aligned(8)));
    enum type_kind kind = c->type->kind;
    if (kind == TYPE_DATE || kind == TYPE_DATE32) {
        if (text_is(r, '"')) {
            r->at++;
            if (!read_bare(r, c->type, false, cell) || !text_need(r, '"'))
                return false;
        } else if (!read_number_json(r, kind == TYPE_DATE ? TYPE_UINT16 : TYPE_INT32, cell))
            return false;
    } else if (text_take(r, '"')) {
        if (!read_datetime(r, c->type, cell) || !text_need(r, '"'))
            return false;
    } else if (!read_datetime_number(r, kind, cell))
        return false;
    column_push_fixed(c, cell);
    return true;
}

static bool read_net_json(struct text_reader *r, struct column *c)
{
    uint8_t cell[CELL_MAX] __attribute__((aligned(8)));
    if (!text_need(r, '"') || !read_net(r, c->type->kind, cell))
        return false;
    if (c->type->kind != TYPE_UUID && !text_eof(r) && *r->at != '"')
        return text_fail_at(r, ERR_UNEXPECTED_DATA_AFTER_PARSED_VALUE, r->at, 10,
                            "Unexpected data '%s' after parsed IP address");
    if (!text_need(r, '"'))
        return false;
    column_push_fixed(c, cell);
    return true;
}

static bool read_map_json(struct text_reader *r, struct column *c)
{
    if (!r->settings->input_format_json_map_as_array_of_tuples)
        return read_map(r, c, &style_json);
    static const struct str names[] = { { "keys", 4 }, { "values", 6 } };
    struct type tuple = *c->type; /* the same two columns, as a row of named values */
    tuple.kind = TYPE_NESTED;
    tuple.names = names;
    const struct type *type = c->type;
    c->type = &tuple;
    bool ok = read_array(r, c, &style_json, false);
    c->type = type;
    return ok;
}

bool text_read_json(struct text_reader *r, struct column *c)
{
    uint8_t cell[CELL_MAX] __attribute__((aligned(8)));
    struct str string;
    if (text_is(r, 'n') && (c->type->nullable || r->settings->input_format_null_as_default)) {
        if (!text_read_null_json(r)) /* nothing else begins like this */
            return text_expected(r, "null");
        column_push_null(c);
        return true;
    }
    switch (c->type->kind) {
    case TYPE_STRING:
        return read_string_json(r, c);
    case TYPE_FIXED_STRING:
        return text_json_string(r, &string) && push_fixed_string(r, c, string);
    case TYPE_BOOL:
        return read_bool_json(r, c);
    case TYPE_DATE:
    case TYPE_DATE32:
    case TYPE_DATETIME:
    case TYPE_DATETIME64:
    case TYPE_TIME:
    case TYPE_TIME64:
        return read_date_json(r, c);
    case TYPE_DECIMAL: {
        bool quote = text_take(r, '"');
        if (!number_read_decimal(r, c->type, cell) || (quote && !text_need(r, '"')))
            return false;
        column_push_fixed(c, cell);
        return true;
    }
    case TYPE_ENUM8:
    case TYPE_ENUM16:
        if (!text_eof(r) && *r->at != '"')
            return read_enum_number(r, c);
        return text_json_string(r, &string) && push_enum(r, c, string);
    case TYPE_UUID:
    case TYPE_IPV4:
    case TYPE_IPV6:
        return read_net_json(r, c);
    case TYPE_ARRAY:
    case TYPE_NESTED:
        return read_array(r, c, &style_json, false);
    case TYPE_MAP:
        return read_map_json(r, c);
    case TYPE_TUPLE:
        return read_tuple(r, c, true);
    case TYPE_NOTHING:
        return text_expected(r, "null");
    default:
        if (!read_number_json(r, c->type->kind, cell))
            return false;
        column_push_fixed(c, cell);
        return true;
    }
}

/* ---- TSV ---- */

static bool read_compound_quoted(struct text_reader *r, struct column *c)
{
    switch (c->type->kind) {
    case TYPE_ARRAY:
    case TYPE_NESTED:
        return read_array(r, c, &style_quoted, false);
    case TYPE_MAP:
        return read_map(r, c, &style_quoted);
    default:
        return read_tuple(r, c, false);
    }
}

static bool is_compound(enum type_kind kind)
{
    return kind == TYPE_ARRAY || kind == TYPE_MAP || kind == TYPE_TUPLE || kind == TYPE_NESTED;
}

bool text_read_escaped(struct text_reader *r, struct column *c)
{
    uint8_t cell[CELL_MAX] __attribute__((aligned(8)));
    struct str string;
    if (c->type->nullable && text_read_null_escaped(r)) {
        column_push_null(c);
        return true;
    }
    enum type_kind kind = c->type->kind;
    if (kind == TYPE_STRING || kind == TYPE_FIXED_STRING)
        return text_escaped_string(r, &string) && text_push_string(r, c, string);
    if (kind == TYPE_ENUM8 || kind == TYPE_ENUM16) {
        if (r->settings->input_format_tsv_enum_as_number)
            return read_enum_number(r, c);
        return text_escaped_string(r, &string) && push_enum(r, c, string);
    }
    if (kind == TYPE_BOOL)
        return read_bool(r, c, ends_escaped);
    if (is_compound(kind))
        return read_compound_quoted(r, c);
    if (kind == TYPE_NOTHING)
        return text_expected(r, "\\N");
    if (!read_bare(r, c->type, true, cell))
        return false;
    column_push_fixed(c, cell);
    return true;
}

static bool read_all(struct text_reader *r, struct column *c);

bool text_read_raw(struct text_reader *r, struct column *c)
{
    struct str string;
    if (c->type->nullable && text_read_null_escaped(r)) {
        column_push_null(c);
        return true;
    }
    if (!text_raw_string(r, &string))
        return false;
    if (c->type->kind == TYPE_STRING)
        return text_push_string(r, c, string);
    const char *end = r->end, *after = r->at;
    r->at = string.data;
    r->end = string.data + string.len;
    r->cut_out = true;
    bool ok = read_all(r, c);
    r->cut_out = false;
    r->at = after;
    r->end = end;
    return ok;
}

/* ---- Values, and inside brackets ---- */

static bool read_quote_bare(struct text_reader *r, struct column *c)
{
    uint8_t cell[CELL_MAX] __attribute__((aligned(8)));
    if (!text_need(r, '\'') || !read_bare(r, c->type, true, cell) || !text_need(r, '\''))
        return false;
    column_push_fixed(c, cell);
    return true;
}

static bool read_uuid_quoted(struct text_reader *r, struct column *c)
{
    enum { WHOLE = 38 }; /* bytes of one in quotes; where as many are left, a missing quote has another code */
    struct str string;
    uint8_t uuid[16];
    if (r->end - r->at >= WHOLE && !text_is(r, '\''))
        return text_need(r, '\'');
    if (!text_quoted_string(r, false, &string))
        return false;
    const char *at = string.data;
    if (!net_read_uuid(&at, string.data + string.len, uuid))
        return text_fail_at(r, ERR_CANNOT_PARSE_UUID, string.data, MIN(string.len, (size_t)40),
                            "Cannot parse uuid '%s'");
    column_push_fixed(c, uuid);
    return true;
}

bool text_read_quoted(struct text_reader *r, struct column *c)
{
    uint8_t cell[CELL_MAX] __attribute__((aligned(8)));
    struct str string;
    if (c->type->nullable && text_read_null_quoted(r)) {
        column_push_null(c);
        return true;
    }
    switch (c->type->kind) {
    case TYPE_STRING:
    case TYPE_FIXED_STRING:
        return text_quoted_string(r, true, &string) && text_push_string(r, c, string);
    case TYPE_BOOL:
        return read_bool_quoted(r, c);
    case TYPE_ENUM8:
    case TYPE_ENUM16:
        return text_quoted_string(r, true, &string) && push_enum(r, c, string);
    case TYPE_DATETIME:
    case TYPE_DATETIME64:
    case TYPE_TIME:
    case TYPE_TIME64:
        if (!text_is(r, '\'')) {
            if (!read_datetime_number(r, c->type->kind, cell))
                return false;
            column_push_fixed(c, cell);
            return true;
        }
        return read_quote_bare(r, c);
    case TYPE_DATE:
    case TYPE_DATE32:
    case TYPE_IPV4:
    case TYPE_IPV6:
        return read_quote_bare(r, c);
    case TYPE_UUID:
        return read_uuid_quoted(r, c);
    case TYPE_NOTHING:
        return text_expected(r, "NULL");
    default:
        if (is_compound(c->type->kind))
            return read_compound_quoted(r, c);
        if (!read_bare(r, c->type, true, cell))
            return false;
        column_push_fixed(c, cell);
        return true;
    }
}

/* ---- CSV ---- */

/* The reader runs over a CSV field's text alone while `read` is in it. The text is copied: `read` uses the scratch. */
static bool in_field(struct text_reader *r, struct str field, struct column *c, text_read_fn *read)
{
    struct text_reader inner = *r;
    struct strbuf copy = { 0 };
    if (field.data == r->scratch.data)
        strbuf_add(&copy, field);
    struct str text = field.data == r->scratch.data ? strbuf_view(&copy) : field;
    inner.at = text.data;
    inner.end = text.data + text.len;
    inner.cut_out = true;
    bool ok = read(&inner, c);
    r->scratch = inner.scratch;
    r->field = inner.field;
    r->zone = inner.zone;
    r->zone_type = inner.zone_type;
    strbuf_fini(&copy);
    return ok;
}

static bool read_array_field(struct text_reader *r, struct column *c)
{
    return read_array(r, c, r->settings->input_format_csv_arrays_as_nested_csv ? &style_csv : &style_quoted, true);
}

static bool read_bare_field(struct text_reader *r, struct column *c)
{
    uint8_t cell[CELL_MAX] __attribute__((aligned(8)));
    if (!read_bare(r, c->type, false, cell))
        return false;
    if (!text_eof(r))
        return text_fail_at(r, ERR_UNEXPECTED_DATA_AFTER_PARSED_VALUE, r->at, 20,
                            "Unexpected data '%s' after parsed DateTime value");
    column_push_fixed(c, cell);
    return true;
}

static bool read_tuple_csv(struct text_reader *r, struct column *c)
{
    struct str field;
    if (!r->settings->input_format_csv_deserialize_separate_columns_into_tuple)
        return text_csv_string(r, false, &field) && in_field(r, field, c, text_read_whole);
    for (size_t i = 0; i < c->children_count; i++) {
        if (i > 0) {
            text_skip_spaces(r);
            if (!text_need(r, r->settings->format_csv_delimiter.data[0]))
                return false;
            text_skip_spaces(r);
        }
        if (!read_element(r, &c->children[i], &style_csv))
            return false;
    }
    column_push_row_end(c);
    return true;
}

/* Numbers, dates, addresses: with or without quotes of either kind. */
static bool read_bare_csv(struct text_reader *r, struct column *c)
{
    uint8_t cell[CELL_MAX] __attribute__((aligned(8)));
    struct str field;
    if (text_eof(r))
        return text_ended(r);
    char quote = *r->at;
    bool quoted = quote == '\'' || quote == '"';
    bool loose_date = (c->type->kind == TYPE_DATETIME || c->type->kind == TYPE_DATETIME64) &&
                      r->settings->date_time_input_format != 0 && r->csv_delimiter == ',';
    if (!quoted && (loose_date || is_time(c->type->kind))) /* best effort would read over a comma */
        return text_csv_string(r, false, &field) && in_field(r, field, c, read_bare_field);
    r->at += quoted;
    bool ok = c->type->kind == TYPE_DATE32 ? date_read_date32(r, 0, (int32_t *)cell) /* not 1900, in CSV */
                                           : read_bare(r, c->type, false, cell);
    if (!ok || (quoted && !text_need(r, quote)))
        return false;
    column_push_fixed(c, cell);
    return true;
}

bool text_read_csv(struct text_reader *r, struct column *c)
{
    struct str field;
    if (c->type->nullable && text_read_null_csv(r)) {
        column_push_null(c);
        return true;
    }
    switch (c->type->kind) {
    case TYPE_STRING:
    case TYPE_FIXED_STRING:
        return text_csv_string(r, false, &field) && text_push_string(r, c, field);
    case TYPE_ENUM8:
    case TYPE_ENUM16:
        if (r->settings->input_format_csv_enum_as_number)
            return read_enum_number(r, c);
        return text_csv_string(r, false, &field) && push_enum(r, c, field);
    case TYPE_BOOL:
        return read_bool(r, c, ends_csv);
    case TYPE_ARRAY:
    case TYPE_NESTED:
        return text_csv_string(r, false, &field) && in_field(r, field, c, read_array_field);
    case TYPE_MAP:
        return text_csv_string(r, false, &field) && in_field(r, field, c, text_read_whole);
    case TYPE_TUPLE:
        return read_tuple_csv(r, c);
    case TYPE_NOTHING:
        return text_expected(r, "\\N");
    default:
        return read_bare_csv(r, c);
    }
}

/* ---- all of a text ---- */

static bool read_whole_value(struct text_reader *r, struct column *c)
{
    uint8_t cell[CELL_MAX] __attribute__((aligned(8)));
    enum type_kind kind = c->type->kind;
    struct str rest = str_make(r->at, (size_t)(r->end - r->at));
    if (kind == TYPE_STRING || kind == TYPE_FIXED_STRING || kind == TYPE_ENUM8 || kind == TYPE_ENUM16) {
        r->at = r->end;
        return kind == TYPE_STRING || kind == TYPE_FIXED_STRING ? text_push_string(r, c, rest) : push_enum(r, c, rest);
    }
    if (kind == TYPE_BOOL)
        return read_bool(r, c, ends_whole);
    if (is_compound(kind))
        return read_compound_quoted(r, c);
    if (kind == TYPE_NOTHING)
        return text_expected(r, "NULL");
    if (!read_bare(r, c->type, true, cell))
        return false;
    column_push_fixed(c, cell);
    return true;
}

static bool read_all(struct text_reader *r, struct column *c)
{
    if (!read_whole_value(r, c))
        return false;
    if (text_eof(r))
        return true;
    return text_fail_at(r, ERR_UNEXPECTED_DATA_AFTER_PARSED_VALUE, r->at, 10,
                        "Unexpected data '%s' after parsed value");
}

bool text_read_whole(struct text_reader *r, struct column *c)
{
    if (c->type->nullable && text_read_null_whole(r)) {
        column_push_null(c);
        return true;
    }
    return read_all(r, c);
}
