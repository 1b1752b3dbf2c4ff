/* sql_system.c: what FROM can name: tables of the store, tables of system, numbers(). */
#include <stdlib.h>
#include <string.h>

#include "format/lexer.h"
#include "format/sql_types.h"
#include "storage/ddl.h"
#include "storage/sql_run.h"

/* ---- filling columns by name ---- */

struct row {
    struct block *block;
    size_t at; /* the row being made */
};

static struct column *cell(struct row *row, const char *name)
{
    size_t i = 0;
    while (i < row->block->columns_count && !str_is(row->block->names[i], name))
        i++;
    must(i < row->block->columns_count); /* sql_system.inc has it */
    return &row->block->columns[i];
}

static void set_text(struct row *row, const char *name, struct str text)
{
    column_push_str(cell(row, name), text);
}

static void set_number(struct row *row, const char *name, uint64_t number)
{
    struct column *column = cell(row, name);
    column_push_fixed(column, &number); /* little-endian: the low bytes come first */
}

/* What was not set gets its default. */
static void end_row(struct row *row)
{
    struct block *block = row->block;
    block->rows = ++row->at;
    for (size_t i = 0; i < block->columns_count; i++)
        while (block->columns[i].rows < block->rows)
            column_push_default(&block->columns[i]);
}

static uint64_t seconds_of(int64_t wall_ns)
{
    return wall_ns <= 0 ? 0 : (uint64_t)wall_ns / 1000000000;
}

/* ---- the tables that storage fills ---- */

static bool fill_one(void *context, struct block *block, struct err *err)
{
    struct row row = { .block = block };
    (void)context;
    (void)err;
    set_number(&row, "dummy", 0);
    end_row(&row);
    return true;
}

static void add_database(struct row *row, struct str name, const char *engine)
{
    set_text(row, "name", name);
    set_text(row, "database", name);
    set_text(row, "engine", str_of(engine));
    set_text(row, "engine_full", str_of(engine));
    end_row(row);
}

static bool fill_databases(void *context, struct block *block, struct err *err)
{
    struct sql_run *run = context;
    struct row row = { .block = block };
    struct str *names;
    size_t count;
    bool system_done = false;
    (void)err;
    store_databases(run->session->store, run->arena, &names, &count);
    for (size_t i = 0; i < count; i++) {
        if (!system_done && str_cmp(names[i], STR("system")) > 0) {
            add_database(&row, STR("system"), "Memory");
            system_done = true;
        }
        add_database(&row, names[i], "Atomic");
    }
    if (!system_done)
        add_database(&row, STR("system"), "Memory");
    return true;
}

static void set_uuid(struct row *row, const char *name, const char *text)
{
    uint8_t bytes[16] = { 0 };
    size_t digits = 0;
    for (const char *at = text; *at != '\0' && digits < 32; at++) {
        if (*at == '-')
            continue;
        unsigned digit = (unsigned)(*at <= '9' ? *at - '0' : (*at | 0x20) - 'a' + 10);
        bytes[digits / 2] = (uint8_t)((unsigned)bytes[digits / 2] << 4 | (digit & 15));
        digits++;
    }
    column_push_fixed(cell(row, name), bytes);
}

static void add_table(struct row *row, struct table *table)
{
    const struct table_def *def = table_def(table);
    struct table_stats stats;
    struct strbuf text = { 0 };
    table_get_stats(table, &stats);
    set_text(row, "database", def->database);
    set_text(row, "name", def->name);
    set_text(row, "table", def->name);
    set_uuid(row, "uuid", def->uuid);
    set_text(row, "engine", def->engine);
    set_number(row, "metadata_version", def->schema->version);
    table_def_print_line(def, &text);
    set_text(row, "create_table_query", strbuf_view(&text));
    strbuf_clear(&text);
    table_def_print_engine(def, &text);
    set_text(row, "engine_full", strbuf_view(&text));
    strbuf_fini(&text);
    set_text(row, "partition_key", def->partition_text);
    set_text(row, "sorting_key", def->order_text);
    set_text(row, "primary_key", def->primary_text.len > 0 ? def->primary_text : def->order_text);
    set_text(row, "storage_policy", STR("default"));
    set_number(row, "total_rows", stats.rows);
    set_number(row, "total_bytes", stats.bytes);
    set_number(row, "parts", stats.parts_active + stats.parts_old);
    set_number(row, "active_parts", stats.parts_active);
    set_text(row, "comment", def->comment);
    set_number(row, "has_own_data", 1);
    end_row(row);
}

