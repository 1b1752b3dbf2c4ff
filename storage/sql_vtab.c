/* sql_vtab.c: what SQLite reads: a frozen part set, a block of a system table, or numbers().
 *
 * A table offers only the columns that the statement reads. Of a part, row groups whose bounds rule out a condition are
 * passed over; of the others a column is read when SQLite first asks for it in that row group, so that a condition no
 * row meets costs only its own columns. Conditions are left to SQLite too (omit is never set): here they only save
 * work. LIMIT is never pushed down (SQLite stops reading by itself). */
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "format/defaults.h"
#include "storage/sql_run.h"

enum { CONSTRAINTS_MAX = 24, IN_VALUES_MAX = 4096 };

struct vtab {
    sqlite3_vtab base;
    struct sql_source_table *source;
};

struct constraint {
    size_t column; /* of the virtual table */
    unsigned char op;
    struct sql_value *values; /* one, or those of IN */
    size_t values_count;
    struct strbuf bytes;
};

struct cursor {
    sqlite3_vtab_cursor base;
    struct sql_source_table *source;
    struct constraint constraints[CONSTRAINTS_MAX];
    size_t constraints_count;
    struct column *columns; /* TABLE: of the row group, by column of the virtual table */
    bool *loaded;
    size_t part, group, row, rows; /* TABLE: place; BLOCK: row, rows */
    bool part_used;
    uint64_t number, numbers_left;
    uint64_t ordinal;
    size_t taken; /* memory accounted for the loaded columns */
    bool done;
    struct strbuf scratch;
};

/* ---- what a condition rules out ---- */

static bool may_match(const struct constraint *c, const struct sql_value *min, const struct sql_value *max)
{
    for (size_t i = 0; i < c->values_count; i++) {
        const struct sql_value *v = &c->values[i];
        int to_min = sql_value_compare(v, min), to_max = sql_value_compare(v, max);
        switch (c->op) {
        case SQLITE_INDEX_CONSTRAINT_EQ:
        case SQLITE_INDEX_CONSTRAINT_IS:
            if (to_min >= 0 && to_max <= 0)
                return true;
            break;
        case SQLITE_INDEX_CONSTRAINT_GT:
            if (to_max < 0)
                return true;
            break;
        case SQLITE_INDEX_CONSTRAINT_GE:
            if (to_max <= 0)
                return true;
            break;
        case SQLITE_INDEX_CONSTRAINT_LT:
            if (to_min > 0)
                return true;
            break;
        case SQLITE_INDEX_CONSTRAINT_LE:
            if (to_min >= 0)
                return true;
            break;
        default:
            return true;
        }
    }
    return false;
}

/* The part's column of the table's column of that name, or -1. */
static int part_column_named(const struct sql_source_table *source, const struct part *part, struct str name)
{
    int index = schema_find(source->schema, name, false);
    return index < 0 ? -1 : part_column(part, &source->schema->columns[index]);
}

/* The bounds of strings may be cut; a cut upper bound is a prefix that was raised, so it still bounds. Bounds of floats
 * leave NaN out; no comparison that the emitter prints is true of NaN. */
static bool group_may_match(struct cursor *cursor, const struct part *part, size_t group)
{
    const struct sql_source_table *source = cursor->source;
    const struct schema *own = parquet_schema(part->file);
    for (size_t i = 0; i < cursor->constraints_count; i++) {
        const struct constraint *c = &cursor->constraints[i];
        const struct sql_column *column = &source->ast->columns[source->columns[c->column]];
        int at = part_column_named(source, part, column->name);
        if (at < 0 || sql_rep_of(own->columns[at].type) == SQL_REP_KEY)
            continue;
        struct parquet_stats stats = parquet_stats(part->file, group, (size_t)at);
        if (!stats.known)
            continue;
        strbuf_clear(&cursor->scratch);
        struct sql_value min = sql_value_of_bound(own->columns[at].type, stats.min, stats.min_str, &cursor->scratch);
        min = sql_value_dup(&min, source->run->arena);
        struct sql_value max = sql_value_of_bound(own->columns[at].type, stats.max, stats.max_str, &cursor->scratch);
        if (!may_match(c, &min, &max))
            return false;
    }
    return true;
}

