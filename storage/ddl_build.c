/* ddl_build.c: from a spec to the immutable definition: every type, default, key and setting checked. */
#include <stdlib.h>

#include "base/strbuf.h"
#include "format/defaults.h"
#include "storage/catalog_name.h"
#include "storage/ddl_settings.h"
#include "storage/ddl_statement.h"
#include "storage/delta_schema.h"
#include "storage/expr_text.h"
#include "storage/sql.h"
#include "storage/ttl.h"

struct builder {
    const struct table_spec *spec;
    struct arena *arena; /* becomes the schema's */
    struct err *err;
    struct schema_column *columns;
    struct table_def *def;
    struct schema *schema;
};

static struct str dup(struct builder *b, struct str s)
{
    return s.len == 0 ? STR_EMPTY : arena_dup(b->arena, s);
}

/* ---- columns ---- */

static bool build_column(struct builder *b, const struct column_spec *from, struct schema_column *to)
{
    *to = (struct schema_column){ .name = dup(b, from->name),
                                  .default_kind = from->default_kind,
                                  .comment = dup(b, from->comment),
                                  .codec_text = dup(b, from->codec_text),
                                  .ttl_text = dup(b, from->ttl_text),
                                  .default_text = STR_EMPTY,
                                  .field_id = from->field_id };
    if (from->type_text.len > 0 && !type_parse(dup(b, from->type_text), b->arena, &to->type, b->err))
        return false;
    if (from->default_text.len > 0) {
        if (!default_parse(dup(b, from->default_text), to->type, b->arena, &to->default_expr, &to->default_text,
                           b->err))
            return err_wrap(b->err, "column " STR_FMT, STR_ARG(from->name));
        if (to->type == NULL || to->default_kind == DEFAULT_DEFAULT) /* Int8 DEFAULT NULL is a Nullable(Int8) */
            to->type = default_type(to->default_expr);
    }
    return true;
}

/* An ALIAS that defaults name, itself or through another ALIAS, is computed at an insert. */
static void mark_needed(struct builder *b)
{
    size_t count = b->spec->columns_count;
    for (bool again = true; again;) {
        again = false;
        for (size_t i = 0; i < count; i++) {
            const struct schema_column *from = &b->columns[i];
            if (from->default_expr == NULL || (from->default_kind == DEFAULT_ALIAS && !from->is_needed))
                continue;
            for (size_t j = 0; j < count; j++) {
                struct schema_column *to = &b->columns[j];
                if (to->default_kind != DEFAULT_ALIAS || to->is_needed || !default_names(from->default_expr, to->name))
                    continue;
                to->is_needed = true;
                again = true;
            }
        }
    }
}

static bool is_stored(const struct schema_column *column)
{
    return column->default_kind != DEFAULT_ALIAS && column->default_kind != DEFAULT_EPHEMERAL;
}

static bool build_columns(struct builder *b)
{
    const struct table_spec *spec = b->spec;
    size_t stored = 0;
    unsigned next = MAX(spec->next_field_id, 1);
    b->columns = ARENA_ARRAY(b->arena, struct schema_column, spec->columns_count);
    for (size_t i = 0; i < spec->columns_count; i++) {
        for (size_t j = 0; j < i; j++)
            if (str_eq(spec->columns[i].name, spec->columns[j].name))
                return err_set(b->err, ERR_ILLEGAL_COLUMN,
                               "Cannot add column " STR_FMT ": column with this name already exists",
                               STR_ARG(spec->columns[i].name));
        if (!build_column(b, &spec->columns[i], &b->columns[i]))
            return false;
        stored += is_stored(&b->columns[i]);
        if (b->columns[i].field_id >= next)
            next = b->columns[i].field_id + 1;
    }
    if (stored == 0)
        return err_set(b->err, ERR_EMPTY_LIST_OF_COLUMNS_PASSED, "Cannot CREATE table without physical columns");
    for (size_t i = 0; i < spec->columns_count; i++)
        if (b->columns[i].field_id == 0)
            b->columns[i].field_id = next++;
    b->def->next_field_id = next;
    if (!defaults_bind(b->columns, spec->columns_count, b->arena, b->err))
        return false;
    mark_needed(b);
    return true;
}

