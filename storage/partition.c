/* partition.c: the PARTITION BY expression: read once, computed for whole blocks.
 *
 * The elements of the key are computed into columns of their own types; rows are told apart by comparing those cells,
 * so that a block whose rows all go to one partition costs one comparison a row and one key. */
#include "storage/partition.h"

#include <stdlib.h>

#include "format/timezone.h"
#include "storage/expr_text.h"
#include "storage/partition_id.h"

enum { SECONDS_PER_DAY = 86400, ELEMENTS_MAX = 16 };

enum function {
    FN_COLUMN,
    FN_TO_DATE,
    FN_YYYYMM,
    FN_YYYYMMDD,
    FN_YEAR,
    FN_HOUR,
    FN_START_OF_YEAR,
    FN_START_OF_MONTH,
    FN_MONDAY,
    FN_START_OF_DAY,
    FN_START_OF_HOUR,
    FN_START_OF_MINUTE,
    FN_START_OF_5_MINUTES,
    FN_START_OF_10_MINUTES,
    FN_START_OF_15_MINUTES,
    FN_INT_DIV,
    FN_MODULO
};

struct element {
    enum function function;
    size_t column; /* index into the schema */
    uint64_t literal;
    const struct type *type;      /* of the result */
    const struct time_zone *zone; /* of the argument */
};

struct partition_expr {
    bool is_tuple;
    size_t count;
    struct element *elements;
    struct str plain_column; /* name where the key is one plain column */
};

void partition_key_fini(struct partition_key *key)
{
    free(key->text);
    free(key->dir);
    *key = (struct partition_key){ 0 };
}

bool partition_key_copy(struct partition_key *to, const struct partition_key *from)
{
    *to = *from;
    to->text = mem_strdup(from->text);
    to->dir = mem_strdup(from->dir);
    return true;
}

/* ---- reading the expression, from its canonical text ---- */

static const struct {
    const char *name;
    enum function function;
    enum type_kind result;
} functions[] = {
    { "toDate", FN_TO_DATE, TYPE_DATE },
    { "toYYYYMM", FN_YYYYMM, TYPE_UINT32 },
    { "toYYYYMMDD", FN_YYYYMMDD, TYPE_UINT32 },
    { "toYear", FN_YEAR, TYPE_UINT16 },
    { "toHour", FN_HOUR, TYPE_UINT8 },
    { "toStartOfYear", FN_START_OF_YEAR, TYPE_DATE },
    { "toStartOfMonth", FN_START_OF_MONTH, TYPE_DATE },
    { "toMonday", FN_MONDAY, TYPE_DATE },
    { "toStartOfDay", FN_START_OF_DAY, TYPE_DATETIME },
    { "toStartOfHour", FN_START_OF_HOUR, TYPE_DATETIME },
    { "toStartOfMinute", FN_START_OF_MINUTE, TYPE_DATETIME },
    { "toStartOfFiveMinutes", FN_START_OF_5_MINUTES, TYPE_DATETIME },
    { "toStartOfFiveMinute", FN_START_OF_5_MINUTES, TYPE_DATETIME },
    { "toStartOfTenMinutes", FN_START_OF_10_MINUTES, TYPE_DATETIME },
    { "toStartOfFifteenMinutes", FN_START_OF_15_MINUTES, TYPE_DATETIME },
};

struct reader {
    struct lexer lexer;
    const struct schema *schema;
    struct arena *arena;
    struct err *err;
    struct partition_expr *expr;
};