/* ---- reading a part ---- */

/* What the default names is read or computed too, in a block of the table's stored columns. */
static bool default_rows(const struct sql_source_table *source, struct part *part, size_t group, struct str wanted,
                         struct column *out, struct err *err)
{
    const struct schema *stored = source->def->stored;
    size_t index = (size_t)schema_find(stored, wanted, false);
    struct block block;
    bool ok = true;
    block_init(&block, stored->columns_count);
    for (size_t i = 0; i < stored->columns_count; i++) {
        int at = part_column(part, &stored->columns[i]);
        block.names[i] = stored->columns[i].name;
        column_init(&block.columns[i], stored->columns[i].type);
        if (at >= 0 && ok)
            ok = parquet_read_column(part->file, group, (size_t)at, &block.columns[i], err);
    }
    block.rows = (size_t)parquet_row_group(part->file, group).rows;
    ok = ok && default_fill(stored->columns, index, part->created_wall_ns, rng_real(), &block, err);
    if (ok)
        column_append(out, &block.columns[index], 0, block.rows);
    block_fini(&block);
    return ok;
}

/* A column that was added after the part was written. */
static bool missing_column(const struct sql_source_table *source, struct part *part, size_t group,
                           const struct schema_column *column, struct column *out, struct err *err)
{
    size_t rows = (size_t)parquet_row_group(part->file, group).rows;
    struct err failure = { 0 };
    bool plain = true; /* the default names no column */
    while (out->rows < rows && plain) {
        if (column->default_expr == NULL)
            column_push_default(out);
        else
            plain = default_eval(column->default_expr, part->created_wall_ns, rng_real(), NULL, out, &failure);
    }
    if (plain)
        return true;
    column_clear(out);
    return default_rows(source, part, group, column->name, out, err);
}

bool sql_source_read(const struct sql_source_table *source, struct part *part, size_t group,
                     const struct sql_column *wanted, struct column *column, struct err *err)
{
    const struct schema *own = parquet_schema(part->file);
    int at = part_column_named(source, part, wanted->name);
    int in_table = schema_find(source->schema, wanted->name, false);
    bool ok;
    if (at >= 0 && !type_eq(own->columns[at].type, wanted->type))
        return err_set(err, ERR_CORRUPTED_DATA, "part %s: column " STR_FMT " has another type", part->path,
                       STR_ARG(wanted->name));
    if (at >= 0)
        ok = parquet_read_column(part->file, group, (size_t)at, column, err);
    else
        ok = missing_column(source, part, group, &source->schema->columns[in_table], column, err);
    if (!ok)
        return err_wrap(err, "part %s", part->path);
    size_t bytes = column_bytes(column);
    source->run->result->bytes_read += bytes;
    if (sql_run_take(source->run, bytes))
        return true;
    *err = source->run->err;
    return false;
}

static bool load_column(struct cursor *cursor, size_t index, struct err *err)
{
    const struct sql_source_table *source = cursor->source;
    struct column *column = &cursor->columns[index];
    column_clear(column);
    if (!sql_source_read(source, source->parts->parts[cursor->part], cursor->group,
                         &source->ast->columns[source->columns[index]], column, err))
        return false;
    cursor->loaded[index] = true;
    cursor->taken += column_bytes(column);
    return true;
}

static void leave_group(struct cursor *cursor)
{
    const struct sql_source_table *source = cursor->source;
    for (size_t i = 0; i < source->columns_count; i++)
        cursor->loaded[i] = false;
    sql_run_give(source->run, cursor->taken);
    cursor->taken = 0;
}