static void build_stored(struct builder *b)
{
    struct schema *schema = b->schema;
    size_t *indexes = ARENA_ARRAY(b->arena, size_t, schema->columns_count), count = 0;
    for (size_t i = 0; i < schema->columns_count; i++)
        if (is_stored(&schema->columns[i]))
            indexes[count++] = i;
    b->def->stored_columns = indexes;
    if (count == schema->columns_count) {
        b->def->stored = schema_ref(schema);
        return;
    }
    struct arena *arena = arena_new(4096);
    struct schema_column *columns = ARENA_ARRAY(arena, struct schema_column, count);
    for (size_t i = 0; i < count; i++)
        columns[i] = schema->columns[indexes[i]];
    b->def->stored = schema_new(arena, columns, count, schema->version);
}

/* ---- keys ---- */

static bool parse_text(struct builder *b, struct str text, struct expr_text *out, const char *clause)
{
    struct lexer lexer;
    lexer_init(&lexer, text);
    if (!expr_text_parse(&lexer, b->arena, out, b->err))
        return false;
    if (lexer_peek(&lexer).kind != TOKEN_END)
        return lexer_error(&lexer, lexer_peek(&lexer), "end of expression", b->err);
    for (size_t i = 0; i < out->names_count; i++)
        if (schema_find(b->schema, out->names[i], false) < 0)
            return err_set(b->err, ERR_UNKNOWN_IDENTIFIER,
                           "Missing columns: '" STR_FMT "' while processing %s " STR_FMT, STR_ARG(out->names[i]),
                           clause, STR_ARG(text));
    return true;
}

/* The elements of a canonical key: `a`, `(a)`, `(a, b)`, `tuple(a, b)`, `tuple()`. */
static size_t split_key(struct builder *b, struct str text, struct str **elements)
{
    if (str_starts(text, STR("tuple(")) && str_ends(text, STR(")")))
        text = str_sub(text, 6, text.len - 7);
    else if (str_starts(text, STR("(")) && str_ends(text, STR(")"))) {
        struct lexer lexer;
        size_t depth = 0;
        lexer_init(&lexer, text);
        struct token token;
        do { /* only if the first bracket closes with the last: (a + b) * (c) is one element */
            token = lexer_next(&lexer);
            depth += token_is_symbol(token, "(");
            depth -= token_is_symbol(token, ")");
        } while (depth > 0 && token.kind != TOKEN_END);
        if (lexer_peek(&lexer).kind == TOKEN_END)
            text = str_sub(text, 1, text.len - 2);
    }
    size_t count = 0, depth = 0, from = 0;
    struct lexer lexer;
    *elements = ARENA_ARRAY(b->arena, struct str, text.len + 1);
    lexer_init(&lexer, text);
    for (;;) {
        struct token token = lexer_next(&lexer);
        depth += token_is_symbol(token, "(") || token_is_symbol(token, "[");
        depth -= depth > 0 && (token_is_symbol(token, ")") || token_is_symbol(token, "]"));
        bool end = token.kind == TOKEN_END || token.kind == TOKEN_ERROR;
        if (!end && !(depth == 0 && token_is_symbol(token, ",")))
            continue;
        struct str element = str_trim(str_sub(text, from, (end ? text.len : token.offset) - from));
        if (element.len > 0)
            (*elements)[count++] = element;
        if (end)
            return count;
        from = token.offset + 1;
    }
}

/* The column that an element is, or -1. */
static int plain_column(struct builder *b, struct str element)
{
    struct lexer lexer;
    struct strbuf name = { 0 };
    struct err err = { 0 };
    int index = -1;
    lexer_init(&lexer, element);
    bool ok = lexer_take_name(&lexer, &name, &err);
    while (ok && lexer_take_symbol(&lexer, ".")) {
        strbuf_add_char(&name, '.');
        ok = lexer_take_name(&lexer, &name, &err);
    }
    if (ok && lexer_peek(&lexer).kind == TOKEN_END)
        index = schema_find(b->schema, strbuf_view(&name), false);
    strbuf_fini(&name);
    return index >= 0 && is_stored(&b->schema->columns[index]) ? index : -1;
}