static bool take_column(struct reader *r, size_t *column)
{
    struct strbuf name = { 0 };
    bool ok = lexer_take_name(&r->lexer, &name, r->err);
    while (ok && lexer_take_symbol(&r->lexer, ".")) {
        strbuf_add_char(&name, '.');
        ok = lexer_take_name(&r->lexer, &name, r->err);
    }
    if (ok) {
        int index = schema_find(r->schema, strbuf_view(&name), false);
        ok = index >= 0 || err_set(r->err, ERR_UNKNOWN_IDENTIFIER,
                                   "Missing columns: '%s' while processing PARTITION BY", strbuf_cstr(&name));
        *column = ok ? (size_t)index : 0;
    }
    strbuf_fini(&name);
    enum default_kind kind = ok ? r->schema->columns[*column].default_kind : DEFAULT_NONE;
    if (kind == DEFAULT_ALIAS || kind == DEFAULT_EPHEMERAL)
        return err_set(r->err, ERR_NOT_IMPLEMENTED, "PARTITION BY an ALIAS or EPHEMERAL column is not supported");
    return ok;
}

static const struct type *date_time_type(struct reader *r, struct str zone)
{
    const struct type *type = type_of_kind(TYPE_DATETIME);
    if (zone.len == 0)
        return type;
    struct err err = { 0 };
    char *text = arena_printf(r->arena, "DateTime('" STR_FMT "')", STR_ARG(zone));
    return type_parse(str_of(text), r->arena, &type, &err) ? type : type_of_kind(TYPE_DATETIME);
}

static bool is_time(const struct type *type)
{
    return type->kind == TYPE_DATE || type->kind == TYPE_DATE32 || type->kind == TYPE_DATETIME ||
           type->kind == TYPE_DATETIME64;
}

static bool finish_time(struct reader *r, size_t index, struct element *e)
{
    const struct type *argument = r->schema->columns[e->column].type;
    const char *name = functions[index].name;
    if (!is_time(argument))
        return err_set(r->err, ERR_ILLEGAL_TYPE_OF_ARGUMENT,
                       "Illegal type " STR_FMT " of argument of function %s. Should be Date, Date32, DateTime or "
                       "DateTime64",
                       STR_ARG(argument->text), name);
    if (argument->nullable)
        return err_set(r->err, ERR_NOT_IMPLEMENTED, "function %s of a Nullable column is not supported in PARTITION BY",
                       name);
    e->function = functions[index].function;
    e->zone = timezone_find(argument->timezone);
    if (e->zone == NULL)
        return err_set(r->err, ERR_BAD_ARGUMENTS, "time zone " STR_FMT " is not known here",
                       STR_ARG(argument->timezone));
    e->type = functions[index].result == TYPE_DATETIME ? date_time_type(r, argument->timezone)
                                                       : type_of_kind(functions[index].result);
    return true;
}

static bool finish_arithmetic(struct reader *r, enum function function, struct element *e)
{
    const struct type *argument = r->schema->columns[e->column].type;
    struct token token = lexer_next(&r->lexer);
    if (token.kind != TOKEN_NUMBER || !str_to_u64(token.text, &e->literal) || e->literal == 0 || e->literal > INT64_MAX)
        return err_set(r->err, ERR_NOT_IMPLEMENTED, "PARTITION BY: the divisor has to be a whole number above 0");
    if (!type_is_integer(argument) || argument->nullable || type_width(argument) > 8)
        return err_set(r->err, ERR_ILLEGAL_TYPE_OF_ARGUMENT, "PARTITION BY: cannot divide a column of type " STR_FMT,
                       STR_ARG(argument->text));
    e->function = function;
    e->type = type_of_kind(type_is_signed(argument) ? TYPE_INT64 : TYPE_UINT64);
    return true;
}

static bool finish_plain(struct reader *r, struct element *e)
{
    const struct type *type = r->schema->columns[e->column].type;
    e->function = FN_COLUMN;
    e->type = type;
    switch (type->kind) {
    case TYPE_BFLOAT16:
    case TYPE_FLOAT32:
    case TYPE_FLOAT64:
        return err_set(r->err, ERR_BAD_ARGUMENTS, "Floating point partition key is not supported: " STR_FMT,
                       STR_ARG(r->schema->columns[e->column].name));
    case TYPE_ARRAY:
    case TYPE_MAP:
    case TYPE_TUPLE:
    case TYPE_NESTED:
    case TYPE_NOTHING:
        return err_set(r->err, ERR_NOT_IMPLEMENTED, "PARTITION BY a column of type " STR_FMT " is not supported",
                       STR_ARG(type->text));
    default:
        return true;
    }
}

