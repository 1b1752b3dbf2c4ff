/* parquet_rows FILE...: the rows of Parquet files of any writer in one canonical text, for comparison with what other
 * readers make of them. One JSON object a row; NULL lists and maps are empty, NULL groups are groups of NULLs.
 *
 *   integers, booleans   as they are          decimals      "-1.50"
 *   floats               as ECMAScript prints the double; "NaN", "Infinity", "-Infinity"
 *   text                 a JSON string; as bytes where it is no UTF-8
 *   bytes                {"$hex":"00ff"}      uuid          "00112233-4455-..."
 *   dates, times         "2025-03-01", "2025-03-01T01:02:03.456", "01:02:03"
 *   lists [...], maps [[key,value],...], groups {"name":...} */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "format/parquet_file.h"
#include "format/text_value.h"
#include "support/parquet_mem.h"

struct printer {
    const struct pq_element *elements;
    struct strbuf out;
};

/* ---- leaves ---- */

static void print_double(struct strbuf *out, double value)
{
    char text[40];
    if (!isfinite(value)) {
        strbuf_add_text(out, isnan(value) ? "\"NaN\"" : value < 0 ? "\"-Infinity\"" : "\"Infinity\"");
        return;
    }
    int digits = 1; /* the fewest that give the value again */
    do
        snprintf(text, sizeof text, "%.*e", digits - 1, value);
    while (strtod(text, NULL) != value && ++digits <= 17);
    int exponent = (int)strtol(strchr(text, 'e') + 1, NULL, 10);
    if (value == 0)
        strbuf_add_text(out, signbit(value) ? "-0" : "0");
    else if (exponent >= -7 && exponent < 21)
        strbuf_addf(out, "%.*f", MAX(digits - 1 - exponent, 0), value);
    else {
        strbuf_add(out, str_make(text, (size_t)(strchr(text, 'e') - text)));
        strbuf_addf(out, "e%+d", exponent);
    }
}

static void print_bytes(struct strbuf *out, struct str bytes)
{
    strbuf_add_text(out, "{\"$hex\":\"");
    text_add_hex(out, bytes);
    strbuf_add_text(out, "\"}");
}

/* JSON.stringify's escapes. */
static void print_text(struct strbuf *out, struct str s)
{
    static const char escapes[] = "\b\t\n\f\r\"\\", letters[] = "btnfr\"\\";
    if (!text_is_utf8(s)) {
        print_bytes(out, s);
        return;
    }
    strbuf_add_char(out, '"');
    for (size_t i = 0; i < s.len; i++) {
        const char *escape = s.data[i] == 0 ? NULL : strchr(escapes, s.data[i]);
        if (escape != NULL) {
            strbuf_add_char(out, '\\');
            strbuf_add_char(out, letters[escape - escapes]);
        } else if ((uint8_t)s.data[i] < ' ')
            strbuf_addf(out, "\\u%04x", (unsigned)s.data[i]);
        else
            strbuf_add_char(out, s.data[i]);
    }
    strbuf_add_char(out, '"');
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && a < 0);
}

/* Howard Hinnant's days to year, month, day; for any day. */
static void print_day(struct strbuf *out, int64_t days)
{
    int64_t z = days + 719468, era = floor_div(z, 146097), day_of_era = z - era * 146097;
    int64_t year = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year + year / 4 - year / 100), shifted = (5 * day_of_year + 2) / 153;
    int64_t month = shifted < 10 ? shifted + 3 : shifted - 9;
    year += era * 400 + (month <= 2);
    strbuf_addf(out, "%s%04" PRId64 "-%02" PRId64 "-%02" PRId64, year < 0 ? "-" : "", year < 0 ? -year : year, month,
                day_of_year - (153 * shifted + 2) / 5 + 1);
}

static void print_clock(struct strbuf *out, int64_t ticks, unsigned digits)
{
    int64_t second = 1;
    for (unsigned i = 0; i < digits; i++)
        second *= 10;
    int64_t seconds = ticks / second, fraction = ticks % second;
    strbuf_addf(out, "%02" PRId64 ":%02" PRId64 ":%02" PRId64, seconds / 3600, seconds / 60 % 60, seconds % 60);
    for (; fraction != 0 && fraction % 10 == 0; digits--)
        fraction /= 10;
    if (fraction != 0)
        strbuf_addf(out, ".%0*" PRId64, (int)digits, fraction);
}

