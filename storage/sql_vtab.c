/* sql_vtab.c: what SQLite reads: a scan of a frozen part set, a block of a system table, or numbers().
 *
 * A table offers only the columns that the statement reads. Conditions on single columns go to the scan as terms, and
 * are left to SQLite too (omit is never set): there they only save work. LIMIT is never pushed down (SQLite stops
 * reading by itself). */
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "storage/sql_scan.h"

enum { CONSTRAINTS_MAX = 24, IN_VALUES_MAX = 4096 };

struct vtab {
    sqlite3_vtab base;
    struct sql_source_table *source;
};

struct cursor {
    sqlite3_vtab_cursor base;
    struct sql_source_table *source;
    struct sql_scan *scan; /* TABLE */
    size_t row, rows;      /* TABLE: of the piece; BLOCK */
    uint64_t number, numbers_left;
    uint64_t ordinal; /* BLOCK, NUMBERS */
    bool done;
    struct strbuf scratch;
    struct err err; /* here, as large locals of method_column would cost more than the cell */
};

static int failed(struct sql_source_table *source, const struct err *err)
{
    sql_run_fail(source->run, err);
    return SQLITE_ERROR;
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

/* ---- conditions ---- */

static bool term_op(int op, enum sql_term_op *out)
{
    static const struct {
        int op;
        enum sql_term_op term;
    } known[] = {
        { SQLITE_INDEX_CONSTRAINT_EQ, SQL_TERM_EQ },
        { SQLITE_INDEX_CONSTRAINT_GT, SQL_TERM_GT },
        { SQLITE_INDEX_CONSTRAINT_GE, SQL_TERM_GE },
        { SQLITE_INDEX_CONSTRAINT_LT, SQL_TERM_LT },
        { SQLITE_INDEX_CONSTRAINT_LE, SQL_TERM_LE },
        { SQLITE_INDEX_CONSTRAINT_ISNULL, SQL_TERM_NULL },
        { SQLITE_INDEX_CONSTRAINT_ISNOTNULL, SQL_TERM_NOT_NULL },
    };
    for (size_t i = 0; i < ARRAY_COUNT(known); i++) {
        if (known[i].op != op)
            continue;
        *out = known[i].term;
        return true;
    }
    return false;
}

static double source_rows(const struct sql_source_table *source)
{
    if (source->kind == SQL_SOURCE_TABLE)
        return (double)source->parts->rows;
    return source->kind == SQL_SOURCE_NUMBERS ? (double)source->number_count : (double)source->block.rows + 50;
}

/* A condition makes row groups and pages fall away, which is worth something, but nothing here is an index: the cost of
 * a look-up for each row of another table stays that of a scan, and SQLite plans accordingly. */
static int method_best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
    const struct sql_source_table *source = ((const struct vtab *)base)->source;
    double rows = source_rows(source) + 1, share = 1;
    int used = 0;
    enum sql_term_op op;
    char *plan = sqlite3_malloc(CONSTRAINTS_MAX * 24 + 1);
    if (plan == NULL)
        return SQLITE_NOMEM;
    plan[0] = '\0';
    size_t length = 0;
    for (int i = 0; i < info->nConstraint && used < CONSTRAINTS_MAX && source->kind == SQL_SOURCE_TABLE; i++) {
        if (info->aConstraint[i].op == SQLITE_INDEX_CONSTRAINT_LIMIT)
            info->idxNum = 1; /* only a hint: few rows may do */
        if (!info->aConstraint[i].usable || info->aConstraint[i].iColumn < 0 || !term_op(info->aConstraint[i].op, &op))
            continue;
        bool in = sqlite3_vtab_in(info, i, 1) != 0;
        info->aConstraintUsage[i].argvIndex = ++used;
        info->aConstraintUsage[i].omit = 0;
        sqlite3_snprintf(24, plan + length, "%d:%d:%d,", info->aConstraint[i].iColumn, (int)op, in);
        length += strlen(plan + length);
        share *= op == SQL_TERM_EQ || op == SQL_TERM_NULL ? 0.1 : op == SQL_TERM_NOT_NULL ? 1 : 0.5;
    }
    info->idxStr = plan;
    info->needToFreeIdxStr = 1;
    info->estimatedRows = (sqlite3_int64)MAX(rows * share, 1);
    info->estimatedCost = MAX(rows * MAX(share, 0.05), 1);
    return SQLITE_OK;
}

/* So many values that the condition is not worth looking at are forgotten. */
static void take_in_values(struct cursor *cursor, size_t column, sqlite3_value *list)
{
    struct sql_value *values = mem_alloc(IN_VALUES_MAX * sizeof *values);
    struct strbuf *bytes = &cursor->scratch;
    size_t count = 0;
    bool all = true;
    sqlite3_value *item;
    strbuf_clear(bytes);
    for (int code = sqlite3_vtab_in_first(list, &item); all && code == SQLITE_OK && item != NULL;
         code = sqlite3_vtab_in_next(list, &item)) {
        struct sql_value value = sql_value_from(item);
        all = count < IN_VALUES_MAX;
        if (value.kind == SQL_NULL || !all)
            continue;
        values[count] = value;
        values[count++].i = value.kind == SQL_INT ? value.i : (int64_t)bytes->len; /* the item's bytes go with it */
        strbuf_add(bytes, value.s);
    }
    for (size_t i = 0; i < count; i++)
        if (values[i].kind == SQL_TEXT || values[i].kind == SQL_BLOB)
            values[i].s = str_sub(strbuf_view(bytes), (size_t)values[i].i, values[i].s.len);
    if (all)
        sql_scan_add_term(cursor->scan, column, SQL_TERM_EQ, values, count);
    free(values);
}

