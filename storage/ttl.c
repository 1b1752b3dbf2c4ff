/* ttl.c: rules are evaluated as DEFAULT expressions are, into a column of seconds. Where a rule moves one time column
 * and keeps its order, the bounds of that column tell about a whole part. */
#include "storage/ttl.h"

#include <stdlib.h>

#include "base/clock.h"
#include "format/defaults.h"
#include "storage/expr_text.h"
#include "storage/sql.h"

enum { RULES_MAX = 64 };
#define YEAR_S (INT64_C(366) * 86400) /* as much as a toStartOf takes away */

struct rule {
    const struct default_expr *time;    /* seconds */
    const struct default_expr *where;   /* UInt8; NULL: all rows */
    const struct schema_column *column; /* the time column that it moves in order; NULL: it is not so simple */
    const struct default_expr *own;     /* that column's own time */
    bool forward;                       /* nothing in it moves a time back, so that a result before own began anew */
};
struct ttl {
    const struct type *seconds;
    struct rule *rules;
    size_t count;
};

/* ---- parsing ---- */

static bool is_time(const struct type *type)
{
    switch (type->kind) {
    case TYPE_DATE:
    case TYPE_DATE32:
    case TYPE_DATETIME:
    case TYPE_DATETIME64:
        return !type->nullable;
    default:
        return false;
    }
}

static bool keeps_order(struct str function)
{
    static const char *const names[] = { "toDate", "toDate32", "toDateTime", "toDateTime64", "plus" };
    bool found = str_starts(function, STR("toStartOf")) || str_starts(function, STR("toInterval"));
    for (size_t i = 0; i < ARRAY_COUNT(names) && !found; i++)
        found = str_is(function, names[i]);
    return found;
}

/* Looks for the column once among functions that keep order, with no minus before it. */
static void look_at_order(const struct expr_text *expr, const struct schema *stored, struct rule *rule)
{
    struct lexer lexer;
    size_t columns = 0;
    bool ordered = expr->names_count == 1;
    rule->forward = true;
    lexer_init(&lexer, expr->text);
    for (struct token token = lexer_next(&lexer); token.kind != TOKEN_END && ordered; token = lexer_next(&lexer)) {
        bool call = token.kind == TOKEN_WORD && token_is_symbol(lexer_peek(&lexer), "(");
        if (call)
            ordered = keeps_order(token.text);
        else if (token.kind == TOKEN_WORD || token.kind == TOKEN_QUOTED_NAME)
            columns++;
        else if (token_is_symbol(token, "-")) {
            ordered = columns > 0;
            rule->forward = false;
        } else
            ordered = token.kind == TOKEN_NUMBER || token.kind == TOKEN_STRING || token_is_symbol(token, "(") ||
                      token_is_symbol(token, ")") || token_is_symbol(token, ",") || token_is_symbol(token, "+");
    }
    int index = ordered && columns == 1 ? schema_find(stored, expr->names[0], false) : -1;
    if (index >= 0 && is_time(stored->columns[index].type))
        rule->column = &stored->columns[index];
}

static bool check_names(const struct expr_text *expr, const struct schema *stored, struct err *err)
{
    for (size_t i = 0; i < expr->names_count; i++)
        if (schema_find(stored, expr->names[i], false) < 0)
            return err_set(err, ERR_UNKNOWN_IDENTIFIER, "Missing columns: '" STR_FMT "' while processing TTL " STR_FMT,
                           STR_ARG(expr->names[i]), STR_ARG(expr->text));
    return true;
}

/* As the DEFAULT of one more column beside the stored ones. */
static bool bind(const struct default_expr *expr, const struct type *type, const struct schema *stored,
                 struct arena *arena, struct err *err)
{
    size_t count = stored->columns_count;
    struct schema_column *columns = ARENA_ARRAY(arena, struct schema_column, count + 1);
    for (size_t i = 0; i < count; i++)
        columns[i] = (struct schema_column){ .name = stored->columns[i].name, .type = stored->columns[i].type };
    columns[count] = (struct schema_column){
        .name = STR("TTL expression"), .type = type, .default_kind = DEFAULT_DEFAULT, .default_expr = expr
    };
    return defaults_bind(columns, count + 1, arena, err);
}

