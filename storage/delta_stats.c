/* delta_stats.c: see delta_stats.h. */
#include "storage/delta_stats.h"

#include <math.h>

#include "base/clock.h"
#include "base/text.h"
#include "format/text_date.h"
#include "format/text_value.h"
#include "storage/delta_schema.h"

enum { COLUMNS_MAX = 32, CHARACTERS_MAX = 32 };

/* ---- bounds of a whole part ---- */

/* As cells in columns of the type, not nullable; each has one row where the bounds are known. */
struct bounds {
    struct type type;
    struct column min, max;
    uint64_t nulls;
    bool nulls_known;
};

static void push_cell(struct column *c, const void *cell, struct str text)
{
    if (c->type->kind == TYPE_STRING)
        column_push_str(c, text);
    else
        column_push_fixed(c, cell);
}

/* Keeps the lesser (sign 1) or greater (sign -1) of the cell and what is there. */
static void keep(struct column *c, const void *cell, struct str text, int sign)
{
    push_cell(c, cell, text);
    if (c->rows == 1)
        return;
    if (sign * column_compare(c, 1, c, 0) < 0) {
        struct column better;
        column_init(&better, c->type);
        column_append(&better, c, 1, 1);
        column_fini(c);
        *c = better;
    } else {
        column_truncate(c, 1);
    }
}

static bool has_nans(const struct parquet_stats *stats, const struct type *type)
{
    bool is_float = type->kind == TYPE_FLOAT32 || type->kind == TYPE_FLOAT64;
    return is_float && (!stats->nans_known || stats->nans > 0);
}

static void forget(struct bounds *b)
{
    column_truncate(&b->min, 0);
    column_truncate(&b->max, 0);
}

/* Of column `at` of the file. min and max stay empty where no bound is sure. */
static void bounds_init(struct bounds *b, const struct parquet_file *file, size_t at)
{
    b->type = *parquet_schema(file)->columns[at].type;
    b->type.nullable = false;
    b->nulls = 0;
    b->nulls_known = true;
    column_init(&b->min, &b->type);
    column_init(&b->max, &b->type);
    bool known = true;
    for (size_t g = 0; g < parquet_row_groups(file); g++) {
        struct parquet_stats stats = parquet_stats(file, g, at);
        b->nulls += stats.nulls;
        b->nulls_known = b->nulls_known && stats.nulls_known;
        if (stats.nulls_known && stats.nulls == parquet_row_group(file, g).rows)
            continue;
        known = known && stats.known && !has_nans(&stats, &b->type);
        if (!known)
            continue;
        keep(&b->min, stats.min, stats.min_str, 1);
        keep(&b->max, stats.max, stats.max_str, -1);
    }
    if (!known)
        forget(b);
}

static void bounds_fini(struct bounds *b)
{
    column_fini(&b->min);
    column_fini(&b->max);
}

/* ---- one value ---- */

static int64_t cell_ticks(const struct column *c)
{
    uint32_t seconds;
    int64_t ticks;
    if (c->type->kind == TYPE_DATETIME) {
        memcpy(&seconds, column_cell(c, 0), sizeof seconds);
        return seconds;
    }
    memcpy(&ticks, column_cell(c, 0), sizeof ticks);
    return ticks;
}

static int64_t power_of_ten(unsigned n)
{
    int64_t value = 1;
    while (n-- > 0)
        value *= 10;
    return value;
}

/* 2025-03-01T00:00:00.000Z with so many digits; up: what has more of them is rounded up, else down. False for times
 * that have no such text. */
