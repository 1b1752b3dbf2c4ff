/* sql_system.c: what FROM can name: tables of the store, tables of system, numbers(). */
#include <stdlib.h>
#include <string.h>

#include "format/sql_types.h"
#include "storage/ddl.h"
#include "storage/expr_text.h"
#include "storage/part_log.h"
#include "storage/sql_run.h"
#include "storage/sql_system.h"

/* ---- filling columns by name ---- */

struct column *sql_system_cell(struct sql_system_row *row, const char *name)
{
    const struct block *block = row->block;
    for (size_t tried = 0; tried < block->columns_count; tried++) {
        size_t i = row->next;
        row->next = i + 1 == block->columns_count ? 0 : i + 1; /* most are put in their order */
        if (str_is(block->names[i], name))
            return &block->columns[i];
    }
    must_fail(name, __FILE__, __LINE__); /* sql_system.inc has none such */
}

void sql_system_text(struct sql_system_row *row, const char *name, struct str text)
{
    column_push_str(sql_system_cell(row, name), text);
}

void sql_system_number(struct sql_system_row *row, const char *name, uint64_t number)
{
    struct column *column = sql_system_cell(row, name);
    column_push_fixed(column, &number); /* little-endian: the low bytes come first */
}

void sql_system_real(struct sql_system_row *row, const char *name, double number)
{
    column_push_fixed(sql_system_cell(row, name), &number);
}

void sql_system_seconds(struct sql_system_row *row, const char *name, int64_t wall_ns)
{
    sql_system_number(row, name, wall_ns <= 0 ? 0 : (uint64_t)wall_ns / NS_PER_S);
}

void sql_system_micros(struct sql_system_row *row, const char *name, int64_t wall_ns)
{
    sql_system_number(row, name, (uint64_t)(wall_ns / (int64_t)NS_PER_US));
}

void sql_system_event(struct sql_system_row *row, int64_t wall_ns)
{
    enum { SECONDS_A_DAY = 86400 };
    sql_system_number(row, "event_date", (uint64_t)wall_ns / (SECONDS_A_DAY * NS_PER_S));
    sql_system_seconds(row, "event_time", wall_ns);
    sql_system_micros(row, "event_time_microseconds", wall_ns);
}

void sql_system_fixed(struct sql_system_row *row, const char *name, const void *cell)
{
    column_push_fixed(sql_system_cell(row, name), cell);
}

/* What was not set gets its default. */
void sql_system_end(struct sql_system_row *row)
{
    struct block *block = row->block;
    block->rows = ++row->at;
    for (size_t i = 0; i < block->columns_count; i++)
        while (block->columns[i].rows < block->rows)
            column_push_default(&block->columns[i]);
}

/* ---- the tables that storage fills ---- */

static bool fill_one(void *context, struct block *block, struct err *err)
{
    struct sql_system_row row = { .block = block };
    (void)context;
    (void)err;
    sql_system_number(&row, "dummy", 0);
    sql_system_end(&row);
    return true;
}

static void add_database(struct sql_system_row *row, struct str name, const char *engine)
{
    sql_system_text(row, "name", name);
    sql_system_text(row, "database", name);
    sql_system_text(row, "engine", str_of(engine));
    sql_system_text(row, "engine_full", str_of(engine));
    sql_system_end(row);
}

/* The databases that are not the store's, in order. */
static const struct {
    const char *name, *engine;
} own_databases[] = { { "INFORMATION_SCHEMA", "Memory" }, { "information_schema", "Memory" }, { "system", "Memory" } };

bool sql_database_is_own(struct str name)
{
    for (size_t i = 0; i < ARRAY_COUNT(own_databases); i++)
        if (str_is(name, own_databases[i].name))
            return true;
    return false;
}

static bool fill_databases(void *context, struct block *block, struct err *err)
{
    struct sql_run *run = context;
    struct sql_system_row row = { .block = block };
    struct str *names;
    size_t count;
    size_t own = 0;
    (void)err;
    store_databases(run->session->store, run->arena, &names, &count);
    for (size_t i = 0; i <= count; i++) {
        while (own < ARRAY_COUNT(own_databases) &&
               (i == count || str_cmp(names[i], str_of(own_databases[own].name)) > 0)) {
            add_database(&row, str_of(own_databases[own].name), own_databases[own].engine);
            own++;
        }
        if (i < count)
            add_database(&row, names[i], "Atomic");
    }
    return true;
}