static void print_time(struct strbuf *out, int64_t ticks, unsigned digits, bool clock_only)
{
    int64_t day = 86400;
    for (unsigned i = 0; i < digits; i++)
        day *= 10;
    strbuf_add_char(out, '"');
    if (clock_only) {
        if (ticks < 0)
            strbuf_add_char(out, '-');
        print_clock(out, ticks < 0 ? -ticks : ticks, digits);
    } else {
        print_day(out, floor_div(ticks, day));
        strbuf_add_char(out, 'T');
        print_clock(out, ticks - floor_div(ticks, day) * day, digits);
    }
    strbuf_add_char(out, '"');
}

/* As text_value prints it, but always with all decimals. */
static void print_decimal(struct strbuf *out, const struct column *c, size_t row)
{
    size_t start = out->len + 1;
    strbuf_add_char(out, '"');
    text_value_print(c, row, TEXT_PLAIN, format_settings_default(), out);
    struct str text = str_from(strbuf_view(out), start);
    ptrdiff_t point = str_find_char(text, '.');
    size_t decimals = point == STR_NONE ? 0 : text.len - (size_t)point - 1;
    if (point == STR_NONE && c->type->scale > 0)
        strbuf_add_char(out, '.');
    for (; decimals < c->type->scale; decimals++)
        strbuf_add_char(out, '0');
    strbuf_add_char(out, '"');
}

static bool is(const struct pq_element *e, int logical, int converted)
{
    return e->logical == logical || (e->logical == PQ_LOGICAL_NONE && e->converted == converted);
}

static bool is_text(const struct pq_element *e)
{
    return is(e, PQ_LOGICAL_STRING, PQ_UTF8) || is(e, PQ_LOGICAL_ENUM, PQ_ENUM) || is(e, PQ_LOGICAL_JSON, PQ_JSON);
}

/* months, days, milliseconds */
static void print_interval(struct strbuf *out, const uint8_t *bytes)
{
    uint32_t parts[3];
    memcpy(parts, bytes, sizeof parts);
    strbuf_addf(out, "{\"months\":%u,\"days\":%u,\"millis\":%u}", parts[0], parts[1], parts[2]);
}

static void print_leaf(struct strbuf *out, const struct pq_element *e, const struct column *c, size_t row)
{
    enum { CONVERTED_INTERVAL = 21 };
    int32_t days;
    int64_t ticks;
    float single;
    double value;
    switch (c->type->kind) {
    case TYPE_STRING:
        (is_text(e) ? print_text : print_bytes)(out, column_str(c, row));
        return;
    case TYPE_FIXED_STRING:
        if (e->logical == PQ_LOGICAL_NONE && e->converted == CONVERTED_INTERVAL)
            print_interval(out, column_cell(c, row));
        else
            print_bytes(out, column_str(c, row));
        return;
    case TYPE_DATE32:
        memcpy(&days, column_cell(c, row), sizeof days);
        strbuf_add_char(out, '"');
        print_day(out, days);
        strbuf_add_char(out, '"');
        return;
    case TYPE_DATETIME64:
        memcpy(&ticks, column_cell(c, row), sizeof ticks);
        print_time(out, ticks, c->type->precision,
                   is(e, PQ_LOGICAL_TIME, PQ_TIME_MILLIS) || is(e, PQ_LOGICAL_TIME, PQ_TIME_MICROS));
        return;
    case TYPE_FLOAT32:
        memcpy(&single, column_cell(c, row), sizeof single);
        print_double(out, (double)single);
        return;
    case TYPE_FLOAT64:
        memcpy(&value, column_cell(c, row), sizeof value);
        print_double(out, value);
        return;
    case TYPE_DECIMAL:
        print_decimal(out, c, row);
        return;
    case TYPE_UUID:
        strbuf_add_char(out, '"');
        text_value_print(c, row, TEXT_PLAIN, format_settings_default(), out);
        strbuf_add_char(out, '"');
        return;
    default:
        text_value_print(c, row, TEXT_PLAIN, format_settings_default(), out);
    }
}

/* ---- values ---- */

static size_t print_value(struct printer *p, size_t element, const struct column *c, size_t row);

static size_t behind(const struct printer *p, size_t element)
{
    size_t next = element + 1;
    for (int32_t i = 0; p->elements[element].type < 0 && i < p->elements[element].children; i++)
        next = behind(p, next);
    return next;
}