static void take_terms(struct cursor *cursor, const char *plan, int argc, sqlite3_value **argv)
{
    struct str rest = str_of(plan), item, number;
    for (int i = 0; i < argc && str_cut(&rest, ',', &item); i++) {
        uint64_t column = 0, op = 0, in = 0;
        bool read = str_cut(&item, ':', &number) && str_to_u64(number, &column) && str_cut(&item, ':', &number) &&
                    str_to_u64(number, &op) && str_to_u64(item, &in);
        must(read);
        struct sql_value value = sql_value_from(argv[i]);
        bool bare = op == SQL_TERM_NULL || op == SQL_TERM_NOT_NULL;
        if (in != 0)
            take_in_values(cursor, (size_t)column, argv[i]);
        else
            sql_scan_add_term(cursor->scan, (size_t)column, (enum sql_term_op)op, &value, bare ? 0 : 1);
    }
}

/* ---- the cursor ---- */

static int method_open(sqlite3_vtab *base, sqlite3_vtab_cursor **out)
{
    struct sql_source_table *source = ((struct vtab *)base)->source;
    struct cursor *cursor = NEW(struct cursor);
    cursor->source = source;
    if (source->kind == SQL_SOURCE_TABLE)
        cursor->scan = sql_scan_new(source);
    *out = &cursor->base;
    return SQLITE_OK;
}

static int method_close(sqlite3_vtab_cursor *base)
{
    struct cursor *cursor = (struct cursor *)base;
    sql_scan_free(cursor->scan);
    strbuf_fini(&cursor->scratch);
    free(cursor);
    return SQLITE_OK;
}

static int next_piece(struct cursor *cursor)
{
    struct err err = { 0 };
    cursor->row = 0;
    if (!sql_scan_next(cursor->scan, &cursor->rows, &err))
        return failed(cursor->source, &err);
    cursor->done = cursor->rows == 0;
    return SQLITE_OK;
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

static int method_filter(sqlite3_vtab_cursor *base, int number, const char *plan, int argc, sqlite3_value **argv)
{
    struct cursor *cursor = (struct cursor *)base;
    struct sql_source_table *source = cursor->source;
    struct err err = { 0 };
    cursor->row = cursor->rows = 0;
    cursor->done = false;
    cursor->ordinal = 0;
    switch (source->kind) {
    case SQL_SOURCE_TABLE:
        sql_scan_rewind(cursor->scan, number != 0);
        take_terms(cursor, plan == NULL ? "" : plan, argc, argv);
        return next_piece(cursor);
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
        break;
    }
    return sql_run_check(source->run) ? SQLITE_OK : SQLITE_ERROR;
}

static int method_next(sqlite3_vtab_cursor *base)
{
    struct cursor *cursor = (struct cursor *)base;
    cursor->ordinal++;
    if (cursor->source->kind == SQL_SOURCE_NUMBERS) {
        cursor->source->counts.rows_read++;
        cursor->source->counts.bytes_read += sizeof(cursor->number);
        cursor->number += cursor->source->number_step;
        cursor->done = --cursor->numbers_left == 0;
        return SQLITE_OK;
    }
    if (++cursor->row < cursor->rows)
        return SQLITE_OK;
    if (cursor->source->kind == SQL_SOURCE_TABLE)
        return next_piece(cursor);
    cursor->done = true;
    return SQLITE_OK;
}

static int method_eof(sqlite3_vtab_cursor *base)
{
    return ((struct cursor *)base)->done;
}

static int method_column(sqlite3_vtab_cursor *base, sqlite3_context *context, int index)
{
    struct cursor *cursor = (struct cursor *)base;
    struct sql_source_table *source = cursor->source;
    const struct column *column;
    strbuf_clear(&cursor->scratch);
    if (source->kind == SQL_SOURCE_NUMBERS) {
        struct sql_value value =
            sql_value_of_wide(sql_wide_of_uint(cursor->number), type_of_kind(TYPE_UINT64), &cursor->scratch);
        sql_value_result(context, &value);
        return SQLITE_OK;
    }
    if ((size_t)index >= source->columns_count) /* the column of a table of which none is read */
        return SQLITE_OK;
    if (source->kind == SQL_SOURCE_BLOCK) {
        column = &source->block.columns[source->columns[index]];
    } else {
        column = sql_scan_column(cursor->scan, (size_t)index, &cursor->err);
        if (column == NULL)
            return failed(source, &cursor->err);
    }
    sql_value_result_cell(context, column, cursor->row, &cursor->scratch);
    return SQLITE_OK;
}

static int method_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *rowid)
{
    struct cursor *cursor = (struct cursor *)base;
    *rowid = cursor->scan != NULL ? sql_scan_rowid(cursor->scan, cursor->row) : (sqlite3_int64)cursor->ordinal;
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

static void add_counts(struct sql_result *result, const struct sql_scan_counts *counts)
{
    result->rows_read += counts->rows_read;
    result->bytes_read += counts->bytes_read;
    result->parts_read += counts->parts_read;
    result->row_groups_read += counts->groups_read;
    for (size_t i = 0; i < SQL_PRUNES; i++) {
        result->parts_skipped += counts->parts_skipped[i];
        result->row_groups_skipped += counts->groups_skipped[i];
    }
}

void sql_sources_fini(struct sql_run *run)
{
    for (size_t i = 0; i < run->sources_count; i++) {
        struct sql_source_table *source = run->sources[i];
        struct sql_result *result = run->result;
        add_counts(result, &source->counts);
        strbuf_fini(&source->terms);
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
