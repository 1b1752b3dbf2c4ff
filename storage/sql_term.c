/* sql_term.c: one condition on one column, held against bounds and against cells. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "format/sql_types.h"
#include "format/text_value.h"
#include "storage/sql_scan.h"

static int compare_values(const void *a, const void *b)
{
    return sql_value_compare(a, b);
}

static bool has_bytes(const struct sql_value *value)
{
    return value->kind == SQL_TEXT || value->kind == SQL_BLOB;
}

/* Offsets first, pointers when all bytes are there. */
static void copy_values(struct sql_term *term, const struct sql_value *values, size_t count)
{
    term->values = mem_alloc(count * sizeof *values);
    for (size_t i = 0; i < count; i++) {
        term->values[i] = values[i];
        if (!has_bytes(&values[i]))
            continue;
        term->values[i].i = (int64_t)term->bytes.len;
        strbuf_add(&term->bytes, values[i].s);
    }
    struct str all = strbuf_view(&term->bytes);
    for (size_t i = 0; i < count; i++)
        if (has_bytes(&term->values[i]))
            term->values[i].s = str_sub(all, (size_t)term->values[i].i, term->values[i].s.len);
    term->values_count = count;
    qsort(term->values, count, sizeof *values, compare_values);
}

/* No cells at all where one value is none of the type: then nothing can be asked of dictionaries and filters. Floats
 * have two zeros and many NaNs, so their bytes prove nothing. */
static void make_cells(struct sql_term *term, const struct type *type)
{
    enum sql_rep rep = sql_rep_of(type);
    struct strbuf scratch = { 0 };
    struct err err;
    column_init(&term->cells, type);
    bool ok = term->op == SQL_TERM_EQ && rep != SQL_REP_REAL && rep != SQL_REP_KEY;
    for (size_t i = 0; ok && i < term->values_count; i++) {
        ok = term->values[i].kind != SQL_NULL && sql_value_push(&term->values[i], &term->cells, &err);
        if (!ok)
            break;
        strbuf_clear(&scratch);
        struct sql_value back = sql_value_of_cell(&term->cells, i, &scratch);
        ok = sql_value_compare(&back, &term->values[i]) == 0;
    }
    if (!ok)
        column_clear(&term->cells);
    strbuf_fini(&scratch);
}

void sql_term_init(struct sql_term *term, size_t column, enum sql_term_op op, const struct type *type,
                   const struct sql_value *values, size_t values_count)
{
    *term = (struct sql_term){ .column = column, .op = op };
    copy_values(term, values, values_count);
    make_cells(term, type);
}

void sql_term_fini(struct sql_term *term)
{
    free(term->values);
    strbuf_fini(&term->bytes);
    column_fini(&term->cells);
}

/* ---- bounds ---- */