static bool read_call(struct reader *r, struct str name, struct element *e)
{
    if (str_is(name, "intDiv") || str_is(name, "modulo")) {
        if (!take_column(r, &e->column))
            return false;
        if (!lexer_take_symbol(&r->lexer, ","))
            return err_set(r->err, ERR_NUMBER_OF_ARGUMENTS_DOESNT_MATCH, STR_FMT " takes two arguments", STR_ARG(name));
        if (!finish_arithmetic(r, str_is(name, "intDiv") ? FN_INT_DIV : FN_MODULO, e))
            return false;
    } else {
        size_t index = 0;
        while (index < ARRAY_COUNT(functions) && !str_is(name, functions[index].name))
            index++;
        if (index == ARRAY_COUNT(functions))
            return err_set(r->err, ERR_NOT_IMPLEMENTED, "function " STR_FMT " is not supported in PARTITION BY",
                           STR_ARG(name));
        struct lexer ahead = r->lexer;
        bool inner_date = lexer_take_word(&ahead, "toDate") && lexer_take_symbol(&ahead, "(");
        inner_date =
            inner_date && functions[index].function <= FN_START_OF_DAY &&
            functions[index].function != FN_HOUR; /* a day's function of the day of a time is that of the time */
        if (inner_date)
            r->lexer = ahead;
        if (!take_column(r, &e->column) || !finish_time(r, index, e))
            return false;
        if (inner_date && !lexer_take_symbol(&r->lexer, ")"))
            return err_set(r->err, ERR_NOT_IMPLEMENTED, "toDate() of more than a column is not supported here");
    }
    return lexer_take_symbol(&r->lexer, ")") ||
           err_set(r->err, ERR_NOT_IMPLEMENTED,
                   "PARTITION BY: " STR_FMT "() of more than a plain column is not supported", STR_ARG(name));
}

static bool read_element(struct reader *r)
{
    if (r->expr->count == ELEMENTS_MAX)
        return err_set(r->err, ERR_NOT_IMPLEMENTED, "PARTITION BY with more than %d elements", ELEMENTS_MAX);
    struct element *e = &r->expr->elements[r->expr->count];
    struct token token = lexer_peek(&r->lexer);
    struct lexer ahead = r->lexer;
    (void)lexer_next(&ahead);
    if (token.kind == TOKEN_WORD && token_is_symbol(lexer_peek(&ahead), "(")) {
        (void)lexer_next(&ahead);
        r->lexer = ahead;
        if (!read_call(r, token.text, e))
            return false;
    } else if (token.kind != TOKEN_WORD && token.kind != TOKEN_QUOTED_NAME) {
        return err_set(r->err, ERR_NOT_IMPLEMENTED,
                       "PARTITION BY: only columns and functions of them are supported, not " STR_FMT,
                       STR_ARG(token.text));
    } else {
        if (!take_column(r, &e->column))
            return false;
        bool ok = lexer_take_symbol(&r->lexer, "%") ? finish_arithmetic(r, FN_MODULO, e) : finish_plain(r, e);
        if (!ok)
            return false;
    }
    r->expr->count++;
    return true;
}