static bool fill_tables(void *context, struct block *block, struct err *err)
{
    struct sql_run *run = context;
    struct row row = { .block = block };
    struct table **tables;
    size_t count;
    (void)err;
    store_tables(run->session->store, STR_EMPTY, &tables, &count);
    for (size_t i = 0; i < count; i++) {
        add_table(&row, tables[i]);
        table_unref(tables[i]);
    }
    free(tables);
    for (size_t i = 0; i < sql_system_count(run->session); i++) {
        set_text(&row, "database", STR("system"));
        set_text(&row, "name", sql_system_name(run->session, i));
        set_text(&row, "table", sql_system_name(run->session, i));
        set_text(&row, "engine", STR("SystemTable"));
        end_row(&row);
    }
    return true;
}

static const char *default_kind_name(enum default_kind kind)
{
    static const char *const names[] = { "", "DEFAULT", "MATERIALIZED", "ALIAS", "EPHEMERAL" };
    return names[kind];
}

/* A name in a key expression, as a whole word. */
static bool key_mentions(struct str key, struct str name)
{
    struct lexer lexer;
    lexer_init(&lexer, key);
    for (struct token token = lexer_next(&lexer); token.kind != TOKEN_END && token.kind != TOKEN_ERROR;
         token = lexer_next(&lexer)) {
        if (token.kind == TOKEN_WORD && str_eq(token.text, name))
            return true;
        if (token.kind == TOKEN_QUOTED_NAME && str_eq(str_sub(token.text, 1, token.text.len - 2), name))
            return true;
    }
    return false;
}

static void add_column(struct row *row, const struct table_def *def, const struct schema_column *column,
                       size_t position)
{
    struct str primary = def->primary_text.len > 0 ? def->primary_text : def->order_text;
    set_text(row, "database", def->database);
    set_text(row, "table", def->name);
    set_text(row, "name", column->name);
    set_text(row, "column", column->name);
    set_text(row, "type", column->type->text);
    set_number(row, "position", position);
    set_text(row, "default_kind", str_of(default_kind_name(column->default_kind)));
    set_text(row, "default_expression", column->default_text);
    set_text(row, "comment", column->comment);
    set_number(row, "is_in_partition_key", key_mentions(def->partition_text, column->name));
    set_number(row, "is_in_sorting_key", key_mentions(def->order_text, column->name));
    set_number(row, "is_in_primary_key", key_mentions(primary, column->name));
    set_text(row, "compression_codec", column->codec_text);
    if (type_is_integer(column->type)) {
        set_number(row, "numeric_precision", 8 * type_width(column->type));
        set_number(row, "numeric_precision_radix", 2);
        set_number(row, "numeric_scale", 0);
    } else if (column->type->kind == TYPE_DECIMAL) {
        set_number(row, "numeric_precision", column->type->precision);
        set_number(row, "numeric_precision_radix", 10);
        set_number(row, "numeric_scale", column->type->scale);
    } else if (column->type->kind == TYPE_DATETIME || column->type->kind == TYPE_DATETIME64) {
        set_number(row, "datetime_precision", sql_type_is_time(column->type) ? column->type->precision : 0);
    }
    end_row(row);
}