/* The first value that is not below v. */
static size_t lower_bound(const struct sql_term *term, const struct sql_value *v)
{
    size_t from = 0, to = term->values_count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (sql_value_compare(&term->values[middle], v) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

static bool within(const struct sql_term *term, const struct sql_value *min, const struct sql_value *max)
{
    if (term->op == SQL_TERM_EQ) {
        size_t at = lower_bound(term, min);
        return at < term->values_count && sql_value_compare(&term->values[at], max) <= 0;
    }
    const struct sql_value *v = &term->values[0];
    switch (term->op) {
    case SQL_TERM_GT:
        return sql_value_compare(v, max) < 0;
    case SQL_TERM_GE:
        return sql_value_compare(v, max) <= 0;
    case SQL_TERM_LT:
        return sql_value_compare(v, min) > 0;
    case SQL_TERM_LE:
        return sql_value_compare(v, min) >= 0;
    default:
        return true;
    }
}

/* NaN is outside of bounds and, to SQLite, above all numbers. Conditions that are true of numbers only say so by a
 * second term; one that is about NaN compares with infinity. */
static bool asks_for_nan(const struct sql_term *term, const struct type *type)
{
    const struct sql_value *last = &term->values[term->values_count - 1];
    return sql_rep_of(type) == SQL_REP_REAL && (last->kind != SQL_REAL || isinf(last->r)) && last->kind != SQL_INT &&
           term->op != SQL_TERM_LT && term->op != SQL_TERM_LE;
}

/* The bounds of strings may be cut; a cut upper bound is a prefix that was raised, so it still bounds. */
bool sql_term_may_match(const struct sql_term *term, const struct type *type, const struct parquet_stats *stats)
{
    if (term->op == SQL_TERM_NULL)
        return !stats->nulls_known || stats->nulls > 0;
    if (stats->only_nulls || (term->op != SQL_TERM_NOT_NULL && term->values_count == 0))
        return false;
    if (term->op == SQL_TERM_NOT_NULL || !stats->known || sql_rep_of(type) == SQL_REP_KEY || asks_for_nan(term, type))
        return true;
    struct strbuf min_bytes = { 0 }, max_bytes = { 0 };
    struct sql_value min = sql_value_of_bound(type, stats->min, stats->min_str, &min_bytes);
    struct sql_value max = sql_value_of_bound(type, stats->max, stats->max_str, &max_bytes);
    bool may = within(term, &min, &max);
    strbuf_fini(&min_bytes);
    strbuf_fini(&max_bytes);
    return may;
}

/* ---- cells ---- */

static size_t keep_nulls(const struct column *c, bool nulls, uint32_t *rows, size_t count)
{
    size_t kept = 0;
    if (c->nulls == NULL)
        return nulls ? 0 : count;
    for (size_t i = 0; i < count; i++) {
        rows[kept] = rows[i];
        kept += (c->nulls[rows[i]] != 0) == nulls;
    }
    return kept;
}

/* What the term says of integers, as an interval; false where it says something else. */
static bool interval(const struct sql_term *term, int64_t *low, int64_t *high)
{
    *low = INT64_MIN;
    *high = INT64_MAX;
    if (term->values_count != 1 || term->values[0].kind != SQL_INT)
        return false;
    int64_t v = term->values[0].i;
    switch (term->op) {
    case SQL_TERM_EQ:
        *low = *high = v;
        return true;
    case SQL_TERM_GT:
        *low = v == INT64_MAX ? v : v + 1; /* SQLite drops the one row too many */
        return true;
    case SQL_TERM_GE:
        *low = v;
        return true;
    case SQL_TERM_LT:
        *high = v == INT64_MIN ? v : v - 1;
        return true;
    case SQL_TERM_LE:
        *high = v;
        return true;
    default:
        return false;
    }
}

/* Keeps the rows whose cells are within [low, high], and returns. */
#define RETURN_WITHIN(element)                                                                                         \
    {                                                                                                                  \
        for (size_t i_ = 0; i_ < count; i_++) {                                                                        \
            element x_;                                                                                                \
            memcpy(&x_, c->data + (size_t)rows[i_] * sizeof x_, sizeof x_);                                            \
            rows[kept] = rows[i_];                                                                                     \
            kept += (int64_t)x_ >= low && (int64_t)x_ <= high;                                                         \
        }                                                                                                              \
        return kept;                                                                                                   \
    }

static size_t keep_integers(const struct column *c, int64_t low, int64_t high, uint32_t *rows, size_t count)
{
    bool is_unsigned = sql_type_is_unsigned(c->type);
    size_t kept = 0;
    switch (c->width) {
    case 1:
        if (is_unsigned)
            RETURN_WITHIN(uint8_t)
        RETURN_WITHIN(int8_t)
    case 2:
        if (is_unsigned)
            RETURN_WITHIN(uint16_t)
        RETURN_WITHIN(int16_t)
    case 4:
        if (is_unsigned)
            RETURN_WITHIN(uint32_t)
        RETURN_WITHIN(int32_t)
    default:
        RETURN_WITHIN(int64_t)
    }
}

static bool meets(const struct sql_term *term, const struct sql_value *v)
{
    return v->kind != SQL_NULL && within(term, v, v);
}

static size_t keep_equal_text(const struct column *c, struct str wanted, uint32_t *rows, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        struct str s = column_str(c, rows[i]);
        rows[kept] = rows[i];
        kept += s.len == wanted.len && memcmp(s.data, wanted.data, s.len) == 0;
    }
    return kept;
}

size_t sql_term_filter(const struct sql_term *term, const struct column *c, uint32_t *rows, size_t count)
{
    enum sql_rep rep = sql_rep_of(c->type);
    int64_t low, high;
    count = keep_nulls(c, term->op == SQL_TERM_NULL, rows, count);
    if (term->op == SQL_TERM_NULL || term->op == SQL_TERM_NOT_NULL || rep == SQL_REP_KEY || rep == SQL_REP_NONE)
        return count;
    if (term->values_count == 0)
        return 0;
    if (rep == SQL_REP_INT && interval(term, &low, &high))
        return keep_integers(c, low, high, rows, count);
    if (rep == SQL_REP_TEXT && term->op == SQL_TERM_EQ && term->values_count == 1 && term->values[0].kind == SQL_TEXT)
        return keep_equal_text(c, term->values[0].s, rows, count);
    struct strbuf scratch = { 0 };
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        strbuf_clear(&scratch);
        struct sql_value v = sql_value_of_cell(c, rows[i], &scratch);
        rows[kept] = rows[i];
        kept += meets(term, &v);
    }
    strbuf_fini(&scratch);
    return kept;
}