/* The element that the items of a list are made of: below the repeated group, or that group itself. */
static size_t item_of(const struct printer *p, size_t element, const struct column *c)
{
    const struct pq_element *list = &p->elements[element];
    if (list->repetition == PQ_REPEATED)
        return element;
    size_t repeated = element + 1;
    bool tuple = c->children[0].type->kind == TYPE_TUPLE;
    bool inner = p->elements[repeated].type < 0 && p->elements[repeated].children == 1;
    /* A tuple of one field may be the repeated group itself: then the name of the field tells. */
    if (inner && tuple && c->children[0].type->children_count == 1 &&
        str_eq(c->children[0].type->names[0], p->elements[repeated + 1].name) && p->elements[repeated + 1].type >= 0)
        inner = false;
    if (inner && p->elements[repeated + 1].repetition == PQ_REPEATED)
        inner = false;
    return inner ? repeated + 1 : repeated;
}

static void print_items(struct printer *p, size_t element, const struct column *c, size_t row)
{
    bool map = c->type->kind == TYPE_MAP;
    size_t from = (size_t)column_start(c, row), item = map ? element + 2 : item_of(p, element, c);
    strbuf_add_char(&p->out, '[');
    for (size_t i = from; i < c->offsets[row]; i++) {
        if (i > from)
            strbuf_add_char(&p->out, ',');
        if (map)
            strbuf_add_char(&p->out, '[');
        size_t value = print_value(p, item, &c->children[0], i);
        if (map) {
            strbuf_add_char(&p->out, ',');
            print_value(p, value, &c->children[1], i);
            strbuf_add_char(&p->out, ']');
        }
    }
    strbuf_add_char(&p->out, ']');
}

static void print_fields(struct printer *p, size_t element, const struct column *c, size_t row)
{
    size_t field = element + 1;
    strbuf_add_char(&p->out, '{');
    for (size_t i = 0; i < c->children_count; i++) {
        if (i > 0)
            strbuf_add_char(&p->out, ',');
        print_text(&p->out, p->elements[field].name);
        strbuf_add_char(&p->out, ':');
        field = print_value(p, field, &c->children[i], row);
    }
    strbuf_add_char(&p->out, '}');
}

/* Returns the element behind. */
static size_t print_value(struct printer *p, size_t element, const struct column *c, size_t row)
{
    if (column_is_null(c, row))
        strbuf_add_text(&p->out, "null");
    else if (c->type->kind == TYPE_ARRAY || c->type->kind == TYPE_MAP)
        print_items(p, element, c, row);
    else if (c->type->kind == TYPE_TUPLE)
        print_fields(p, element, c, row);
    else
        print_leaf(&p->out, &p->elements[element], c, row);
    return behind(p, element);
}

static void print_rows(const struct parquet_file *file, const struct block *block)
{
    struct printer p = { .elements = file->meta.elements };
    for (size_t row = 0; row < block->rows; row++) {
        size_t element = 1;
        strbuf_clear(&p.out);
        strbuf_add_char(&p.out, '{');
        for (size_t i = 0; i < block->columns_count; i++) {
            if (i > 0)
                strbuf_add_char(&p.out, ',');
            print_text(&p.out, p.elements[element].name);
            strbuf_add_char(&p.out, ':');
            element = print_value(&p, element, &block->columns[i], row);
        }
        strbuf_add_text(&p.out, "}\n");
        fwrite(p.out.data, 1, p.out.len, stdout);
    }
    strbuf_fini(&p.out);
}

/* ---- files ---- */

static bool read_file(const char *path, struct strbuf *bytes)
{
    FILE *in = fopen(path, "rb");
    size_t n = 1;
    if (in == NULL)
        return false;
    while (n > 0) {
        n = fread(strbuf_room(bytes, 65536), 1, 65536, in);
        strbuf_grew(bytes, n);
    }
    bool ok = ferror(in) == 0;
    return fclose(in) == 0 && ok;
}

static bool print_file(const char *path)
{
    struct strbuf bytes = { 0 };
    struct parquet_file *file = NULL;
    struct block block;
    struct err err;
    bool ok = read_file(path, &bytes);
    if (!ok) {
        fprintf(stderr, "cannot read %s\n", path);
        goto done;
    }
    ok = parquet_open_foreign(parquet_mem_read, &bytes, bytes.len, &file, &err);
    if (ok) {
        parquet_set_memory_max(file, 256 << 20);
        ok = parquet_mem_block(file, &block, &err);
        if (ok)
            print_rows(file, &block);
        block_fini(&block);
    }
    if (!ok)
        fprintf(stderr, "refused: %d %s\n", (int)err.code, err.text);
done:
    parquet_close(file);
    strbuf_fini(&bytes);
    return ok;
}

int main(int argc, char **argv)
{
    bool ok = argc > 1;
    for (int i = 1; i < argc; i++)
        ok = print_file(argv[i]) && ok;
    return ok ? 0 : 1;
}