static bool read_expr(struct reader *r, bool *is_nothing)
{
    struct partition_expr *expr = r->expr;
    bool brackets = lexer_take_symbol(&r->lexer, "(");
    struct lexer ahead = r->lexer;
    if (!brackets && lexer_take_word(&ahead, "tuple") && lexer_take_symbol(&ahead, "(")) {
        brackets = true;
        r->lexer = ahead;
        *is_nothing = lexer_take_symbol(&r->lexer, ")");
        if (*is_nothing)
            return true;
    }
    do {
        if (!read_element(r))
            return false;
    } while (brackets && lexer_take_symbol(&r->lexer, ","));
    if (brackets && !lexer_take_symbol(&r->lexer, ")"))
        return err_set(r->err, ERR_NOT_IMPLEMENTED, "PARTITION BY: this expression is not supported");
    expr->is_tuple = expr->count > 1;
    if (lexer_peek(&r->lexer).kind != TOKEN_END)
        return err_set(r->err, ERR_NOT_IMPLEMENTED, "PARTITION BY: this expression is not supported");
    if (expr->count == 1 && expr->elements[0].function == FN_COLUMN)
        expr->plain_column = r->schema->columns[expr->elements[0].column].name;
    return true;
}

bool partition_expr_parse(struct lexer *lexer, const struct schema *schema, struct arena *arena,
                          const struct partition_expr **expr, struct str *canonical, struct err *err)
{
    struct expr_text text;
    if (!expr_text_parse(lexer, arena, &text, err))
        return false;
    struct partition_expr *made = ARENA_NEW(arena, struct partition_expr);
    made->elements = ARENA_ARRAY(arena, struct element, ELEMENTS_MAX);
    struct reader r = { .schema = schema, .arena = arena, .err = err, .expr = made };
    lexer_init(&r.lexer, text.text);
    bool is_nothing = false;
    if (!read_expr(&r, &is_nothing))
        return false;
    *canonical = text.text;
    *expr = is_nothing ? NULL : made;
    return true;
}

bool partition_expr_nullable(const struct partition_expr *expr)
{
    for (size_t i = 0; expr != NULL && i < expr->count; i++)
        if (expr->elements[i].type->nullable)
            return true;
    return false;
}

struct str partition_expr_plain_column(const struct partition_expr *expr)
{
    return expr == NULL ? STR_EMPTY : expr->plain_column;
}

/* ---- computing it ---- */

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && (a % b < 0) != (b < 0));
}

static int64_t signed_cell(const struct column *c, size_t row)
{
    const void *cell = column_cell(c, row);
    switch (c->width) {
    case 1:
        return *(const int8_t *)cell;
    case 2:
        return *(const int16_t *)cell;
    case 4:
        return *(const int32_t *)cell;
    default:
        return *(const int64_t *)cell;
    }
}

static uint64_t unsigned_cell(const struct column *c, size_t row)
{
    const void *cell = column_cell(c, row);
    switch (c->width) {
    case 1:
        return *(const uint8_t *)cell;
    case 2:
        return *(const uint16_t *)cell;
    case 4:
        return *(const uint32_t *)cell;
    default:
        return *(const uint64_t *)cell;
    }
}

/* Local days since 1970 and, for times, the instant in seconds. */
static void take_time(const struct element *e, const struct column *c, size_t row, int64_t *days, int64_t *instant)
{
    static const int64_t powers[] = { 1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000 };
    if (c->type->kind == TYPE_DATE || c->type->kind == TYPE_DATE32) {
        *days = c->type->kind == TYPE_DATE ? (int64_t)unsigned_cell(c, row) : signed_cell(c, row);
        *instant = timezone_to_utc(e->zone, *days, 0);
        return;
    }
    *instant = c->type->kind == TYPE_DATETIME ? (int64_t)unsigned_cell(c, row)
                                              : floor_div(signed_cell(c, row), powers[MIN(c->type->precision, 9)]);
    *days = floor_div(*instant + timezone_offset(e->zone, *instant), SECONDS_PER_DAY);
}

static int64_t start_of(const struct element *e, int64_t instant, int64_t seconds)
{
    int64_t local = instant + timezone_offset(e->zone, instant);
    return instant - (local - floor_div(local, seconds) * seconds);
}