static bool parse_value(const struct expr_text *expr, const struct type *type, const struct schema *stored,
                        struct arena *arena, const struct default_expr **out, struct err *err)
{
    struct str ignored;
    if (!default_parse(expr->text, type, arena, out, &ignored, err) || !bind(*out, type, stored, arena, err))
        return false;
    return !default_is_volatile(*out) ||
           err_set(err, ERR_BAD_ARGUMENTS, "TTL expression cannot contain non-deterministic functions: " STR_FMT,
                   STR_ARG(expr->text));
}

static bool parse_rule(struct lexer *lexer, const struct schema *stored, struct arena *arena, struct ttl *ttl,
                       struct err *err)
{
    struct rule *rule = &ttl->rules[ttl->count++];
    struct expr_text expr, own = { 0 };
    const struct type *type;
    if (!expr_text_parse(lexer, arena, &expr, err) || !check_names(&expr, stored, err))
        return false;
    if (expr.names_count == 0)
        return err_set(err, ERR_BAD_ARGUMENTS,
                       "TTL expression " STR_FMT " does not depend on any of the columns of the table",
                       STR_ARG(expr.text));
    if (!sql_expression_type(expr.text, stored->columns, stored->columns_count, arena, &type, err))
        return false;
    if (!is_time(type))
        return err_set(
            err, ERR_BAD_TTL_EXPRESSION,
            "TTL expression result column should have Date, Date32, DateTime or DateTime64 type, but has " STR_FMT,
            STR_ARG(type->text));
    if (!parse_value(&expr, ttl->seconds, stored, arena, &rule->time, err))
        return false;
    look_at_order(&expr, stored, rule);
    own.text = expr.names[0];
    if (rule->column != NULL && !parse_value(&own, ttl->seconds, stored, arena, &rule->own, err))
        return false;
    if (!lexer_take_word(lexer, "WHERE"))
        return true;
    return expr_text_parse(lexer, arena, &expr, err) && check_names(&expr, stored, err) &&
           parse_value(&expr, type_of_kind(TYPE_UINT8), stored, arena, &rule->where, err);
}

bool ttl_parse(struct str text, const struct schema *stored, struct arena *arena, const struct ttl **out,
               struct err *err)
{
    struct ttl *ttl = ARENA_NEW(arena, struct ttl);
    struct lexer lexer;
    ttl->rules = ARENA_ARRAY(arena, struct rule, RULES_MAX);
    lexer_init(&lexer, text);
    if (!type_parse(STR("DateTime64(0, 'UTC')"), arena, &ttl->seconds, err))
        return false;
    do {
        if (ttl->count == RULES_MAX)
            return err_set(err, ERR_BAD_TTL_EXPRESSION, "more than %d TTL expressions", RULES_MAX);
        if (!parse_rule(&lexer, stored, arena, ttl, err))
            return false;
    } while (lexer_take_symbol(&lexer, ","));
    *out = ttl;
    return true;
}

/* ---- rows ---- */

/* One more value of an expression; false, and a row all the same, where it fails. */
static bool evaluate(const struct default_expr *expr, struct default_run *run, const struct block *block,
                     struct column *out, int64_t *value)
{
    struct err ignored = { 0 };
    if (!default_eval(expr, run, block, out, &ignored)) {
        column_push_default(out);
        return false;
    }
    *value = 0;
    memcpy(value, column_cell(out, out->rows - 1), out->width); /* little-endian */
    return true;
}

struct scratch {
    struct default_run *run;
    struct column time, own, where;
};

static void scratch_init(struct scratch *scratch, const struct ttl *ttl)
{
    scratch->run = default_run_new(0, NULL);
    column_init(&scratch->time, ttl->seconds);
    column_init(&scratch->own, ttl->seconds);
    column_init(&scratch->where, type_of_kind(TYPE_UINT8));
}

static void scratch_fini(struct scratch *scratch)
{
    column_fini(&scratch->time);
    column_fini(&scratch->own);
    column_fini(&scratch->where);
    default_run_free(scratch->run);
}