static bool fill_columns(void *context, struct block *block, struct err *err)
{
    struct sql_run *run = context;
    struct row row = { .block = block };
    struct table **tables;
    size_t count;
    (void)err;
    store_tables(run->session->store, STR_EMPTY, &tables, &count);
    for (size_t i = 0; i < count; i++) {
        const struct table_def *def = table_def(tables[i]);
        for (size_t k = 0; k < def->schema->columns_count; k++)
            add_column(&row, def, &def->schema->columns[k], k + 1);
        table_unref(tables[i]);
    }
    free(tables);
    return true;
}

/* A part's name as the engine would give it: partition, blocks, level. */
static void part_engine_name(const struct part *part, struct strbuf *out)
{
    strbuf_addf(out, "%s_%llu_%llu_%u", part->partition.id, (unsigned long long)part->name.first,
                (unsigned long long)part->name.last, part->name.level);
}

static void add_part(struct row *row, const struct table_def *def, const struct table_part_info *info)
{
    const struct part *part = info->part;
    struct strbuf name = { 0 };
    part_engine_name(part, &name);
    set_text(row, "partition", str_of(part->partition.text));
    set_text(row, "name", strbuf_view(&name));
    set_text(row, "part_name", strbuf_view(&name));
    strbuf_fini(&name);
    set_text(row, "part_type", STR("Parquet"));
    set_number(row, "active", info->active);
    set_number(row, "marks", part->row_groups);
    set_number(row, "rows", part->rows);
    set_number(row, "files", 1);
    set_number(row, "bytes_on_disk", part->bytes);
    set_number(row, "bytes", part->bytes);
    set_number(row, "data_compressed_bytes", part->bytes);
    set_number(row, "modification_time", seconds_of(part->created_wall_ns));
    set_number(row, "remove_time", info->active ? 0 : seconds_of(part->removed_wall_ns));
    set_number(row, "refcount", (uint64_t)__atomic_load_n(&part->refs, __ATOMIC_RELAXED));
    set_text(row, "partition_id", str_of(part->partition.id));
    set_number(row, "min_block_number", part->name.first);
    set_number(row, "max_block_number", part->name.last);
    set_number(row, "level", part->name.level);
    set_number(row, "data_version", part->name.first);
    set_text(row, "database", def->database);
    set_text(row, "table", def->name);
    set_text(row, "engine", def->engine);
    set_text(row, "disk_name", STR("default"));
    set_text(row, "path", str_of(part->path));
    set_text(row, "default_compression_codec",
             def->settings.codec == PARQUET_ZSTD      ? STR("ZSTD(1)")
             : def->settings.codec == PARQUET_LZ4_RAW ? STR("LZ4")
                                                      : STR("NONE"));
    set_number(row, "visible", 1);
    end_row(row);
}

static bool fill_parts(void *context, struct block *block, struct err *err)
{
    struct sql_run *run = context;
    struct row row = { .block = block };
    struct table **tables;
    size_t count;
    (void)err;
    store_tables(run->session->store, STR_EMPTY, &tables, &count);
    for (size_t i = 0; i < count; i++) {
        struct table_part_info *parts;
        size_t parts_count;
        table_parts(tables[i], &parts, &parts_count);
        for (size_t k = 0; k < parts_count; k++) {
            add_part(&row, table_def(tables[i]), &parts[k]);
            part_unref(parts[k].part);
        }
        free(parts);
        table_unref(tables[i]);
    }
    free(tables);
    return true;
}

/* ---- finding them ---- */

static const struct {
    const char *name, *columns;
    bool (*fill)(void *context, struct block *block, struct err *err);
} own_tables[] = {
#define X(table, columns, fill) { table, columns, fill },
#include "storage/sql_system.inc"
#undef X
};

/* The gateway's tables go before ours. */
static bool is_overridden(const struct sql_session *session, const char *name)
{
    for (size_t i = 0; i < session->sources_count; i++)
        if (strcmp(session->sources[i].name, name) == 0)
            return true;
    return false;
}