static uint64_t time_value(const struct element *e, const struct column *c, size_t row)
{
    int64_t days, instant, year;
    unsigned month, day;
    take_time(e, c, row, &days, &instant);
    civil_date(days, &year, &month, &day);
    switch (e->function) {
    case FN_YYYYMM:
        return (uint64_t)(year * 100 + month);
    case FN_YYYYMMDD:
        return (uint64_t)(year * 10000 + month * 100 + day);
    case FN_YEAR:
        return (uint64_t)year;
    case FN_HOUR:
        return (uint64_t)(floor_div(instant + timezone_offset(e->zone, instant), 3600) - days * 24);
    case FN_START_OF_YEAR:
        return (uint64_t)civil_days(year, 1, 1);
    case FN_START_OF_MONTH:
        return (uint64_t)civil_days(year, month, 1);
    case FN_MONDAY: /* 1970-01-01 was a Thursday */
        return (uint64_t)(floor_div(days + 3, 7) * 7 - 3);
    case FN_START_OF_DAY:
        return (uint64_t)timezone_to_utc(e->zone, days, 0);
    case FN_START_OF_HOUR:
        return (uint64_t)start_of(e, instant, 3600);
    case FN_START_OF_MINUTE:
        return (uint64_t)start_of(e, instant, 60);
    case FN_START_OF_5_MINUTES:
        return (uint64_t)start_of(e, instant, 300);
    case FN_START_OF_10_MINUTES:
        return (uint64_t)start_of(e, instant, 600);
    case FN_START_OF_15_MINUTES:
        return (uint64_t)start_of(e, instant, 900);
    case FN_TO_DATE:
    case FN_COLUMN:
    case FN_INT_DIV:
    case FN_MODULO:
        break;
    }
    return (uint64_t)days;
}

static uint64_t arithmetic_value(const struct element *e, const struct column *c, size_t row)
{
    bool divide = e->function == FN_INT_DIV;
    if (!type_is_signed(c->type)) {
        uint64_t value = unsigned_cell(c, row);
        return divide ? value / e->literal : value % e->literal;
    }
    int64_t value = signed_cell(c, row), by = (int64_t)e->literal;
    return (uint64_t)(divide ? value / by : value % by);
}

/* The element's values of rows [from, from + count), in a column that is made here. */
static void compute(const struct element *e, const struct block *block, size_t from, size_t count, struct column *out)
{
    const struct column *c = &block->columns[e->column];
    column_init(out, e->type);
    if (e->function == FN_COLUMN) {
        column_append(out, c, from, count);
        return;
    }
    for (size_t row = from; row < from + count; row++) {
        uint64_t value =
            e->function == FN_INT_DIV || e->function == FN_MODULO ? arithmetic_value(e, c, row) : time_value(e, c, row);
        column_push_fixed(out, &value); /* little endian: the first width bytes are the cell */
    }
}

static void key_of_row(const struct partition_expr *expr, const struct column *columns, size_t row,
                       struct partition_key *key)
{
    struct partition_value values[ELEMENTS_MAX];
    for (size_t i = 0; i < expr->count; i++)
        values[i] = (struct partition_value){ &columns[i], row };
    partition_key_make(values, expr->count, expr->is_tuple, expr->plain_column, key);
}

static void key_of_all(struct partition_key *key)
{
    *key = (struct partition_key){ .id = "all", .text = mem_strdup("tuple()"), .dir = mem_strdup("all") };
}

bool partition_of_row(const struct partition_expr *expr, const struct block *block, size_t row,
                      struct partition_key *key, struct err *err)
{
    (void)err;
    if (expr == NULL) {
        key_of_all(key);
        return true;
    }
    struct column columns[ELEMENTS_MAX];
    for (size_t i = 0; i < expr->count; i++)
        compute(&expr->elements[i], block, row, 1, &columns[i]);
    key_of_row(expr, columns, 0, key);
    for (size_t i = 0; i < expr->count; i++)
        column_fini(&columns[i]);
    return true;
}