static void note_part(struct cursor *cursor)
{
    struct sql_source_table *source = cursor->source;
    if (cursor->part_used)
        source->parts_read++;
    else
        source->parts_skipped++;
    cursor->part_used = false;
}

/* To the next row group that may hold a match, starting with the present one. */
static void find_group(struct cursor *cursor)
{
    struct sql_source_table *source = cursor->source;
    cursor->row = 0;
    while (cursor->part < source->parts->count) {
        struct part *part = source->parts->parts[cursor->part];
        size_t groups = parquet_row_groups(part->file);
        for (; cursor->group < groups; cursor->group++) {
            cursor->rows = (size_t)parquet_row_group(part->file, cursor->group).rows;
            if (cursor->rows > 0 && group_may_match(cursor, part, cursor->group)) {
                source->row_groups_read++;
                source->run->result->rows_read += cursor->rows;
                cursor->part_used = true;
                return;
            }
            source->row_groups_skipped++;
        }
        note_part(cursor);
        cursor->part++;
        cursor->group = 0;
    }
    cursor->done = true;
}

/* ---- SQLite's methods ---- */

static int method_connect(sqlite3 *db, void *context, int argc, const char *const *argv, sqlite3_vtab **out,
                          char **message)
{
    struct sql_source_table *source = context;
    struct strbuf text = { 0 };
    (void)argc;
    (void)argv;
    strbuf_add_text(&text, "CREATE TABLE x(");
    for (size_t i = 0; i < source->columns_count; i++)
        strbuf_addf(&text, "%sc%zu", i == 0 ? "" : ",", source->columns[i]);
    strbuf_add_text(&text, source->columns_count == 0 ? "z)" : ")");
    source->run->declaring = true;
    int code = sqlite3_declare_vtab(db, strbuf_cstr(&text));
    source->run->declaring = false;
    strbuf_fini(&text);
    if (code != SQLITE_OK) {
        *message = sqlite3_mprintf("%s", sqlite3_errmsg(db));
        return code;
    }
    struct vtab *vtab = sqlite3_malloc(sizeof *vtab);
    if (vtab == NULL)
        return SQLITE_NOMEM;
    *vtab = (struct vtab){ .source = source };
    *out = &vtab->base;
    return SQLITE_OK;
}

static int method_disconnect(sqlite3_vtab *vtab)
{
    sqlite3_free(vtab);
    return SQLITE_OK;
}

static bool op_is_known(unsigned char op)
{
    return op == SQLITE_INDEX_CONSTRAINT_EQ || op == SQLITE_INDEX_CONSTRAINT_GT || op == SQLITE_INDEX_CONSTRAINT_GE ||
           op == SQLITE_INDEX_CONSTRAINT_LT || op == SQLITE_INDEX_CONSTRAINT_LE;
}

static double source_rows(const struct sql_source_table *source)
{
    if (source->kind == SQL_SOURCE_TABLE)
        return (double)source->parts->rows;
    return source->kind == SQL_SOURCE_NUMBERS ? (double)source->number_count : (double)source->block.rows + 50;
}

/* A condition makes row groups fall away, which is worth something, but nothing here is an index: the cost of a look-up
 * for each row of another table stays that of a scan, and SQLite plans accordingly. */