static void set_uuid(struct sql_system_row *row, const char *name, const char *text)
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
    column_push_fixed(sql_system_cell(row, name), bytes);
}

static void add_table(struct sql_system_row *row, struct table *table)
{
    const struct table_def *def = table_def(table);
    struct table_stats stats;
    struct strbuf text = { 0 };
    table_get_stats(table, &stats);
    sql_system_text(row, "database", def->database);
    sql_system_text(row, "name", def->name);
    sql_system_text(row, "table", def->name);
    set_uuid(row, "uuid", def->uuid);
    sql_system_text(row, "engine", def->engine);
    sql_system_number(row, "metadata_version", def->schema->version);
    table_def_print_line(def, &text);
    sql_system_text(row, "create_table_query", strbuf_view(&text));
    strbuf_clear(&text);
    table_def_print_engine(def, &text);
    sql_system_text(row, "engine_full", strbuf_view(&text));
    strbuf_fini(&text);
    sql_system_text(row, "partition_key", def->partition_text);
    sql_system_text(row, "sorting_key", def->order_text);
    sql_system_text(row, "primary_key", def->primary_text.len > 0 ? def->primary_text : def->order_text);
    sql_system_text(row, "storage_policy", STR("default"));
    sql_system_number(row, "total_rows", stats.rows);
    sql_system_number(row, "total_bytes", stats.bytes);
    sql_system_number(row, "parts", stats.parts_active + stats.parts_old);
    sql_system_number(row, "active_parts", stats.parts_active);
    sql_system_text(row, "comment", def->comment);
    sql_system_number(row, "has_own_data", 1);
    sql_system_end(row);
}

static void add_temporary_table(struct sql_system_row *row, const struct sql_named_block *table)
{
    struct strbuf text = { 0 };
    sql_system_text(row, "name", table->name);
    sql_system_text(row, "table", table->name);
    sql_system_text(row, "engine", table->def->engine);
    sql_system_number(row, "is_temporary", 1);
    table_def_print_line(table->def, &text);
    sql_system_text(row, "create_table_query", strbuf_view(&text));
    strbuf_clear(&text);
    table_def_print_engine(table->def, &text);
    sql_system_text(row, "engine_full", strbuf_view(&text));
    strbuf_fini(&text);
    sql_system_number(row, "total_rows", table->block->rows);
    sql_system_number(row, "total_bytes", block_bytes(table->block));
    sql_system_text(row, "comment", table->def->comment);
    sql_system_number(row, "has_own_data", 1);
    sql_system_end(row);
}

static void add_own_table(struct sql_system_row *row, struct str database, struct str name, const char *engine,
                          struct str select)
{
    sql_system_text(row, "database", database);
    sql_system_text(row, "name", name);
    sql_system_text(row, "table", name);
    sql_system_text(row, "engine", str_of(engine));
    sql_system_text(row, "as_select", select);
    sql_system_end(row);
}

static bool fill_tables(void *context, struct block *block, struct err *err)
{
    struct sql_run *run = context;
    struct sql_system_row row = { .block = block };
    struct table **tables;
    size_t count;
    (void)err;
    store_tables(run->session->store, STR_EMPTY, &tables, &count);
    for (size_t i = 0; i < count; i++) {
        add_table(&row, tables[i]);
        table_unref(tables[i]);
    }
    free(tables);
    for (size_t i = 0; i < run->session->tables_count; i++)
        if (run->session->tables[i].def != NULL)
            add_temporary_table(&row, &run->session->tables[i]);
    for (size_t i = 0; i < sql_system_count(run->session); i++)
        add_own_table(&row, STR("system"), sql_system_name(run->session, i), "SystemTable", STR_EMPTY);
    for (size_t i = 0; sql_view_name(i) != NULL; i++)
        add_own_table(&row, STR("information_schema"), str_of(sql_view_name(i)), "View", str_of(sql_view_select(i)));
    return true;
}