size_t sql_system_count(const struct sql_session *session)
{
    size_t count = session->sources_count;
    for (size_t i = 0; i < ARRAY_COUNT(own_tables); i++)
        count += is_overridden(session, own_tables[i].name) ? 0 : 1;
    return count;
}

struct str sql_system_name(const struct sql_session *session, size_t index)
{
    if (index < session->sources_count)
        return str_of(session->sources[index].name);
    index -= session->sources_count;
    for (size_t i = 0; i < ARRAY_COUNT(own_tables); i++)
        if (!is_overridden(session, own_tables[i].name) && index-- == 0)
            return str_of(own_tables[i].name);
    return STR_EMPTY;
}

/* "name Type, name Type, ...": the end of one column, at a comma outside of parentheses and quotes. */
static size_t column_end(struct str text)
{
    unsigned open = 0;
    bool quoted = false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        quoted ^= c == '\'';
        if (quoted)
            continue;
        open += c == '(' ? 1 : 0;
        open -= c == ')' ? 1 : 0;
        if (c == ',' && open == 0)
            return i;
    }
    return text.len;
}

static bool parse_columns(struct sql_run *run, struct sql_table *table, struct str text, struct err *err)
{
    size_t cap = 1;
    for (size_t i = 0; i < text.len; i++)
        cap += text.data[i] == ',' ? 1 : 0;
    table->columns = ARENA_ARRAY(run->arena, struct sql_column, cap);
    while (text.len > 0) {
        size_t end = column_end(text);
        struct str one = str_trim(str_sub(text, 0, end));
        ptrdiff_t space =
            one.len > 0 && one.data[0] == '`' ? str_find_char(str_from(one, 1), '`') + 2 : str_find_char(one, ' ');
        struct sql_column *column = &table->columns[table->columns_count++];
        if (space <= 0)
            return err_set(err, ERR_LOGICAL_ERROR, "system table " STR_FMT ": column without a type",
                           STR_ARG(table->name));
        column->name = str_sub(one, 0, (size_t)space);
        if (column->name.data[0] == '`')
            column->name = str_sub(column->name, 1, column->name.len - 2);
        column->hidden = column->name.data[0] == '!';
        if (column->hidden)
            column->name = str_from(column->name, 1);
        if (!type_parse(str_trim(str_from(one, (size_t)space)), run->arena, &column->type, err))
            return err_wrap(err, "system table " STR_FMT, STR_ARG(table->name));
        text = str_from(text, end + 1);
    }
    return true;
}

bool sql_source_system(struct sql_run *run, struct sql_table *table, bool *found, struct err *err)
{
    const struct sql_session *session = run->session;
    const char *columns = NULL;
    struct sql_source_table *source = NULL;
    for (size_t i = 0; i < session->sources_count && columns == NULL; i++) {
        if (!str_is(table->name, session->sources[i].name))
            continue;
        columns = session->sources[i].columns;
        source = sql_source_new(run, SQL_SOURCE_BLOCK);
        source->fill = session->sources[i].fill;
        source->context = session->sources[i].context;
    }
    for (size_t i = 0; i < ARRAY_COUNT(own_tables) && columns == NULL; i++) {
        if (!str_is(table->name, own_tables[i].name))
            continue;
        columns = own_tables[i].columns;
        source = sql_source_new(run, SQL_SOURCE_BLOCK);
        source->fill = own_tables[i].fill;
        source->context = run;
    }
    *found = columns != NULL;
    if (columns == NULL)
        return true;
    source->ast = table;
    table->source = source;
    return parse_columns(run, table, str_of(columns), err);
}

static bool numbers_argument(const struct sql_node *node, uint64_t *out)
{
    const struct sql_node *constant = sql_node_constant(node);
    if (constant == NULL || !type_is_integer(constant->type) || constant->value.kind != SQL_INT ||
        constant->value.i < 0)
        return false;
    *out = (uint64_t)constant->value.i;
    return true;
}