static int method_best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
    const struct sql_source_table *source = ((const struct vtab *)base)->source;
    double rows = source_rows(source) + 1, share = 1;
    int used = 0;
    char *plan = sqlite3_malloc(CONSTRAINTS_MAX * 24 + 1);
    if (plan == NULL)
        return SQLITE_NOMEM;
    plan[0] = '\0';
    size_t length = 0;
    for (int i = 0; i < info->nConstraint && used < CONSTRAINTS_MAX && source->kind == SQL_SOURCE_TABLE; i++) {
        if (!info->aConstraint[i].usable || info->aConstraint[i].iColumn < 0 || !op_is_known(info->aConstraint[i].op))
            continue;
        bool in = sqlite3_vtab_in(info, i, 1) != 0;
        info->aConstraintUsage[i].argvIndex = ++used;
        info->aConstraintUsage[i].omit = 0;
        sqlite3_snprintf(24, plan + length, "%d:%d:%d,", info->aConstraint[i].iColumn, info->aConstraint[i].op, in);
        length += strlen(plan + length);
        share *= info->aConstraint[i].op == SQLITE_INDEX_CONSTRAINT_EQ ? 0.1 : 0.5;
    }
    info->idxStr = plan;
    info->needToFreeIdxStr = 1;
    info->estimatedRows = (sqlite3_int64)MAX(rows * share, 1);
    info->estimatedCost = MAX(rows * MAX(share, 0.05), 1);
    return SQLITE_OK;
}

static int method_open(sqlite3_vtab *base, sqlite3_vtab_cursor **out)
{
    struct sql_source_table *source = ((struct vtab *)base)->source;
    struct cursor *cursor = NEW(struct cursor);
    cursor->source = source;
    if (source->kind == SQL_SOURCE_TABLE) {
        cursor->columns = mem_zalloc((source->columns_count + 1) * sizeof *cursor->columns);
        cursor->loaded = mem_zalloc(source->columns_count + 1);
        for (size_t i = 0; i < source->columns_count; i++)
            column_init(&cursor->columns[i], source->ast->columns[source->columns[i]].type);
    }
    *out = &cursor->base;
    return SQLITE_OK;
}

static void clear_constraints(struct cursor *cursor)
{
    for (size_t i = 0; i < cursor->constraints_count; i++) {
        free(cursor->constraints[i].values);
        strbuf_fini(&cursor->constraints[i].bytes);
    }
    memset(cursor->constraints, 0, sizeof cursor->constraints);
    cursor->constraints_count = 0;
}

static int method_close(sqlite3_vtab_cursor *base)
{
    struct cursor *cursor = (struct cursor *)base;
    if (cursor->source->kind == SQL_SOURCE_TABLE) {
        leave_group(cursor);
        if (cursor->part_used) /* left before its end */
            note_part(cursor);
        for (size_t i = 0; i < cursor->source->columns_count; i++)
            column_fini(&cursor->columns[i]);
    }
    clear_constraints(cursor);
    strbuf_fini(&cursor->scratch);
    free(cursor->columns);
    free(cursor->loaded);
    free(cursor);
    return SQLITE_OK;
}

/* Offsets first, pointers when all bytes are there. */
static void keep_value(struct constraint *c, const struct sql_value *value)
{
    struct sql_value *kept = &c->values[c->values_count++];
    *kept = *value;
    if (value->kind != SQL_TEXT && value->kind != SQL_BLOB)
        return;
    kept->i = (int64_t)c->bytes.len;
    strbuf_add(&c->bytes, value->s);
}

static void settle_values(struct constraint *c)
{
    struct str all = strbuf_view(&c->bytes);
    for (size_t i = 0; i < c->values_count; i++)
        if (c->values[i].kind == SQL_TEXT || c->values[i].kind == SQL_BLOB)
            c->values[i].s = str_sub(all, (size_t)c->values[i].i, c->values[i].s.len);
}

/* False: so many values that the condition is not worth looking at. */
static bool take_in_values(struct constraint *c, sqlite3_value *list)
{
    sqlite3_value *item;
    c->values = mem_alloc(IN_VALUES_MAX * sizeof *c->values);
    for (int code = sqlite3_vtab_in_first(list, &item); code == SQLITE_OK && item != NULL;
         code = sqlite3_vtab_in_next(list, &item)) {
        struct sql_value value = sql_value_from(item);
        if (c->values_count == IN_VALUES_MAX)
            return false;
        if (value.kind != SQL_NULL)
            keep_value(c, &value);
    }
    return true;
}