static const char *default_kind_name(enum default_kind kind)
{
    static const char *const names[] = { "", "DEFAULT", "MATERIALIZED", "ALIAS", "EPHEMERAL" };
    return names[kind];
}

static void add_column_type(struct sql_system_row *row, struct str name, const struct type *type)
{
    sql_system_text(row, "name", name);
    sql_system_text(row, "column", name);
    sql_system_text(row, "type", type->text);
    if (type_is_integer(type) || type->kind == TYPE_BOOL) {
        sql_system_number(row, "numeric_precision", 8 * type_width(type));
        sql_system_number(row, "numeric_precision_radix", 2);
        sql_system_number(row, "numeric_scale", 0);
    } else if (type->kind == TYPE_DECIMAL) {
        sql_system_number(row, "numeric_precision", type->precision);
        sql_system_number(row, "numeric_precision_radix", 10);
        sql_system_number(row, "numeric_scale", type->scale);
    } else if (sql_type_is_time(type)) {
        sql_system_number(row, "datetime_precision", type->kind == TYPE_DATETIME64 ? type->precision : 0);
    }
}

static void add_column(struct sql_system_row *row, const struct table_def *def, const struct schema_column *column,
                       size_t position)
{
    struct str primary = def->primary_text.len > 0 ? def->primary_text : def->order_text;
    sql_system_text(row, "database", def->database);
    sql_system_text(row, "table", def->name);
    sql_system_number(row, "position", position);
    add_column_type(row, column->name, column->type);
    sql_system_text(row, "default_kind", str_of(default_kind_name(column->default_kind)));
    sql_system_text(row, "default_expression", column->default_text);
    sql_system_text(row, "comment", column->comment);
    sql_system_number(row, "is_in_partition_key", expr_text_mentions(def->partition_text, column->name));
    sql_system_number(row, "is_in_sorting_key", expr_text_mentions(def->order_text, column->name));
    sql_system_number(row, "is_in_primary_key", expr_text_mentions(primary, column->name));
    sql_system_text(row, "compression_codec", column->codec_text);
    sql_system_end(row);
}

static void add_columns(struct sql_system_row *row, const struct table_def *def)
{
    for (size_t i = 0; i < def->schema->columns_count; i++)
        add_column(row, def, &def->schema->columns[i], i + 1);
}

static bool add_system_columns(struct sql_run *run, struct sql_system_row *row, struct err *err);

static bool fill_columns(void *context, struct block *block, struct err *err)
{
    struct sql_run *run = context;
    struct sql_system_row row = { .block = block };
    struct table **tables;
    size_t count;
    store_tables(run->session->store, STR_EMPTY, &tables, &count);
    for (size_t i = 0; i < count; i++) {
        add_columns(&row, table_def(tables[i]));
        table_unref(tables[i]);
    }
    free(tables);
    for (size_t i = 0; i < run->session->tables_count; i++)
        if (run->session->tables[i].def != NULL)
            add_columns(&row, run->session->tables[i].def);
    return add_system_columns(run, &row, err);
}

static void add_part(struct sql_system_row *row, const struct table_def *def, const struct table_part_info *info)
{
    const struct part *part = info->part;
    struct strbuf name = { 0 };
    part_engine_name(part->partition.id, &part->name, &name);
    sql_system_text(row, "partition", str_of(part->partition.text));
    sql_system_text(row, "name", strbuf_view(&name));
    sql_system_text(row, "part_name", strbuf_view(&name));
    strbuf_fini(&name);
    sql_system_text(row, "part_type", STR("Parquet"));
    sql_system_number(row, "active", info->active);
    sql_system_number(row, "marks", part->row_groups);
    sql_system_number(row, "rows", part->rows);
    sql_system_number(row, "files", 1);
    sql_system_number(row, "bytes_on_disk", part->bytes);
    sql_system_number(row, "bytes", part->bytes);
    sql_system_number(row, "data_compressed_bytes", part->bytes);
    sql_system_seconds(row, "modification_time", part->created_wall_ns);
    sql_system_seconds(row, "remove_time", info->active ? 0 : part->removed_wall_ns);
    sql_system_number(row, "refcount", (uint64_t)__atomic_load_n(&part->refs, __ATOMIC_RELAXED));
    sql_system_text(row, "partition_id", str_of(part->partition.id));
    sql_system_number(row, "min_block_number", part->name.first);
    sql_system_number(row, "max_block_number", part->name.last);
    sql_system_number(row, "level", part->name.level);
    sql_system_number(row, "data_version", part->name.first);
    sql_system_text(row, "database", def->database);
    sql_system_text(row, "table", def->name);
    sql_system_text(row, "engine", def->engine);
    sql_system_text(row, "disk_name", STR("default"));
    sql_system_text(row, "path", str_of(part->path));
    sql_system_text(row, "default_compression_codec",
                    def->settings.codec == PARQUET_ZSTD      ? STR("ZSTD(1)")
                    : def->settings.codec == PARQUET_LZ4_RAW ? STR("LZ4")
                                                             : STR("NONE"));
    sql_system_number(row, "visible", 1);
    sql_system_end(row);
}