static bool check_nullable(struct builder *b, const struct expr_text *key)
{
    for (size_t i = 0; i < key->names_count && !b->def->settings.allow_nullable_key; i++) {
        int index = schema_find(b->schema, key->names[i], false);
        if (index >= 0 && b->schema->columns[index].type->nullable)
            return err_set(b->err, ERR_ILLEGAL_COLUMN,
                           "Sorting key contains nullable columns, but merge tree setting `allow_nullable_key` is "
                           "disabled");
    }
    return true;
}

static size_t stored_index(const struct table_def *def, size_t column)
{
    size_t i = 0;
    while (def->stored_columns[i] != column)
        i++;
    return i;
}

static bool build_order(struct builder *b)
{
    struct table_def *def = b->def;
    struct str order = b->spec->order_text, primary = b->spec->primary_text;
    struct expr_text key;
    if (order.len == 0)
        order = primary.len > 0 ? primary : STR("tuple()");
    def->order_text = dup(b, order);
    def->primary_text = dup(b, primary);
    if (!parse_text(b, def->order_text, &key, "ORDER BY") || !check_nullable(b, &key))
        return false;
    struct str *elements, *primaries;
    size_t count = split_key(b, def->order_text, &elements);
    size_t *columns = ARENA_ARRAY(b->arena, size_t, count + 1), *stored = ARENA_ARRAY(b->arena, size_t, count + 1);
    def->order_columns = columns;
    def->order_stored = stored;
    for (size_t i = 0; i < count; i++) {
        int column = plain_column(b, elements[i]);
        if (column < 0)
            break;
        columns[def->order_columns_count] = (size_t)column;
        stored[def->order_columns_count++] = stored_index(def, (size_t)column);
    }
    if (primary.len == 0)
        return true;
    if (!parse_text(b, def->primary_text, &key, "PRIMARY KEY"))
        return false;
    size_t primaries_count = split_key(b, def->primary_text, &primaries);
    for (size_t i = 0; i < primaries_count; i++)
        if (i >= count || !str_eq(primaries[i], elements[i]))
            return err_set(
                b->err, ERR_BAD_ARGUMENTS,
                "Primary key must be a prefix of the sorting key, but the column in the position %zu is " STR_FMT
                ", not " STR_FMT,
                i, STR_ARG(i < count ? elements[i] : STR("absent")), STR_ARG(primaries[i]));
    return true;
}

/* ---- the engine's rule ---- */

static bool is_in_key(const struct table_def *def, size_t stored)
{
    bool found = false;
    for (size_t i = 0; i < def->order_columns_count; i++)
        found = found || def->order_stored[i] == stored;
    return found;
}

static bool is_in_partition_key(struct builder *b, struct str name, bool *found)
{
    struct expr_text key;
    *found = false;
    if (b->def->partition_text.len == 0)
        return true;
    if (!parse_text(b, b->def->partition_text, &key, "PARTITION BY"))
        return false;
    for (size_t i = 0; i < key.names_count; i++)
        *found = *found || str_eq(key.names[i], name);
    return true;
}

/* An argument of the engine as a stored column. */
static bool argument_column(struct builder *b, struct str text, const char *what, size_t *stored)
{
    int column = plain_column(b, text);
    if (column < 0)
        return err_set(b->err, ERR_NO_SUCH_COLUMN_IN_TABLE, "%s " STR_FMT " does not exist in table declaration", what,
                       STR_ARG(text));
    *stored = stored_index(b->def, (size_t)column);
    return true;
}