static void take_constraints(struct cursor *cursor, const char *plan, int argc, sqlite3_value **argv)
{
    struct str rest = str_of(plan), item;
    for (int i = 0; i < argc && str_cut(&rest, ',', &item); i++) {
        struct constraint *c = &cursor->constraints[cursor->constraints_count];
        struct str number;
        uint64_t column = 0, op = 0, in = 0;
        bool read = str_cut(&item, ':', &number) && str_to_u64(number, &column) && str_cut(&item, ':', &number) &&
                    str_to_u64(number, &op) && str_to_u64(item, &in);
        must(read);
        c->column = (size_t)column;
        c->op = (unsigned char)op;
        cursor->constraints_count++;
        bool keep = true;
        if (in != 0) {
            keep = take_in_values(c, argv[i]);
        } else {
            struct sql_value value = sql_value_from(argv[i]);
            c->values = mem_alloc(sizeof *c->values);
            keep_value(c, &value);
        }
        if (keep) {
            settle_values(c);
            continue;
        }
        free(c->values);
        strbuf_fini(&c->bytes);
        memset(c, 0, sizeof *c);
        cursor->constraints_count--;
    }
}

static bool fill_block(struct sql_source_table *source, struct err *err)
{
    const struct sql_table *table = source->ast;
    if (source->block_ready)
        return true;
    block_init(&source->block, table->columns_count);
    for (size_t i = 0; i < table->columns_count; i++) {
        source->block.names[i] = table->columns[i].name;
        column_init(&source->block.columns[i], table->columns[i].type);
    }
    source->block_ready = true;
    if (!source->fill(source->context, &source->block, err))
        return err_wrap(err, STR_FMT "." STR_FMT, STR_ARG(table->database), STR_ARG(table->name));
    return true;
}

static int failed(struct sql_source_table *source, const struct err *err)
{
    sql_run_fail(source->run, err);
    return SQLITE_ERROR;
}

static int method_filter(sqlite3_vtab_cursor *base, int number, const char *plan, int argc, sqlite3_value **argv)
{
    struct cursor *cursor = (struct cursor *)base;
    struct sql_source_table *source = cursor->source;
    struct err err = { 0 };
    (void)number;
    clear_constraints(cursor);
    if (cursor->part_used)
        note_part(cursor);
    cursor->part = cursor->group = cursor->row = cursor->rows = 0;
    cursor->done = false;
    cursor->ordinal = 0;
    switch (source->kind) {
    case SQL_SOURCE_TABLE:
        leave_group(cursor);
        take_constraints(cursor, plan == NULL ? "" : plan, argc, argv);
        find_group(cursor);
        break;
    case SQL_SOURCE_BLOCK:
        if (!fill_block(source, &err))
            return failed(source, &err);
        cursor->rows = source->block.rows;
        source->run->result->rows_read += cursor->rows;
        cursor->done = cursor->rows == 0;
        break;
    case SQL_SOURCE_NUMBERS:
        cursor->number = source->number_first;
        cursor->numbers_left = source->number_count;
        cursor->done = cursor->numbers_left == 0;
        source->run->result->rows_read += source->number_count;
        break;
    }
    return sql_run_check(source->run) ? SQLITE_OK : SQLITE_ERROR;
}

static int method_next(sqlite3_vtab_cursor *base)
{
    struct cursor *cursor = (struct cursor *)base;
    struct sql_source_table *source = cursor->source;
    cursor->ordinal++;
    if (source->kind == SQL_SOURCE_NUMBERS) {
        cursor->number++;
        cursor->done = --cursor->numbers_left == 0;
        return SQLITE_OK;
    }
    if (++cursor->row < cursor->rows)
        return SQLITE_OK;
    if (source->kind == SQL_SOURCE_BLOCK) {
        cursor->done = true;
        return SQLITE_OK;
    }
    leave_group(cursor);
    cursor->group++;
    find_group(cursor);
    return sql_run_check(source->run) ? SQLITE_OK : SQLITE_ERROR;
}

