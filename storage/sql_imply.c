/* sql_imply.c: what a WHERE implies of single columns where SQLite does not see it: f(column) compared with a constant,
 * for an f of times that never falls; texts with a known beginning. What is implied is added to the condition, whose
 * answer does not change: it is there for the tables, which can only pass over rows by the values of columns. That a
 * map has an entry is no condition on a column; the table is told of it aside.
 *
 * The edge of a column's values is computed while the statement runs, from the constant's value, by a function of ours
 * that has no name: now() - INTERVAL 1 HOUR is no literal. */
#include <string.h>

#include "format/sql_types.h"
#include "format/timezone.h"
#include "storage/sql_fn.h"

/* ---- f(t) compared with x, as t compared with edges ---- */

enum shape {
    SHAPE_INSTANT, /* f(t) is an instant, at most `length` seconds before t */
    SHAPE_DAY,     /* f(t) is a day, less than `length` days before that of t */
    SHAPE_PERIOD,  /* f(t) is the first day of t's `length` months of a year */
    SHAPE_MONTH,   /* f(t) is YYYYMM */
    SHAPE_YEAR,    /* YYYY */
    SHAPE_DATE     /* YYYYMMDD */
};
struct monotone {
    const char *name;
    enum shape shape;
    int64_t length;
};
static const struct monotone monotones[] = {
    { "toUnixTimestamp", SHAPE_INSTANT, 1 },
    { "toStartOfSecond", SHAPE_INSTANT, 1 },
    { "toStartOfMinute", SHAPE_INSTANT, 60 },
    { "toStartOfFiveMinutes", SHAPE_INSTANT, 300 },
    { "toStartOfFiveMinute", SHAPE_INSTANT, 300 },
    { "toStartOfTenMinutes", SHAPE_INSTANT, 600 },
    { "toStartOfFifteenMinutes", SHAPE_INSTANT, 900 },
    { "toStartOfHour", SHAPE_INSTANT, 3600 },
    { "toStartOfDay", SHAPE_INSTANT, 86400 },
    { "toDate", SHAPE_DAY, 1 },
    { "toMonday", SHAPE_DAY, 7 },
    { "toStartOfWeek", SHAPE_DAY, 7 },
    { "toStartOfMonth", SHAPE_PERIOD, 1 },
    { "toStartOfQuarter", SHAPE_PERIOD, 3 },
    { "toStartOfYear", SHAPE_PERIOD, 12 },
    { "toYYYYMM", SHAPE_MONTH, 0 },
    { "toYear", SHAPE_YEAR, 0 },
    { "toYYYYMMDD", SHAPE_DATE, 0 },
};

enum edge { EDGE_LOW, EDGE_HIGH };

/* Seconds by which wall clocks are set back and forth, and what the engine makes of the hours in between. */
enum { CLOCK_CHANGE_S = 7200, YEAR_FIRST = 1971, YEAR_LAST = 2105, DAY_SECONDS = 86400 };

static int64_t unbounded(enum edge edge)
{
    return edge == EDGE_LOW ? INT64_MIN : INT64_MAX;
}

/* The last day of the `length` months that `month` is in. */
static int64_t period_end(int64_t year, unsigned month, int64_t length)
{
    int64_t next = ((int64_t)month - 1) / length * length + length;
    return civil_days(year + next / 12, (unsigned)(next % 12) + 1, 1) - 1;
}

static bool is_known_year(int64_t year)
{
    return year >= YEAR_FIRST && year <= YEAR_LAST;
}

/* The same where x is a day. */
static bool edge_of_day(const struct monotone *f, enum edge edge, int64_t x, int64_t *day)
{
    int64_t year;
    unsigned month, of_month;
    civil_date(x, &year, &month, &of_month);
    *day = edge == EDGE_LOW ? x : f->shape == SHAPE_DAY ? x + f->length - 1 : period_end(year, month, f->length);
    return is_known_year(year);
}