static bool can_be_version(const struct type *type)
{
    switch (type->kind) {
    case TYPE_BFLOAT16:
    case TYPE_FLOAT32:
    case TYPE_FLOAT64:
    case TYPE_DATE:
    case TYPE_DATE32:
    case TYPE_DATETIME:
    case TYPE_DATETIME64:
    case TYPE_TIME:
    case TYPE_TIME64:
        return !type->nullable;
    default:
        return type_is_integer(type) && !type->nullable;
    }
}

static bool build_replacing(struct builder *b, struct collapse_rule *rule)
{
    const struct table_def *def = b->def;
    rule->kind = COLLAPSE_REPLACING;
    rule->has_version = def->engine_args_count > 0;
    rule->has_deleted = def->engine_args_count > 1;
    if (rule->has_version && !argument_column(b, def->engine_args[0], "Version column", &rule->version))
        return false;
    if (rule->has_deleted && !argument_column(b, def->engine_args[1], "is_deleted column", &rule->deleted))
        return false;
    const struct schema_column *columns = def->stored->columns;
    if (rule->has_version && !can_be_version(columns[rule->version].type))
        return err_set(b->err, ERR_BAD_TYPE_OF_FIELD,
                       "The column " STR_FMT " cannot be used as a version column for storage ReplacingMergeTree "
                       "because it is of type " STR_FMT,
                       STR_ARG(columns[rule->version].name), STR_ARG(columns[rule->version].type->text));
    if (rule->has_deleted && !str_is(columns[rule->deleted].type->text, "UInt8"))
        return err_set(b->err, ERR_BAD_TYPE_OF_FIELD,
                       "is_deleted column (" STR_FMT ") for storage ReplacingMergeTree must have type UInt8. Provided "
                       "column of type " STR_FMT,
                       STR_ARG(columns[rule->deleted].name), STR_ARG(columns[rule->deleted].type->text));
    return true;
}

static bool build_listed_sums(struct builder *b, size_t *sums, size_t *count)
{
    struct str *names;
    size_t names_count = split_key(b, b->def->engine_args[0], &names);
    for (size_t i = 0; i < names_count; i++) {
        size_t stored = 0;
        bool partition = false;
        if (!argument_column(b, names[i], "Column to sum", &stored) || !is_in_partition_key(b, names[i], &partition))
            return false;
        if (partition || is_in_key(b->def, stored))
            return err_set(b->err, ERR_BAD_ARGUMENTS,
                           "Columns: " STR_FMT " listed both in columns to sum and in %s key. That is not allowed.",
                           STR_ARG(names[i]), partition ? "partition" : "sorting");
        const struct type *type = b->def->stored->columns[stored].type;
        if (!collapse_can_sum(type))
            return err_set(b->err, ERR_ILLEGAL_TYPE_OF_ARGUMENT,
                           "Column to sum " STR_FMT " is of type " STR_FMT ", which has no sum", STR_ARG(names[i]),
                           STR_ARG(type->text));
        sums[(*count)++] = stored;
    }
    return true;
}

/* Without a list: all that can be summed, but what is in a key. */
static bool build_summing(struct builder *b, struct collapse_rule *rule)
{
    const struct schema *stored = b->def->stored;
    size_t *sums = ARENA_ARRAY(b->arena, size_t, stored->columns_count);
    rule->kind = COLLAPSE_SUMMING;
    rule->sums = sums;
    for (size_t i = 0; i < stored->columns_count; i++) {
        struct str name = stored->columns[i].name;
        ptrdiff_t dot = str_find_char(name, '.');
        if (dot > 0 && str_ends(str_sub(name, 0, (size_t)dot), STR("Map")))
            return err_set(b->err, ERR_NOT_IMPLEMENTED,
                           "SummingMergeTree with the nested map " STR_FMT " is not supported",
                           STR_ARG(str_sub(name, 0, (size_t)dot)));
    }
    if (b->def->engine_args_count > 0)
        return build_listed_sums(b, sums, &rule->sums_count);
    for (size_t i = 0; i < stored->columns_count; i++) {
        bool partition = false;
        if (!is_in_partition_key(b, stored->columns[i].name, &partition))
            return false;
        if (!partition && !is_in_key(b->def, i) && collapse_can_sum(stored->columns[i].type))
            sums[rule->sums_count++] = i;
    }
    return true;
}