static int method_eof(sqlite3_vtab_cursor *base)
{
    return ((struct cursor *)base)->done;
}

static int method_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int index)
{
    struct cursor *cursor = (struct cursor *)base;
    struct sql_source_table *source = cursor->source;
    struct err err = { 0 };
    struct column *column;
    if (source->kind == SQL_SOURCE_NUMBERS) {
        struct sql_value value;
        strbuf_clear(&cursor->scratch);
        value = sql_value_of_wide(sql_wide_of_uint(cursor->number), type_of_kind(TYPE_UINT64), &cursor->scratch);
        sql_value_result(context, &value);
        return SQLITE_OK;
    }
    if ((size_t)index >= source->columns_count) /* the column of a table of which none is read */
        return SQLITE_OK;
    if (source->kind == SQL_SOURCE_BLOCK) {
        column = &source->block.columns[source->columns[index]];
    } else {
        column = &cursor->columns[index];
        if (!cursor->loaded[index] && !load_column(cursor, (size_t)index, &err))
            return failed(source, &err);
    }
    strbuf_clear(&cursor->scratch);
    struct sql_value value = sql_value_of_cell(column, cursor->row, &cursor->scratch);
    sql_value_result(context, &value);
    return SQLITE_OK;
}

static int method_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *rowid)
{
    *rowid = (sqlite3_int64)((struct cursor *)base)->ordinal;
    return SQLITE_OK;
}

static const sqlite3_module module = {
    .iVersion = 1,
    .xConnect = method_connect, /* no xCreate: the table is there under the module's name */
    .xBestIndex = method_best_index,
    .xDisconnect = method_disconnect,
    .xDestroy = method_disconnect,
    .xOpen = method_open,
    .xClose = method_close,
    .xFilter = method_filter,
    .xNext = method_next,
    .xEof = method_eof,
    .xColumn = method_column,
    .xRowid = method_rowid,
};

bool sql_vtab_register(struct sqlite3 *db, struct sql_source_table *source, struct err *err)
{
    if (sqlite3_create_module(db, source->module, &module, source) != SQLITE_OK)
        return err_set(err, ERR_LOGICAL_ERROR, "cannot register a table: %s", sqlite3_errmsg(db));
    return true;
}

struct sql_source_table *sql_source_new(struct sql_run *run, enum sql_source_kind kind)
{
    struct sql_source_table *source = ARENA_NEW(run->arena, struct sql_source_table);
    source->run = run;
    source->kind = kind;
    if (run->sources_count == run->sources_cap) {
        size_t cap = run->sources_cap * 2 + 8;
        struct sql_source_table **sources = ARENA_ARRAY(run->arena, struct sql_source_table *, cap);
        if (run->sources_count > 0)
            memcpy(sources, run->sources, run->sources_count * sizeof(struct sql_source_table *));
        run->sources = sources;
        run->sources_cap = cap;
    }
    sqlite3_snprintf((int)sizeof source->module, source->module, "s%d", (int)run->sources_count);
    run->sources[run->sources_count++] = source;
    return source;
}

void sql_sources_fini(struct sql_run *run)
{
    for (size_t i = 0; i < run->sources_count; i++) {
        struct sql_source_table *source = run->sources[i];
        struct sql_result *result = run->result;
        if (source->kind == SQL_SOURCE_TABLE) {
            result->parts_read += source->parts_read;
            result->parts_skipped += source->parts_skipped;
            result->row_groups_read += source->row_groups_read;
            result->row_groups_skipped += source->row_groups_skipped;
        }
        if (source->parts != NULL)
            part_set_unref(source->parts);
        schema_unref(source->schema);
        if (source->table != NULL)
            table_unref(source->table);
        if (source->block_ready)
            block_fini(&source->block);
    }
    run->sources_count = 0;
}