/* Which key a row has: first by looking at the key of the row before, then in an open hash table of key numbers. */
struct splitter {
    const struct partition_expr *expr;
    struct column columns[ELEMENTS_MAX];
    size_t *first_rows; /* a row of each key */
    size_t keys_count, keys_cap;
    uint32_t *slots; /* key number + 1 */
    size_t slots_count;
};

static bool same_key(const struct splitter *s, size_t a, size_t b)
{
    for (size_t i = 0; i < s->expr->count; i++)
        if (column_compare(&s->columns[i], a, &s->columns[i], b) != 0)
            return false;
    return true;
}

static uint64_t hash_key(const struct splitter *s, size_t row)
{
    uint64_t hash = 0;
    for (size_t i = 0; i < s->expr->count; i++)
        hash = column_hash(&s->columns[i], row, hash);
    return hash;
}

static void grow(struct splitter *s)
{
    s->slots_count = s->slots_count == 0 ? 64 : s->slots_count * 2;
    free(s->slots);
    s->slots = mem_zalloc(s->slots_count * sizeof *s->slots);
    for (size_t key = 0; key < s->keys_count; key++) {
        size_t at = (size_t)(hash_key(s, s->first_rows[key]) & (s->slots_count - 1));
        while (s->slots[at] != 0)
            at = (at + 1) & (s->slots_count - 1);
        s->slots[at] = (uint32_t)key + 1;
    }
}

static uint32_t find_key(struct splitter *s, size_t row)
{
    if (2 * (s->keys_count + 1) > s->slots_count)
        grow(s);
    size_t at = (size_t)(hash_key(s, row) & (s->slots_count - 1));
    while (s->slots[at] != 0) {
        uint32_t key = s->slots[at] - 1;
        if (same_key(s, s->first_rows[key], row))
            return key;
        at = (at + 1) & (s->slots_count - 1);
    }
    if (s->keys_count == s->keys_cap) {
        s->keys_cap = s->keys_cap == 0 ? 8 : s->keys_cap * 2;
        s->first_rows = mem_realloc(s->first_rows, s->keys_cap * sizeof *s->first_rows);
    }
    s->first_rows[s->keys_count++] = row;
    s->slots[at] = (uint32_t)s->keys_count;
    return (uint32_t)(s->keys_count - 1);
}

bool partition_split(const struct partition_expr *expr, const struct block *block, size_t keys_max, uint32_t *out,
                     struct partition_key **keys, size_t *keys_count, struct err *err)
{
    if (expr == NULL) {
        memset(out, 0, block->rows * sizeof *out);
        *keys = NEW(struct partition_key);
        key_of_all(*keys);
        *keys_count = 1;
        return true;
    }
    struct splitter s = { .expr = expr };
    for (size_t i = 0; i < expr->count; i++)
        compute(&expr->elements[i], block, 0, block->rows, &s.columns[i]);
    for (size_t row = 0; row < block->rows && s.keys_count <= keys_max; row++)
        out[row] = row > 0 && same_key(&s, row - 1, row) ? out[row - 1] : find_key(&s, row);
    bool ok = s.keys_count <= keys_max;
    if (ok) {
        *keys = mem_zalloc(s.keys_count * sizeof **keys);
        *keys_count = s.keys_count;
        for (size_t i = 0; i < s.keys_count; i++)
            key_of_row(expr, s.columns, s.first_rows[i], &(*keys)[i]);
    } else {
        err_set(err, ERR_TOO_MANY_PARTS,
                "Too many partitions for single INSERT block (more than %zu). The limit is controlled by "
                "'max_partitions_per_insert_block' setting",
                keys_max);
    }
    for (size_t i = 0; i < expr->count; i++)
        column_fini(&s.columns[i]);
    free(s.first_rows);
    free(s.slots);
    return ok;
}