static bool build_engine(struct builder *b)
{
    struct table_def *def = b->def;
    struct str *args = ARENA_ARRAY(b->arena, struct str, b->spec->engine_args_count), *elements;
    for (size_t i = 0; i < b->spec->engine_args_count; i++)
        args[i] = dup(b, b->spec->engine_args[i]);
    def->engine_args = args;
    def->engine_args_count = b->spec->engine_args_count;
    if (str_is(def->engine, "MergeTree") || b->spec->temporary)
        return true;
    if (split_key(b, def->order_text, &elements) != def->order_columns_count)
        return err_set(b->err, ERR_NOT_IMPLEMENTED, STR_FMT " needs a sorting key of plain columns here",
                       STR_ARG(def->engine));
    def->rule.key = def->order_stored;
    def->rule.key_count = def->order_columns_count;
    if (str_is(def->engine, "ReplacingMergeTree"))
        return build_replacing(b, &def->rule);
    if (def->order_columns_count == 0) /* without a key there is nothing to sum by: rows stay, as in the engine */
        return true;
    return build_summing(b, &def->rule);
}

static bool build_partition(struct builder *b)
{
    struct table_def *def = b->def;
    if (b->spec->partition_text.len == 0)
        return true;
    struct lexer lexer;
    lexer_init(&lexer, dup(b, b->spec->partition_text));
    if (!partition_expr_parse(&lexer, b->schema, b->arena, &def->partition, &def->partition_text, b->err))
        return false;
    if (lexer_peek(&lexer).kind != TOKEN_END)
        return lexer_error(&lexer, lexer_peek(&lexer), "end of PARTITION BY", b->err);
    if (partition_expr_nullable(def->partition) && !def->settings.allow_nullable_key)
        return err_set(b->err, ERR_ILLEGAL_COLUMN,
                       "Partition key contains nullable columns, but merge tree setting `allow_nullable_key` is "
                       "disabled");
    return true;
}

/* ---- the rest ---- */

/* Each expression of a column's TTL has to name columns that exist, at least one. */
static bool check_column_ttl(struct builder *b, struct str ttl)
{
    struct lexer lexer;
    lexer_init(&lexer, ttl);
    do {
        struct expr_text expr;
        if (!expr_text_parse(&lexer, b->arena, &expr, b->err))
            return false;
        if (expr.names_count == 0)
            return err_set(b->err, ERR_BAD_ARGUMENTS,
                           "TTL expression " STR_FMT " does not depend on any of the columns of the table",
                           STR_ARG(expr.text));
        struct expr_text checked;
        if (!parse_text(b, expr.text, &checked, "TTL"))
            return false;
        if (lexer_take_word(&lexer, "WHERE") &&
            (!expr_text_parse(&lexer, b->arena, &expr, b->err) || !parse_text(b, expr.text, &checked, "TTL")))
            return false;
    } while (lexer_take_symbol(&lexer, ","));
    return true;
}

static bool build_ttl(struct builder *b)
{
    b->def->ttl_text = dup(b, b->spec->ttl_text);
    if (b->def->ttl_text.len > 0 && !ttl_parse(b->def->ttl_text, b->def->stored, b->arena, &b->def->ttl, b->err))
        return false;
    for (size_t i = 0; i < b->schema->columns_count; i++)
        if (b->schema->columns[i].ttl_text.len > 0 && !check_column_ttl(b, b->schema->columns[i].ttl_text))
            return false;
    return true;
}