/* When the next row of the block is over by this rule; INT64_MAX: never. */
static int64_t next_time(const struct rule *rule, const struct block *block, struct scratch *scratch)
{
    int64_t time = 0, own = 0;
    bool ok = evaluate(rule->time, scratch->run, block, &scratch->time, &time);
    if (rule->own != NULL)
        ok = evaluate(rule->own, scratch->run, block, &scratch->own, &own) && ok;
    bool began_anew = rule->own != NULL && rule->forward && time < own - YEAR_S;
    return !ok || time == 0 || began_anew ? INT64_MAX : time;
}

size_t ttl_expired(const struct ttl *ttl, const struct block *block, int64_t wall_ns, uint8_t *expired)
{
    int64_t now_s = wall_ns / (int64_t)NS_PER_S, where = 0;
    size_t count = 0;
    memset(expired, 0, block->rows);
    for (size_t i = 0; i < ttl->count; i++) {
        const struct rule *rule = &ttl->rules[i];
        struct scratch scratch;
        scratch_init(&scratch, ttl);
        for (size_t row = 0; row < block->rows; row++) {
            bool over = next_time(rule, block, &scratch) <= now_s;
            if (rule->where != NULL)
                over = evaluate(rule->where, scratch.run, block, &scratch.where, &where) && where != 0 && over;
            expired[row] |= over;
        }
        scratch_fini(&scratch);
    }
    for (size_t row = 0; row < block->rows; row++)
        count += expired[row];
    return count;
}

/* ---- parts ---- */

/* The rule's time for one value of its column, and that value's own time. */
static int64_t time_of(const struct ttl *ttl, const struct rule *rule, const void *cell, int64_t *own)
{
    struct scratch scratch;
    struct block block;
    block_init(&block, 1);
    column_init(&block.columns[0], rule->column->type);
    block.names[0] = rule->column->name;
    column_push_fixed(&block.columns[0], cell);
    block.rows = 1;
    scratch_init(&scratch, ttl);
    int64_t time = next_time(rule, &block, &scratch);
    memcpy(own, column_cell(&scratch.own, 0), sizeof *own);
    scratch_fini(&scratch);
    block_fini(&block);
    return time;
}

/* A row group by one rule. All rows: only where the column itself lies in the past, too. */
static enum ttl_state group_state(const struct ttl *ttl, const struct rule *rule, const struct part *part, size_t group,
                                  size_t column, int64_t now_s)
{
    struct parquet_stats stats = parquet_stats(part->file, group, column);
    int64_t own_min = 0, own_max = 0;
    if (!stats.known)
        return TTL_SOME;
    int64_t min = time_of(ttl, rule, stats.min, &own_min), max = time_of(ttl, rule, stats.max, &own_max);
    if (min <= max && min > now_s)
        return TTL_LIVE;
    bool all = min <= max && min > 0 && max <= now_s && own_max <= now_s && rule->where == NULL;
    return all ? TTL_ALL : TTL_SOME;
}

static enum ttl_state rule_state(const struct ttl *ttl, const struct rule *rule, const struct part *part, int64_t now_s)
{
    int column = rule->column == NULL ? -1 : part_column(part, rule->column);
    bool live = true, all = true;
    if (column < 0)
        return TTL_SOME;
    for (size_t i = 0; i < parquet_row_groups(part->file) && (live || all); i++) {
        enum ttl_state state = group_state(ttl, rule, part, i, (size_t)column, now_s);
        live = live && state == TTL_LIVE;
        all = all && state == TTL_ALL;
    }
    return live ? TTL_LIVE : all ? TTL_ALL : TTL_SOME;
}

enum ttl_state ttl_of_part(const struct ttl *ttl, const struct part *part, int64_t wall_ns)
{
    enum ttl_state state = TTL_LIVE;
    for (size_t i = 0; i < ttl->count && part->rows > 0; i++) {
        enum ttl_state one = rule_state(ttl, &ttl->rules[i], part, wall_ns / (int64_t)NS_PER_S);
        state = MAX(state, one);
    }
    return state;
}