/* The first day of which f may be x or more, or the last of which it may be x or less; false where nothing is known. */
static bool edge_day(const struct monotone *f, enum edge edge, int64_t x, int64_t *day)
{
    if (f->shape == SHAPE_DAY || f->shape == SHAPE_PERIOD)
        return edge_of_day(f, edge, x, day);
    int64_t of_month = 1, month = 1;
    if (f->shape == SHAPE_DATE) {
        of_month = x % 100;
        x /= 100;
    }
    if (f->shape != SHAPE_YEAR) {
        month = x % 100;
        x /= 100;
    }
    if (!is_known_year(x) || month < 1 || month > 12 || of_month < 1 || of_month > 31)
        return false;
    *day = edge == EDGE_LOW || f->shape == SHAPE_DATE ? civil_days(x, (unsigned)month, of_month)
                                                      : period_end(x, (unsigned)month, f->shape == SHAPE_YEAR ? 12 : 1);
    return true;
}

/* The least value of the column of which f may be x or more, or the greatest of which it may be x or less. Types of
 * times end somewhere, and f stays there where its column goes on: near the ends nothing is said. */
static int64_t edge_value(const struct sql_run *run, const struct monotone *f, enum edge edge, const struct type *type,
                          int64_t x)
{
    static const int64_t instant_first = INT64_C(365) * DAY_SECONDS, instant_last = INT64_C(49300) * DAY_SECONDS;
    const struct time_zone *zone = sql_run_zone(run, type);
    bool of_days = type->kind == TYPE_DATE || type->kind == TYPE_DATE32;
    int64_t seconds, slack = zone == timezone_utc() && run->zone == zone ? 0 : CLOCK_CHANGE_S, ticks, day;
    if (f->shape == SHAPE_INSTANT) {
        if (of_days || x < instant_first || x > instant_last)
            return unbounded(edge);
        seconds = edge == EDGE_LOW ? x : x + f->length;
    } else {
        if (!edge_day(f, edge, x, &day))
            return unbounded(edge);
        if (of_days)
            return day;
        seconds = timezone_to_utc(zone, edge == EDGE_LOW ? day : day + 1, 0);
    }
    seconds += edge == EDGE_LOW ? -slack : slack;
    int64_t scale = (int64_t)sql_wide_pow10(sql_type_scale(type)).w[0];
    return __builtin_mul_overflow(seconds, scale, &ticks) ? unbounded(edge) : ticks;
}

/* call->op: place in monotones times two, plus the edge; its type is the column's. */
static bool run_edge(struct sql_call *call, const struct sql_value *args, struct sql_value *out, struct err *err)
{
    enum edge edge = call->op % 2 == 0 ? EDGE_LOW : EDGE_HIGH;
    (void)err;
    *out =
        sql_int(args[0].kind == SQL_INT ? edge_value(call->run, &monotones[call->op / 2], edge, call->type, args[0].i)
                                        : unbounded(edge));
    return true;
}

/* ---- conditions ---- */

enum { IMPLIED_MAX = 32 };
struct implied {
    struct sql_resolver *r;
    struct sql_node *nodes[IMPLIED_MAX];
    size_t count;
};

static struct sql_node *behind_aliases(struct sql_node *node)
{
    while (node->emit == SQL_EMIT_NODE && node->target != NULL)
        node = node->target;
    return node;
}

/* A column that is printed as one: not of a side of a join that may be missing. */
static bool is_column(const struct sql_node *node)
{
    return node->emit == SQL_EMIT_COLUMN && node->table->outer_since == SIZE_MAX;
}

static struct sql_node *new_node(struct implied *implied, enum sql_emit_kind emit, size_t args_count)
{
    struct sql_node *node = ARENA_NEW(implied->r->arena, struct sql_node);
    node->kind = SQL_CALL;
    node->state = SQL_RESOLVED;
    node->emit = emit;
    node->type = type_of_kind(TYPE_UINT8);
    node->args = ARENA_ARRAY(implied->r->arena, struct sql_node *, args_count);
    node->args_count = args_count;
    return node;
}

static void add(struct implied *implied, const char *template, struct sql_node *column, struct sql_node *value)
{
    if (implied->count == IMPLIED_MAX)
        return;
    struct sql_node *node = new_node(implied, SQL_EMIT_TEMPLATE, 2);
    node->template = template;
    node->args[0] = column;
    node->args[1] = value;
    implied->nodes[implied->count++] = node;
}