/* numbers(n), numbers(from, n), zeros and the rest are refused. */
static bool table_function(struct sql_run *run, struct sql_table *table, struct err *err)
{
    const struct sql_node *f = table->function;
    struct sql_source_table *source = sql_source_new(run, SQL_SOURCE_NUMBERS);
    if (!str_is(f->name, "numbers") && !str_is(f->name, "numbers_mt"))
        return err_set(err, ERR_UNKNOWN_FUNCTION, "Unknown table function " STR_FMT " (at position %zu)",
                       STR_ARG(f->name), f->offset + 1);
    bool two = f->args_count == 2;
    if (f->args_count < 1 || f->args_count > 2 || !numbers_argument(f->args[two ? 1 : 0], &source->number_count) ||
        (two && !numbers_argument(f->args[0], &source->number_first)))
        return err_set(err, ERR_BAD_ARGUMENTS, "numbers takes one or two constant numbers (at position %zu)",
                       f->offset + 1);
    source->ast = table;
    table->source = source;
    table->database = STR("system");
    table->name = STR("numbers");
    table->columns = ARENA_NEW(run->arena, struct sql_column);
    table->columns[0] = (struct sql_column){ .name = STR("number"), .type = type_of_kind(TYPE_UINT64) };
    table->columns_count = 1;
    return true;
}

static void use_table(struct sql_run *run, struct sql_table *table, struct table *found)
{
    struct sql_source_table *source = sql_source_new(run, SQL_SOURCE_TABLE);
    const struct table_def *def = table_def(found);
    source->table = found;
    source->schema = schema_ref(def->schema);
    source->def = def;
    source->parts = table_snapshot(found);
    source->ast = table;
    table->source = source;
    table->columns = ARENA_ARRAY(run->arena, struct sql_column, def->schema->columns_count + 1);
    for (size_t i = 0; i < def->schema->columns_count; i++) {
        const struct schema_column *column = &def->schema->columns[i];
        if (column->default_kind == DEFAULT_EPHEMERAL)
            continue;
        table->columns[table->columns_count++] = (struct sql_column){
            .name = column->name,
            .type = column->type,
            .hidden = column->default_kind == DEFAULT_MATERIALIZED || column->default_kind == DEFAULT_ALIAS,
            .alias_text = column->default_kind == DEFAULT_ALIAS ? column->default_text : STR_EMPTY,
        };
    }
}

static bool no_final(const struct sql_table *table, struct str storage, struct err *err)
{
    return err_set(err, ERR_ILLEGAL_FINAL, "Storage " STR_FMT " doesn't support FINAL (at position %zu)",
                   STR_ARG(storage), table->offset + 1);
}

/* The rows after the engine's rule, made in memory when they are first asked for. */
static bool use_final(struct sql_table *table, struct err *err)
{
    struct sql_source_table *source = table->source;
    const struct table_def *def = source->def;
    if (str_is(def->engine, "MergeTree"))
        return no_final(table, def->engine, err);
    if (def->rule.kind == COLLAPSE_NOTHING)
        return true;
    source->kind = SQL_SOURCE_BLOCK;
    source->fill = sql_final_fill;
    source->context = source;
    return true;
}

bool sql_source_find(struct sql_run *run, struct sql_table *table, struct err *err)
{
    const struct sql_session *session = run->session;
    if (table->function != NULL)
        return (!table->final_ || no_final(table, table->function->name, err)) && table_function(run, table, err);
    if (table->database.len == 0)
        table->database = session->database;
    if (str_is(table->database, "system")) {
        bool found;
        if (!sql_source_system(run, table, &found, err))
            return false;
        if (found)
            return !table->final_ || no_final(table, table->name, err);
        return err_set(err, ERR_UNKNOWN_TABLE,
                       "Unknown table expression identifier 'system." STR_FMT "' (at position %zu)",
                       STR_ARG(table->name), table->offset + 1);
    }
    struct table *found;
    if (!store_table(session->store, table->database, table->name, &found, err))
        return false;
    use_table(run, table, found);
    return !table->final_ || use_final(table, err);
}