static bool build_settings(struct builder *b)
{
    const struct table_spec *spec = b->spec;
    struct table_def *def = b->def;
    struct strbuf text = { 0 };
    bool ok = true, has_granularity = false;
    struct table_setting *given = ARENA_ARRAY(b->arena, struct table_setting, spec->settings_count);
    table_settings_default(&def->settings);
    for (size_t i = 0; i < spec->settings_count && ok; i++) {
        struct str name = spec->settings[i].name, value = spec->settings[i].value;
        given[i] = (struct table_setting){ dup(b, name), dup(b, value) };
        ok = table_settings_set(&def->settings, name, value, b->err);
        strbuf_addf(&text, "%s" STR_FMT " = " STR_FMT, i == 0 ? "" : ", ", STR_ARG(name), STR_ARG(value));
        has_granularity = has_granularity || str_is(name, "index_granularity");
    }
    if (!has_granularity)
        strbuf_addf(&text, "%sindex_granularity = 8192", text.len == 0 ? "" : ", ");
    def->settings_text = arena_dup(b->arena, strbuf_view(&text));
    def->settings_given = given;
    def->settings_given_count = spec->settings_count;
    strbuf_fini(&text);
    return ok;
}

static bool build_names(struct builder *b)
{
    const struct table_spec *spec = b->spec;
    struct table_def *def = b->def;
    if (!catalog_name_ok(spec->name) || (!spec->temporary && !catalog_name_ok(spec->database)))
        return err_set(b->err, ERR_BAD_ARGUMENTS,
                       "names of databases and tables have 1 to %d bytes without control characters",
                       CATALOG_SOURCE_MAX);
    def->database = dup(b, spec->database);
    def->name = dup(b, spec->name);
    def->engine = spec->engine.len > 0 ? dup(b, spec->engine) : STR("MergeTree");
    def->comment = dup(b, spec->comment);
    if (spec->uuid.len == 0)
        return true;
    bool ok = spec->uuid.len == sizeof def->uuid - 1;
    for (size_t i = 0; i < spec->uuid.len && ok; i++) {
        char c = spec->uuid.data[i];
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (c >= 'A' && c <= 'F')
            c = (char)(c - 'A' + 'a');
        ok = dash ? c == '-' : (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
        def->uuid[i] = c;
    }
    return ok || err_set(b->err, ERR_CANNOT_PARSE_UUID, "Cannot parse UUID '" STR_FMT "'", STR_ARG(spec->uuid));
}

/* ---- indexes ---- */

/* The stored column that an index is over: col, mapKeys(col) or mapValues(col). Others are kept, but mean nothing here.
 */
static bool indexed_column(struct builder *b, const struct expr_text *expr, size_t *stored)
{
    if (expr->names_count != 1)
        return false;
    int column = schema_find(b->schema, expr->names[0], false);
    bool of_map = str_starts(expr->text, STR("mapKeys(")) || str_starts(expr->text, STR("mapValues("));
    if (column < 0 || !is_stored(&b->schema->columns[column]) || (expr->has_call && !of_map))
        return false;
    *stored = stored_index(b->def, (size_t)column);
    return true;
}

/* TYPE bloom_filter or bloom_filter(rate). False with *ok true: another type. */
static bool is_bloom_filter(struct builder *b, struct lexer *lexer, double *rate, bool *ok)
{
    enum { RATE_DIGITS_MAX = 30 };
    static const double rate_default = 0.01;
    *ok = true;
    *rate = rate_default;
    if (!lexer_take_word(lexer, "bloom_filter"))
        return false;
    if (!lexer_take_symbol(lexer, "(") || lexer_take_symbol(lexer, ")"))
        return true;
    struct token token = lexer_next(lexer);
    char digits[RATE_DIGITS_MAX + 1] = "";
    if (token.kind == TOKEN_NUMBER && token.text.len <= RATE_DIGITS_MAX)
        memcpy(digits, token.text.data, token.text.len);
    *rate = strtod(digits, NULL);
    *ok = *rate > 0 && *rate < 1;
    if (!*ok)
        err_set(b->err, ERR_BAD_ARGUMENTS, "The false positive rate of a bloom_filter index is between 0 and 1");
    return *ok;
}

/* The names are columns or, as in m.keys, parts of columns. */
static bool check_index_names(struct builder *b, const struct expr_text *expr)
{
    for (size_t i = 0; i < expr->names_count; i++) {
        struct str rest = expr->names[i], head;
        if (schema_find(b->schema, rest, false) < 0 && str_cut(&rest, '.', &head) &&
            schema_find(b->schema, head, false) < 0)
            return err_set(b->err, ERR_UNKNOWN_IDENTIFIER,
                           "Missing columns: '" STR_FMT "' while processing: '" STR_FMT "'", STR_ARG(expr->names[i]),
                           STR_ARG(expr->text));
    }
    return true;
}

static bool build_bloom(struct builder *b, struct str clause, struct parquet_bloom *blooms)
{
    struct lexer lexer;
    struct strbuf name = { 0 };
    struct expr_text expr;
    size_t stored;
    double rate;
    lexer_init(&lexer, clause);
    bool ok = lexer_take_word(&lexer, "INDEX") && lexer_take_name(&lexer, &name, b->err) &&
              expr_text_parse(&lexer, b->arena, &expr, b->err) && check_index_names(b, &expr) &&
              lexer_take_word(&lexer, "TYPE");
    strbuf_fini(&name);
    if (ok && is_bloom_filter(b, &lexer, &rate, &ok) && indexed_column(b, &expr, &stored))
        blooms[b->def->blooms_count++] = (struct parquet_bloom){ .column = stored, .rate = rate };
    return ok;
}

static bool build_blooms(struct builder *b)
{
    struct parquet_bloom *blooms = ARENA_ARRAY(b->arena, struct parquet_bloom, b->def->extras_count + 1);
    b->def->blooms = blooms;
    for (size_t i = 0; i < b->def->extras_count; i++)
        if (!build_bloom(b, b->def->extras[i], blooms))
            return false;
    return true;
}

static void build_extras(struct builder *b)
{
    struct str *extras = ARENA_ARRAY(b->arena, struct str, b->spec->extras_count);
    for (size_t i = 0; i < b->spec->extras_count; i++)
        extras[i] = dup(b, b->spec->extras[i]);
    b->def->extras = extras;
    b->def->extras_count = b->spec->extras_count;
}

static bool build_constraints(struct builder *b)
{
    size_t count = b->spec->constraints_count;
    struct table_constraint *constraints = ARENA_ARRAY(b->arena, struct table_constraint, count);
    for (size_t i = 0; i < count; i++) {
        const struct table_constraint *from = &b->spec->constraints[i];
        struct table_constraint *to = &constraints[i];
        *to = (struct table_constraint){ .name = dup(b, from->name),
                                         .text = dup(b, from->text),
                                         .is_assumed = from->is_assumed };
        if (!row_check_parse(to->text, b->def->stored, b->arena, &to->check, b->err))
            return err_wrap(b->err, "constraint " STR_FMT, STR_ARG(from->name));
    }
    b->def->constraints = constraints;
    b->def->constraints_count = count;
    return true;
}

bool table_def_build(const struct table_spec *spec, struct table_def **out, struct err *err)
{
    struct builder b = { .spec = spec, .arena = arena_new(16 * 1024), .err = err };
    b.def = ARENA_NEW(b.arena, struct table_def);
    b.def->partition_text = b.def->ttl_text = STR_EMPTY;
    if (!build_names(&b) || !build_columns(&b)) {
        arena_free(b.arena);
        return false;
    }
    b.schema = schema_new(b.arena, b.columns, spec->columns_count, MAX(spec->version, 1));
    b.def->schema = b.schema;
    build_stored(&b);
    build_extras(&b);
    if (!build_blooms(&b) || !build_constraints(&b) || !build_settings(&b) || !build_partition(&b) ||
        !build_order(&b) || !build_engine(&b) || !build_ttl(&b) ||
        (b.def->settings.publish && !delta_schema_check(b.def, err))) {
        table_def_free(b.def);
        return false;
    }
    *out = b.def;
    return true;
}

void table_def_free(struct table_def *def)
{
    if (def == NULL)
        return;
    struct schema *schema = def->schema;
    schema_unref(def->stored);
    schema_unref(schema); /* def lives in its arena */
}