/* ---- times ---- */

static void add_edge(struct implied *implied, size_t place, enum edge edge, struct sql_node *column, struct sql_node *x)
{
    static const struct sql_function function = { .name = "" };
    struct sql_node *node = new_node(implied, SQL_EMIT_SCALAR, 1);
    node->args[0] = x;
    node->type = sql_type_plain(column->type, implied->r->arena);
    node->call = sql_call_new(implied->r, node);
    node->call->function = &function;
    node->call->run_fn = run_edge;
    node->call->op = (int)place * 2 + (int)edge;
    add(implied, edge == EDGE_LOW ? "($0 >= $1)" : "($0 <= $1)", column, node);
}

/* What f gives, and what x has to be, for the numbers of both to mean the same. */
static bool types_fit(enum shape shape, const struct type *column, const struct type *result, const struct type *x)
{
    if (!sql_type_is_time(column) || sql_rep_of(column) != SQL_REP_INT)
        return false;
    if (shape == SHAPE_INSTANT)
        return (result->kind == TYPE_DATETIME && x->kind == TYPE_DATETIME) ||
               (sql_type_is_int(result) && sql_type_is_int(x));
    if (shape == SHAPE_DAY || shape == SHAPE_PERIOD)
        return result->kind == TYPE_DATE && x->kind == TYPE_DATE;
    return sql_type_is_int(result) && sql_type_is_int(x);
}

/* f(column) op x */
static void of_time(struct implied *implied, struct sql_node *call, enum sql_compare op, struct sql_node *x)
{
    struct arena *arena = implied->r->arena;
    if (call->kind != SQL_CALL || call->args_count != 1 || !x->constant || op == SQL_NE)
        return;
    struct sql_node *column = behind_aliases(call->args[0]);
    if (!is_column(column))
        return;
    for (size_t i = 0; i < ARRAY_COUNT(monotones); i++) {
        if (!str_is(call->name, monotones[i].name) ||
            !types_fit(monotones[i].shape, sql_type_plain(column->type, arena), sql_type_plain(call->type, arena),
                       sql_type_plain(x->type, arena)))
            continue;
        if (op != SQL_LT && op != SQL_LE)
            add_edge(implied, i, EDGE_LOW, column, x);
        if (op != SQL_GT && op != SQL_GE)
            add_edge(implied, i, EDGE_HIGH, column, x);
    }
}

/* ---- maps ---- */

static bool is_text(const struct type *type)
{
    return type->kind == TYPE_STRING && !type->nullable;
}

/* The table that it is a column of, if that is one on disk and all its rows have to meet the condition, which is not so
 * where a JOIN chooses among them first. */
static struct sql_source_table *source_of(const struct sql_node *column, const struct sql_select *select)
{
    bool own = column->table >= select->tables && column->table < select->tables + select->tables_count;
    struct sql_source_table *source = own && column->table->thinning == NULL ? column->table->source : NULL;
    return source != NULL && source->kind == SQL_SOURCE_TABLE ? source : NULL;
}

/* map['key'] = 'value': a map without the key has the empty text there. */
static void of_map(struct implied *implied, struct sql_node *call, enum sql_compare op, const struct sql_node *x)
{
    const struct sql_node *value = sql_node_constant(x);
    if (op != SQL_EQ || call->kind != SQL_CALL || !str_is(call->name, "arrayElement") || value == NULL ||
        !is_text(value->type) || value->value.s.len == 0)
        return;
    const struct sql_node *column = behind_aliases(call->args[0]), *key = sql_node_constant(call->args[1]);
    if (!is_column(column) || key == NULL || !is_text(key->type))
        return;
    struct sql_source_table *source = source_of(column, implied->r->select);
    const struct type *type = sql_type_plain(column->type, implied->r->arena);
    if (source == NULL || type->kind != TYPE_MAP || !is_text(type->children[0]) || !is_text(type->children[1]) ||
        source->map_terms_count == SQL_MAP_TERMS_MAX)
        return;
    source->map_terms[source->map_terms_count++] =
        (struct sql_map_term){ column->column, key->value.s, value->value.s };
}