static bool fill_parts(void *context, struct block *block, struct err *err)
{
    struct sql_run *run = context;
    struct sql_system_row row = { .block = block };
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

static void add_merge(struct sql_system_row *row, const struct table_def *def, const struct table_merge_info *merge)
{
    const struct partition_key *partition = &merge->sources[0]->partition;
    struct column *names = sql_system_cell(row, "source_part_names"),
                  *paths = sql_system_cell(row, "source_part_paths");
    struct strbuf text = { 0 };
    char file[PART_NAME_BYTES];
    uint64_t bytes = 0, groups = 0, rows = 0;
    for (size_t i = 0; i < merge->sources_count; i++) {
        const struct part *part = merge->sources[i];
        bytes += part->bytes;
        groups += part->row_groups;
        rows += part->rows;
        strbuf_clear(&text);
        part_engine_name(part->partition.id, &part->name, &text);
        column_push_str(&names->children[0], strbuf_view(&text));
        column_push_str(&paths->children[0], str_of(part->path));
    }
    column_push_row_end(names);
    column_push_row_end(paths);
    double elapsed = (double)merge->elapsed_ns / 1e9;
    double progress = rows == 0 ? 0 : (double)merge->progress.rows_written / (double)rows;
    sql_system_text(row, "database", def->database);
    sql_system_text(row, "table", def->name);
    column_push_fixed(sql_system_cell(row, "elapsed"), &elapsed);
    column_push_fixed(sql_system_cell(row, "progress"), &progress);
    sql_system_number(row, "num_parts", merge->sources_count);
    strbuf_clear(&text);
    part_engine_name(partition->id, &merge->name, &text);
    sql_system_text(row, "result_part_name", strbuf_view(&text));
    strbuf_clear(&text);
    const char *path = merge->sources[0]->path; /* beside its sources */
    part_name_print(&merge->name, file);
    strbuf_add_bytes(&text, path, (size_t)(strrchr(path, '/') + 1 - path));
    strbuf_add_text(&text, file);
    sql_system_text(row, "result_part_path", strbuf_view(&text));
    strbuf_fini(&text);
    sql_system_text(row, "partition_id", str_of(partition->id));
    sql_system_text(row, "partition", str_of(partition->text));
    sql_system_number(row, "total_size_bytes_compressed", bytes);
    sql_system_number(row, "total_size_marks", groups);
    sql_system_number(row, "bytes_read_uncompressed", merge->progress.bytes_read);
    sql_system_number(row, "rows_read", merge->progress.rows_read);
    sql_system_number(row, "bytes_written_uncompressed", merge->progress.bytes_written);
    sql_system_number(row, "rows_written", merge->progress.rows_written);
    sql_system_text(row, "merge_type", STR("Regular"));
    sql_system_text(row, "merge_algorithm", STR("Horizontal"));
    sql_system_end(row);
}

static bool fill_merges(void *context, struct block *block, struct err *err)
{
    struct sql_run *run = context;
    struct sql_system_row row = { .block = block };
    struct table **tables;
    size_t count;
    (void)err;
    store_tables(run->session->store, STR_EMPTY, &tables, &count);
    for (size_t i = 0; i < count; i++) {
        struct table_merge_info *merges;
        size_t merges_count;
        table_merges(tables[i], &merges, &merges_count);
        for (size_t k = 0; k < merges_count; k++)
            add_merge(&row, table_def(tables[i]), &merges[k]);
        table_merges_free(merges, merges_count);
        table_unref(tables[i]);
    }
    free(tables);
    return true;
}

static void add_detached_part(struct sql_system_row *row, const struct table_def *def, const struct part *part)
{
    struct strbuf name = { 0 };
    part_engine_name(part->partition.id, &part->name, &name);
    sql_system_text(row, "database", def->database);
    sql_system_text(row, "table", def->name);
    sql_system_text(row, "partition_id", str_of(part->partition.id));
    sql_system_text(row, "name", strbuf_view(&name));
    strbuf_fini(&name);
    sql_system_number(row, "bytes_on_disk", part->bytes);
    sql_system_seconds(row, "modification_time", part->created_wall_ns);
    sql_system_text(row, "disk", STR("default"));
    sql_system_text(row, "path", str_of(part->path));
    sql_system_text(row, "reason", STR_EMPTY);
    sql_system_number(row, "min_block_number", part->name.first);
    sql_system_number(row, "max_block_number", part->name.last);
    sql_system_number(row, "level", part->name.level);
    sql_system_end(row);
}

static bool fill_detached_parts(void *context, struct block *block, struct err *err)
{
    struct sql_run *run = context;
    struct sql_system_row row = { .block = block };
    struct table **tables;
    size_t count;
    bool ok = true;
    store_tables(run->session->store, STR_EMPTY, &tables, &count);
    for (size_t i = 0; i < count; i++) {
        struct part **parts = NULL;
        size_t parts_count = 0;
        ok = ok && table_detached(tables[i], &parts, &parts_count, err);
        for (size_t k = 0; k < parts_count; k++) {
            add_detached_part(&row, table_def(tables[i]), parts[k]);
            part_unref(parts[k]);
        }
        free(parts);
        table_unref(tables[i]);
    }
    free(tables);
    return ok;
}

static void add_part_event(void *context, const struct part_log_row *event)
{
    struct sql_system_row *row = context;
    bool merge = event->event == PART_EVENT_MERGE;
    sql_system_number(row, "event_type", event->event == PART_EVENT_REMOVE ? 4 : merge ? 2 : 1);
    sql_system_number(row, "merge_reason", !merge ? 1 : event->reason == PART_REASON_TTL ? 3 : 2);
    sql_system_text(row, "reason", str_of(part_reason_name(event->reason)));
    sql_system_event(row, event->wall_ns);
    sql_system_number(row, "duration_ms", event->duration_ms);
    sql_system_text(row, "database", str_of(event->database));
    sql_system_text(row, "table", str_of(event->table));
    set_uuid(row, "table_uuid", event->table_uuid);
    sql_system_text(row, "part_name", str_of(event->part_name));
    sql_system_text(row, "partition_id", str_of(event->partition_id));
    sql_system_text(row, "partition", str_of(event->partition));
    sql_system_text(row, "part_type", STR("Parquet"));
    sql_system_text(row, "path_on_disk", str_of(event->path));
    sql_system_number(row, "rows", event->rows);
    sql_system_number(row, "size_in_bytes", event->bytes);
    sql_system_number(row, "read_rows", event->read_rows);
    sql_system_end(row);
}

static bool fill_part_log(void *context, struct block *block, struct err *err)
{
    struct sql_run *run = context;
    struct sql_system_row row = { .block = block };
    (void)err;
    part_log_each(store_part_log(run->session->store), add_part_event, &row);
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

/* A table of system: who fills it, and with what columns. */
struct own_table {
    const char *columns;
    sql_system_fill *fill;
    void *context;
};

static bool find_own(struct sql_run *run, struct str name, struct own_table *found)
{
    const struct sql_session *session = run->session;
    for (size_t i = 0; i < session->sources_count; i++) {
        const struct sql_source *source = &session->sources[i];
        if (!str_is(name, source->name))
            continue;
        *found = (struct own_table){ source->columns, source->fill, source->context };
        return true;
    }
    for (size_t i = 0; i < ARRAY_COUNT(own_tables); i++) {
        if (!str_is(name, own_tables[i].name))
            continue;
        *found = (struct own_table){ own_tables[i].columns, own_tables[i].fill, run };
        return true;
    }
    return false;
}

bool sql_source_system(struct sql_run *run, struct sql_table *table, bool *found, struct err *err)
{
    struct own_table own;
    *found = find_own(run, table->name, &own);
    if (!*found)
        return true;
    struct sql_source_table *source = sql_source_new(run, SQL_SOURCE_BLOCK);
    source->fill = own.fill;
    source->context = own.context;
    source->ast = table;
    table->source = source;
    return parse_columns(run, table, str_of(own.columns), err);
}

static bool add_system_columns(struct sql_run *run, struct sql_system_row *row, struct err *err)
{
    for (size_t i = 0; i < sql_system_count(run->session); i++) {
        struct sql_table table = { .name = sql_system_name(run->session, i) };
        struct own_table own;
        must(find_own(run, table.name, &own));
        if (!parse_columns(run, &table, str_of(own.columns), err))
            return false;
        for (size_t k = 0; k < table.columns_count; k++) {
            if (table.columns[k].hidden)
                continue;
            sql_system_text(row, "database", STR("system"));
            sql_system_text(row, "table", table.name);
            sql_system_number(row, "position", k + 1);
            add_column_type(row, table.columns[k].name, table.columns[k].type);
            sql_system_end(row);
        }
    }
    return true;
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

static bool fill_input(void *context, struct block *block, struct err *err)
{
    const struct block *input = context;
    (void)err;
    block_append(block, input, 0, input->rows);
    return true;
}

/* The table's rows are those of the block. */
static void use_block(struct sql_run *run, struct sql_table *table, const struct block *block)
{
    struct sql_source_table *source = sql_source_new(run, SQL_SOURCE_BLOCK);
    source->fill = fill_input;
    source->context = (void *)(uintptr_t)block;
    source->ast = table;
    table->source = source;
    table->columns = ARENA_ARRAY(run->arena, struct sql_column, block->columns_count + 1);
    table->columns_count = block->columns_count;
    for (size_t i = 0; i < block->columns_count; i++)
        table->columns[i] = (struct sql_column){ .name = block->names[i], .type = block->columns[i].type };
}

static bool use_input(struct sql_run *run, struct sql_table *table, struct err *err)
{
    const struct block *input = run->session->input;
    if (input == NULL)
        return err_set(err, ERR_INVALID_USAGE_OF_INPUT,
                       "Input stream is not initialized, input() must be used only in INSERT SELECT query");
    if (run->input_read)
        return err_set(err, ERR_INVALID_USAGE_OF_INPUT, "You can use the `input` function only once in a query");
    run->input_read = true;
    table->database = STR("_table_function");
    table->name = STR("input");
    use_block(run, table, input);
    return true;
}

static void use_numbers(struct sql_run *run, struct sql_table *table, struct sql_source_table *source,
                        const char *column, enum type_kind kind)
{
    source->ast = table;
    table->source = source;
    table->database = STR("system");
    table->name = STR("numbers");
    table->columns = ARENA_NEW(run->arena, struct sql_column);
    table->columns[0] = (struct sql_column){ .name = str_of(column), .type = type_of_kind(kind) };
    table->columns_count = 1;
}

/* Table functions that count; all take one to three constant numbers. */
enum counting { COUNT_NUMBERS, COUNT_ZEROS, COUNT_SERIES };
static const struct {
    const char *name;
    enum counting counting;
    size_t args_min, args_max;
} counters[] = {
    { "numbers", COUNT_NUMBERS, 1, 3 },       { "numbers_mt", COUNT_NUMBERS, 1, 3 },
    { "zeros", COUNT_ZEROS, 1, 1 },           { "zeros_mt", COUNT_ZEROS, 1, 1 },
    { "generateSeries", COUNT_SERIES, 2, 3 }, { "generate_series", COUNT_SERIES, 2, 3 },
};

/* numbers([from,] n [, step]): those of n numbers from there that a step meets; generateSeries(from, to [, step]). */
static bool set_counter(struct sql_source_table *source, enum counting counting, const uint64_t *args, size_t count)
{
    source->number_step = counting == COUNT_ZEROS ? 0 : count == 3 ? args[2] : 1;
    source->number_first = count == 1 ? 0 : args[0];
    uint64_t span = count == 1 ? args[0] : args[1];
    if (source->number_step == 0 && counting != COUNT_ZEROS)
        return false;
    if (counting == COUNT_ZEROS)
        source->number_count = span;
    else if (counting == COUNT_NUMBERS)
        source->number_count = span / source->number_step + (span % source->number_step != 0);
    else
        source->number_count = span < args[0] ? 0 : (span - args[0]) / source->number_step + 1;
    return true;
}

static bool table_function(struct sql_run *run, struct sql_table *table, struct err *err)
{
    const struct sql_node *f = table->function;
    uint64_t args[3];
    size_t i = 0;
    if (str_is(f->name, "input"))
        return use_input(run, table, err);
    while (i < ARRAY_COUNT(counters) && !str_is(f->name, counters[i].name))
        i++;
    if (i == ARRAY_COUNT(counters))
        return err_set(err, ERR_UNKNOWN_FUNCTION, "Unknown table function " STR_FMT " (at position %zu)",
                       STR_ARG(f->name), f->offset + 1);
    struct sql_source_table *source = sql_source_new(run, SQL_SOURCE_NUMBERS);
    bool ok = f->args_count >= counters[i].args_min && f->args_count <= counters[i].args_max;
    for (size_t k = 0; ok && k < f->args_count; k++)
        ok = numbers_argument(f->args[k], &args[k]);
    if (!ok || !set_counter(source, counters[i].counting, args, f->args_count))
        return err_set(err, ERR_BAD_ARGUMENTS,
                       STR_FMT " takes %zu to %zu constant numbers, and a step that is not 0 (at position %zu)",
                       STR_ARG(f->name), counters[i].args_min, counters[i].args_max, f->offset + 1);
    static const char *const columns[] = { "number", "zero", "generate_series" };
    use_numbers(run, table, source, columns[counters[i].counting],
                counters[i].counting == COUNT_ZEROS ? TYPE_UINT8 : TYPE_UINT64);
    return true;
}

/* system.numbers and system.zeros end where LIMIT or time does. */
static bool use_endless(struct sql_run *run, struct sql_table *table)
{
    bool zeros = str_is(table->name, "zeros") || str_is(table->name, "zeros_mt");
    if (!zeros && !str_is(table->name, "numbers") && !str_is(table->name, "numbers_mt"))
        return false;
    struct sql_source_table *source = sql_source_new(run, SQL_SOURCE_NUMBERS);
    source->number_count = UINT64_MAX;
    source->number_step = zeros ? 0 : 1;
    use_numbers(run, table, source, zeros ? "zero" : "number", zeros ? TYPE_UINT8 : TYPE_UINT64);
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

bool sql_may_read(const struct sql_session *session, struct str database, struct str table, struct err *err)
{
    return session->may_read == NULL || session->may_read(session->context, database, table, err);
}

bool sql_source_find(struct sql_run *run, struct sql_table *table, struct err *err)
{
    const struct sql_session *session = run->session;
    if (table->function != NULL)
        return (!table->final_ || no_final(table, table->function->name, err)) && table_function(run, table, err);
    for (size_t i = 0; i < session->tables_count && table->database.len == 0; i++)
        if (str_eq(session->tables[i].name, table->name)) {
            use_block(run, table, session->tables[i].block);
            return !table->final_ || no_final(table, table->name, err);
        }
    if (table->database.len == 0)
        table->database = session->database;
    if (!sql_may_read(session, table->database, table->name, err))
        return false;
    if (str_is(table->database, "system") && use_endless(run, table))
        return !table->final_ || no_final(table, table->name, err);
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
    if (sql_view_database(table->database)) /* views are subqueries by now */
        return err_set(err, ERR_UNKNOWN_TABLE,
                       "Unknown table expression identifier '" STR_FMT "." STR_FMT "' (at position %zu)",
                       STR_ARG(table->database), STR_ARG(table->name), table->offset + 1);
    struct table *found;
    if (!store_table(session->store, table->database, table->name, &found, err))
        return false;
    use_table(run, table, found);
    bool of_setting = table->source->def->rule.kind != COLLAPSE_NOTHING && sql_setting_is_on(run, "final");
    return (!table->final_ && !of_setting) || use_final(table, err);
}