/* ---- for people ---- */

static void print_value(const struct sql_value *value, const struct type *type, struct strbuf *out)
{
    struct column cell;
    struct err no_value; /* of the column's type, as 1.5 is none of an integer's */
    column_init(&cell, type);
    if (value->kind == SQL_REAL && sql_rep_of(type) != SQL_REP_REAL)
        strbuf_addf(out, "%.17g", value->r);
    else if (value->kind != SQL_NULL && sql_value_push(value, &cell, &no_value))
        text_value_print(&cell, 0, TEXT_QUOTED, format_settings_default(), out);
    else
        strbuf_add_text(out, value->kind == SQL_NULL ? "NULL" : "...");
    column_fini(&cell);
}

void sql_term_print(const struct sql_term *term, struct str name, const struct type *type, struct strbuf *out)
{
    enum { VALUES_SHOWN_MAX = 5 };
    static const char *const signs[] = {
        [SQL_TERM_EQ] = " = ",
        [SQL_TERM_GT] = " > ",
        [SQL_TERM_GE] = " >= ",
        [SQL_TERM_LT] = " < ",
        [SQL_TERM_LE] = " <= ",
        [SQL_TERM_NULL] = " IS NULL",
        [SQL_TERM_NOT_NULL] = " IS NOT NULL",
    };
    bool many = term->op == SQL_TERM_EQ && term->values_count != 1;
    strbuf_addf(out, STR_FMT "%s", STR_ARG(name), many ? " IN (" : signs[term->op]);
    for (size_t i = 0; i < MIN(term->values_count, (size_t)VALUES_SHOWN_MAX); i++) {
        strbuf_add_text(out, i == 0 ? "" : ", ");
        print_value(&term->values[i], type, out);
    }
    if (term->values_count > VALUES_SHOWN_MAX)
        strbuf_addf(out, ", ... %zu values", term->values_count);
    strbuf_add_text(out, many ? ")" : "");
}

void sql_map_term_print(const struct sql_map_term *term, struct str name, struct strbuf *out)
{
    const struct type *text = type_of_kind(TYPE_STRING);
    const struct sql_value key = sql_text(term->key), value = sql_text(term->value);
    strbuf_add(out, name);
    strbuf_add_char(out, '[');
    print_value(&key, text, out);
    strbuf_add_text(out, "] = ");
    print_value(&value, text, out);
}