static void of_compare(struct implied *implied, struct sql_node *node)
{
    static const enum sql_compare mirrored[] = {
        [SQL_EQ] = SQL_EQ, [SQL_NE] = SQL_NE, [SQL_LT] = SQL_GT, [SQL_GT] = SQL_LT, [SQL_LE] = SQL_GE, [SQL_GE] = SQL_LE
    };
    const struct sql_function *function = sql_function_find(node->name);
    if (function == NULL || function->bind != sql_bind_compare || node->args_count != 2)
        return;
    enum sql_compare op = (enum sql_compare)function->op;
    struct sql_node *a = behind_aliases(node->args[0]), *b = behind_aliases(node->args[1]);
    of_time(implied, a, op, b);
    of_time(implied, b, mirrored[op], a);
    of_map(implied, a, op, b);
    of_map(implied, b, op, a);
}

/* ---- texts ---- */

/* What every text begins with that is LIKE the pattern. */
static struct str like_prefix(struct str pattern, struct arena *arena)
{
    struct strbuf prefix = { 0 };
    for (size_t i = 0; i < pattern.len && pattern.data[i] != '%' && pattern.data[i] != '_'; i++) {
        bool escapes = pattern.data[i] == '\\' && i + 1 < pattern.len && strchr("%_\\", pattern.data[i + 1]) != NULL &&
                       pattern.data[i + 1] != '\0';
        i += escapes;
        strbuf_add_char(&prefix, pattern.data[i]);
    }
    struct str copy = arena_dup(arena, strbuf_view(&prefix));
    strbuf_fini(&prefix);
    return copy;
}

/* The least text behind all that begin with prefix; false where there is none. */
static bool text_behind(struct str prefix, struct arena *arena, struct str *out)
{
    while (prefix.len > 0 && (uint8_t)prefix.data[prefix.len - 1] == 0xFF)
        prefix.len--;
    if (prefix.len == 0)
        return false;
    char *copy = arena_alloc(arena, prefix.len);
    memcpy(copy, prefix.data, prefix.len);
    copy[prefix.len - 1]++;
    *out = str_make(copy, prefix.len);
    return true;
}

static struct sql_node *text_literal(struct implied *implied, struct str text)
{
    struct sql_value value = sql_text(text);
    return sql_node_literal(implied->r, type_of_kind(TYPE_STRING), &value);
}

/* like(column, 'abc%'), startsWith(column, 'abc') */
static void of_text(struct implied *implied, struct sql_node *node)
{
    struct arena *arena = implied->r->arena;
    bool like = str_is(node->name, "like");
    if ((!like && !str_is(node->name, "startsWith")) || node->args_count != 2)
        return;
    struct sql_node *column = behind_aliases(node->args[0]);
    const struct sql_node *pattern = sql_node_constant(node->args[1]);
    if (!is_column(column) || sql_type_plain(column->type, arena)->kind != TYPE_STRING || pattern == NULL ||
        pattern->value.kind != SQL_TEXT)
        return;
    struct str prefix = like ? like_prefix(pattern->value.s, arena) : pattern->value.s, end;
    if (prefix.len == 0)
        return;
    add(implied, "($0 >= $1)", column, text_literal(implied, prefix));
    if (text_behind(prefix, arena, &end))
        add(implied, "($0 < $1)", column, text_literal(implied, end));
}

static void of_condition(struct implied *implied, struct sql_node *node)
{
    node = behind_aliases(node);
    if (node->kind != SQL_CALL)
        return;
    if (str_is(node->name, "and")) {
        for (size_t i = 0; i < node->args_count; i++)
            of_condition(implied, node->args[i]);
        return;
    }
    of_compare(implied, node);
    of_text(implied, node);
}

void sql_imply(struct sql_resolver *r, struct sql_node **condition)
{
    struct implied implied = { .r = r };
    of_condition(&implied, *condition);
    if (implied.count == 0)
        return;
    struct sql_node *all = new_node(&implied, SQL_EMIT_TEMPLATE, implied.count + 1);
    all->name = STR("and");
    all->template = "$& AND ";
    all->args[0] = *condition;
    memcpy(all->args + 1, implied.nodes, implied.count * sizeof(struct sql_node *));
    *condition = all;
}