static bool add_time(struct strbuf *out, const struct column *c, unsigned digits, bool up)
{
    unsigned precision = c->type->kind == TYPE_DATETIME ? 0 : c->type->precision;
    int64_t ticks = cell_ticks(c), by = power_of_ten(precision > digits ? precision - digits : digits - precision);
    if (precision <= digits) {
        ticks *= by; /* the part's microseconds fit as well */
    } else {
        int64_t rest = ticks % by;
        ticks = ticks / by - (rest < 0) + (up && rest != 0);
    }
    int64_t second = power_of_ten(digits), seconds = ticks / second - (ticks % second < 0);
    if (seconds < DATE32_MIN * INT64_C(86400) || seconds >= (DATE32_MAX + 1) * INT64_C(86400))
        return false;
    size_t at = out->len;
    date_print_datetime64(out, timezone_utc(), digits, ticks, format_settings_default());
    must(out->data[at + 10] == ' ');
    out->data[at + 10] = 'T';
    strbuf_add_char(out, 'Z');
    return true;
}

/* Not more than the first characters; of a maximum that is cut, the last one is raised. */
static bool add_text_bound(struct strbuf *out, struct str text, bool up)
{
    size_t len = 0;
    if (!text_is_utf8(text))
        return false;
    for (size_t i = 0; i < CHARACTERS_MAX && len < text.len; i++)
        len += text_utf8_len(str_from(text, len));
    struct strbuf cut = { 0 };
    bool ok = true;
    if (up && len < text.len)
        ok = text_add_successor(&cut, str_sub(text, 0, len));
    else
        strbuf_add(&cut, str_sub(text, 0, len));
    if (ok)
        text_add_json_quoted(out, strbuf_view(&cut));
    strbuf_fini(&cut);
    return ok;
}

/* A float of four bytes is compared as the double that it is, so it is printed as that. */
static bool add_float(struct strbuf *out, const struct column *c)
{
    double value;
    if (c->type->kind == TYPE_FLOAT32) {
        float narrow;
        memcpy(&narrow, column_cell(c, 0), sizeof narrow);
        value = (double)narrow;
    } else {
        memcpy(&value, column_cell(c, 0), sizeof value);
    }
    if (!isfinite(value))
        return false;
    struct column wide;
    column_init(&wide, type_of_kind(TYPE_FLOAT64));
    column_push_fixed(&wide, &value);
    text_value_print(&wide, 0, TEXT_PLAIN, format_settings_default(), out);
    column_fini(&wide);
    return true;
}

/* Decimals have all digits of their scale, as delta-kernel wants them. */
static void add_zeros(struct strbuf *out, size_t from, unsigned scale)
{
    ptrdiff_t dot = str_find_char(str_from(strbuf_view(out), from), '.');
    size_t digits = dot == STR_NONE ? 0 : out->len - from - (size_t)dot - 1;
    if (dot == STR_NONE && scale > 0)
        strbuf_add_char(out, '.');
    for (; digits < scale; digits++)
        strbuf_add_char(out, '0');
}

static void add_plain(struct strbuf *out, const struct column *c, bool quoted)
{
    if (quoted)
        strbuf_add_char(out, '"');
    size_t from = out->len;
    text_value_print(c, 0, TEXT_PLAIN, format_settings_default(), out);
    if (c->type->kind == TYPE_DECIMAL)
        add_zeros(out, from, c->type->scale);
    if (quoted)
        strbuf_add_char(out, '"');
}

static bool add_quoted_time(struct strbuf *out, const struct column *c, bool up)
{
    strbuf_add_char(out, '"');
    bool ok = add_time(out, c, 3, up);
    strbuf_add_char(out, '"');
    return ok;
}

/* A bound as JSON; false where it has no form. */
static bool add_bound(struct strbuf *out, const struct table_def *def, const struct column *c, bool up)
{
    int64_t nanos;
    switch (c->type->kind) {
    case TYPE_FLOAT32:
    case TYPE_FLOAT64:
        return add_float(out, c);
    case TYPE_STRING:
        return !delta_text_is_binary(&def->settings) && add_text_bound(out, column_str(c, 0), up);
    case TYPE_DATETIME:
        return add_quoted_time(out, c, up);
    case TYPE_DATETIME64:
        if (c->type->precision <= 6)
            return add_quoted_time(out, c, up);
        if (__builtin_mul_overflow(cell_ticks(c), power_of_ten(9U - c->type->precision), &nanos))
            return false;
        strbuf_add_i64(out, nanos);
        return true;
    case TYPE_DATE:
    case TYPE_DATE32:
    case TYPE_UUID:
        add_plain(out, c, true);
        return true;
    case TYPE_DECIMAL:
    case TYPE_INT8:
    case TYPE_INT16:
    case TYPE_INT32:
    case TYPE_INT64:
    case TYPE_UINT8:
    case TYPE_UINT16:
    case TYPE_UINT32:
    case TYPE_UINT64:
        add_plain(out, c, false);
        return true;
    default: /* Bool and binary have none, others none that a reader would compare as we do */
        return false;
    }
}

/* ---- a part ---- */

static bool is_in_order(const struct table_def *def, size_t column)
{
    for (size_t i = 0; i < def->order_columns_count; i++)
        if (def->order_stored[i] == column)
            return true;
    return false;
}

static void add_member(struct strbuf *object, struct str name, struct str value)
{
    if (object->len > 0)
        strbuf_add_char(object, ',');
    text_add_json_quoted(object, name);
    strbuf_add_char(object, ':');
    strbuf_add(object, value);
}

struct objects {
    struct strbuf min, max, nulls;
};

/* Both bounds or none: a lone one is of little use and confuses readers. */
static void add_column(struct objects *objects, const struct table_def *def, const struct parquet_file *file, size_t at,
                       struct str name)
{
    struct bounds bounds;
    struct strbuf min = { 0 }, max = { 0 };
    bounds_init(&bounds, file, at);
    if (bounds.min.rows == 1 && add_bound(&min, def, &bounds.min, false) && add_bound(&max, def, &bounds.max, true)) {
        add_member(&objects->min, name, strbuf_view(&min));
        add_member(&objects->max, name, strbuf_view(&max));
    }
    if (bounds.nulls_known) {
        strbuf_clear(&min);
        strbuf_add_u64(&min, bounds.nulls);
        add_member(&objects->nulls, name, strbuf_view(&min));
    }
    bounds_fini(&bounds);
    strbuf_fini(&min);
    strbuf_fini(&max);
}

void delta_stats_print(const struct table_def *def, const struct part *part, struct strbuf *out)
{
    struct objects objects = { 0 };
    size_t taken = 0;
    for (size_t i = 0; i < def->stored->columns_count; i++) {
        const struct schema_column *column = &def->stored->columns[i];
        int at = part_column(part, column);
        if (at < 0 || column->type->children_count > 0 || (taken >= COLUMNS_MAX && !is_in_order(def, i)))
            continue;
        taken++;
        add_column(&objects, def, part->file, (size_t)at, column->name);
    }
    strbuf_addf(out, "{\"numRecords\":%llu,\"minValues\":{", (unsigned long long)part->rows);
    strbuf_add(out, strbuf_view(&objects.min));
    strbuf_add_text(out, "},\"maxValues\":{");
    strbuf_add(out, strbuf_view(&objects.max));
    strbuf_add_text(out, "},\"nullCount\":{");
    strbuf_add(out, strbuf_view(&objects.nulls));
    strbuf_add_text(out, "}}");
    strbuf_fini(&objects.min);
    strbuf_fini(&objects.max);
    strbuf_fini(&objects.nulls);
}

bool delta_partition_value(const struct table_def *def, int column, const struct part *part, struct strbuf *out,
                           bool *null, struct err *err)
{
    struct bounds bounds;
    int at = part_column(part, &def->stored->columns[column]);
    if (at < 0)
        return err_set(err, ERR_CORRUPTED_DATA, "a part lacks a column of the partition key");
    bounds_init(&bounds, part->file, (size_t)at);
    bool known = bounds.min.rows == 1, ok = true;
    *null = bounds.nulls_known && bounds.nulls == part->rows;
    if (known && bounds.type.kind == TYPE_DATETIME)
        ok = add_time(out, &bounds.min, 6, false);
    else if (known)
        add_plain(out, &bounds.min, false);
    bounds_fini(&bounds);
    return (ok && known != *null) ||
           err_set(err, ERR_CORRUPTED_DATA, "the footer of a part does not tell its value of the partition key");
}
