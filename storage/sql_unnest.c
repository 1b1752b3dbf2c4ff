/* sql_unnest.c: ARRAY JOIN and arrayJoin(): a table-valued function of SQLite, aj(call, array, ...), with a row per
 * element: columns c0, c1, ... are the elements of the arrays at one place. A map is an array of tuples of key and
 * value, whose encoding is the same. */
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "format/sql_types.h"
#include "storage/sql_fn.h"

/* ---- resolving ---- */

static const struct type *pairs_of(const struct type *map, struct arena *arena)
{
    return sql_type_make(arena, "Array(Tuple(keys " STR_FMT ", values " STR_FMT "))", STR_ARG(map->children[0]->text),
                         STR_ARG(map->children[1]->text));
}

/* The next column of the table: the elements of the array. */
static bool add_array(struct sql_resolver *r, struct sql_table *table, struct sql_node *node, struct str name,
                      struct err *err)
{
    const struct type *type = sql_type_plain(node->type, r->arena);
    if (type->kind != TYPE_ARRAY && type->kind != TYPE_MAP)
        return err_set(err, table->implicit ? ERR_ILLEGAL_TYPE_OF_ARGUMENT : ERR_TYPE_MISMATCH,
                       "ARRAY JOIN requires an array or a map, not " STR_FMT " (at position %zu)",
                       STR_ARG(node->type->text), node->offset + 1);
    if (table->columns_count == SQL_ARRAYS_MAX)
        return err_set(err, ERR_NOT_IMPLEMENTED, "ARRAY JOIN of more than %d arrays is not supported here",
                       SQL_ARRAYS_MAX);
    struct sql_column *column = &table->columns[table->columns_count];
    if (type->kind == TYPE_MAP)
        type = pairs_of(type, r->arena);
    *column = (struct sql_column){ .name = name, .type = type->children[0], .hidden = true };
    table->unnest->types[table->columns_count] = type;
    table->arrays[table->columns_count++] = node;
    return true;
}

/* The array stands for a column of its own name: that name is the elements from here on. */
static void shadow(struct sql_table *table, const struct sql_node *node)
{
    if (node->emit != SQL_EMIT_COLUMN)
        return;
    struct sql_column *column = &table->columns[table->columns_count - 1];
    column->shadow_table = node->table;
    column->shadow_column = node->column;
}

/* ARRAY JOIN n, of the columns n.a, n.b, ... of a Nested; *found where there are any. */
static bool add_nested(struct sql_resolver *r, struct sql_select *select, struct sql_table *table,
                       const struct sql_node *node, bool *found, struct err *err)
{
    struct str prefix = str_of(arena_printf(r->arena, STR_FMT ".", STR_ARG(node->parts[0])));
    *found = false;
    for (size_t t = 0; t < select->tables_count; t++) {
        struct sql_table *of = &select->tables[t];
        for (size_t c = 0; c < of->columns_count; c++) {
            if (!str_starts(of->columns[c].name, prefix) || of->columns[c].type->kind != TYPE_ARRAY)
                continue;
            struct sql_node *array = ARENA_NEW(r->arena, struct sql_node);
            *array = (struct sql_node){ .kind = SQL_NAME, .state = SQL_RESOLVED, .offset = node->offset };
            sql_node_set_column(r, select, array, of, c);
            struct str name = of->columns[c].name;
            if (node->alias.len > 0)
                name = str_of(arena_printf(r->arena, STR_FMT "." STR_FMT, STR_ARG(node->alias),
                                           STR_ARG(str_from(name, prefix.len))));
            *found = true;
            if (!add_array(r, table, array, name, err))
                return false;
            if (node->alias.len == 0)
                shadow(table, array);
        }
    }
    return true;
}

static void begin(struct sql_resolver *r, struct sql_table *table, bool left)
{
    struct sql_node none = { .type = type_of_kind(TYPE_NOTHING) };
    table->columns = ARENA_ARRAY(r->arena, struct sql_column, SQL_ARRAYS_MAX);
    table->arrays = ARENA_ARRAY(r->arena, struct sql_node *, SQL_ARRAYS_MAX);
    table->unnest = sql_call_new(r, &none);
    table->unnest->types = ARENA_ARRAY(r->arena, const struct type *, SQL_ARRAYS_MAX);
    table->unnest->op = left;
    table->used = ARENA_ARRAY(r->arena, bool, SQL_ARRAYS_MAX);
    table->outer_since = SIZE_MAX;
}

bool sql_resolve_array_join(struct sql_resolver *r, struct sql_select *select, struct sql_table *table, struct err *err)
{
    struct sql_node **written = table->arrays;
    begin(r, table, table->join == SQL_JOIN_LEFT_ARRAY);
    for (size_t i = 0; i < table->arrays_count; i++) {
        struct sql_node *node = written[i];
        struct err unknown = { 0 };
        bool nested = false, plain = node->kind == SQL_NAME && node->parts_count == 1;
        struct strbuf name = { 0 };
        if (!sql_resolve_node(r, node, &unknown)) {
            if (!plain || unknown.code != ERR_UNKNOWN_IDENTIFIER || !add_nested(r, select, table, node, &nested, err) ||
                !nested) {
                if (err->code == ERR_OK)
                    *err = unknown;
                return false;
            }
            continue;
        }
        sql_node_print(node, &name);
        bool ok = add_array(r, table, node, arena_dup(r->arena, strbuf_view(&name)), err);
        strbuf_fini(&name);
        if (!ok)
            return false;
        if (node->alias.len == 0 && node->kind == SQL_NAME)
            shadow(table, node);
    }
    table->unnest->types_count = table->columns_count;
    return true;
}

/* arrayJoin(x): as if ARRAY JOIN x stood at the end of FROM; the same x again is the same element. */
bool sql_resolve_array_join_call(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    struct sql_select *select = r->select;
    if (node->args_count != 1)
        return sql_bind_error(node, ERR_NUMBER_OF_ARGUMENTS_DOESNT_MATCH, "1 argument is needed", err);
    if (!sql_resolve_node(r, node->args[0], err))
        return false;
    if (select == NULL || !select->from_resolved || node->args[0]->has_aggregate)
        return sql_bind_error(node, ERR_NOT_IMPLEMENTED, "arrayJoin is not supported here", err);
    struct sql_table *table = NULL;
    for (size_t i = 0; i < select->tables_count && table == NULL; i++)
        if (select->tables[i].implicit && sql_same_expression(select->tables[i].arrays[0], node->args[0]))
            table = &select->tables[i];
    if (table == NULL) {
        if (select->tables_count == SQL_TABLES_MAX)
            return sql_bind_error(node, ERR_NOT_IMPLEMENTED, "too many arrayJoin", err);
        table = &select->tables[select->tables_count];
        *table = (struct sql_table){ .join = SQL_JOIN_ARRAY, .implicit = true, .id = r->tables++ };
        begin(r, table, false);
        if (!add_array(r, table, node->args[0], STR_EMPTY, err))
            return false;
        table->unnest->types_count = 1;
        select->tables_count++;
    }
    sql_node_set_column(r, select, node, table, 0);
    node->constant = false;
    return true;
}

/* ---- running ---- */

struct unnest {
    sqlite3_vtab base;
    struct sql_run *run;
};

struct list {
    struct strbuf bytes; /* of the array, in the key encoding */
    struct str rest, element;
    struct column cell; /* of the element's type */
};

struct cursor {
    sqlite3_vtab_cursor base;
    struct sql_run *run;
    struct sql_call *call;
    struct list lists[SQL_ARRAYS_MAX];
    bool padded, done; /* padded: the row of LEFT ARRAY JOIN for empty arrays */
    sqlite3_int64 ordinal;
};

static int connect_(sqlite3 *db, void *context, int argc, const char *const *argv, sqlite3_vtab **out, char **message)
{
    struct sql_run *run = context;
    struct strbuf text = { 0 };
    (void)argc;
    (void)argv;
    (void)message;
    strbuf_add_text(&text, "CREATE TABLE x(");
    for (size_t i = 0; i < SQL_ARRAYS_MAX; i++)
        strbuf_addf(&text, "c%zu,", i);
    strbuf_add_text(&text, "call HIDDEN");
    for (size_t i = 0; i < SQL_ARRAYS_MAX; i++)
        strbuf_addf(&text, ",a%zu HIDDEN", i);
    strbuf_add_char(&text, ')');
    run->declaring = true;
    int code = sqlite3_declare_vtab(db, strbuf_cstr(&text));
    run->declaring = false;
    strbuf_fini(&text);
    struct unnest *unnest = code == SQLITE_OK ? sqlite3_malloc(sizeof *unnest) : NULL;
    if (unnest == NULL)
        return code == SQLITE_OK ? SQLITE_NOMEM : code;
    *unnest = (struct unnest){ .run = run };
    *out = &unnest->base;
    return SQLITE_OK;
}

static int disconnect(sqlite3_vtab *vtab)
{
    sqlite3_free(vtab);
    return SQLITE_OK;
}

/* Every argument is an equality on a hidden column; without one of them there is no way to run it. */
static int best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
    (void)base;
    int last = -1;
    for (int i = 0; i < info->nConstraint; i++) {
        int place = info->aConstraint[i].iColumn - SQL_ARRAYS_MAX;
        if (place < 0 || info->aConstraint[i].op != SQLITE_INDEX_CONSTRAINT_EQ)
            continue;
        if (!info->aConstraint[i].usable)
            return SQLITE_CONSTRAINT;
        info->aConstraintUsage[i].argvIndex = place + 1;
        info->aConstraintUsage[i].omit = 1;
        last = MAX(last, place);
    }
    if (last < 1)
        return SQLITE_CONSTRAINT;
    info->estimatedCost = 10;
    info->estimatedRows = 10;
    return SQLITE_OK;
}

static int open_(sqlite3_vtab *base, sqlite3_vtab_cursor **out)
{
    struct cursor *cursor = mem_alloc(sizeof *cursor);
    *cursor = (struct cursor){ .run = ((const struct unnest *)base)->run };
    *out = &cursor->base;
    return SQLITE_OK;
}

static void forget(struct cursor *cursor)
{
    for (size_t i = 0; cursor->call != NULL && i < cursor->call->types_count; i++) {
        strbuf_fini(&cursor->lists[i].bytes);
        column_fini(&cursor->lists[i].cell);
    }
    cursor->call = NULL;
}

static int close_(sqlite3_vtab_cursor *base)
{
    struct cursor *cursor = (struct cursor *)base;
    forget(cursor);
    free(cursor);
    return SQLITE_OK;
}

/* To the next element of every array; done when they have none. */
static int step(struct cursor *cursor)
{
    size_t left = 0;
    struct err err = { 0 };
    for (size_t i = 0; i < cursor->call->types_count; i++) {
        struct list *list = &cursor->lists[i];
        left += sql_key_next(&list->rest, cursor->call->types[i]->children, 1, &list->element) ? 1 : 0;
    }
    cursor->done = left == 0;
    if (left == 0 || left == cursor->call->types_count)
        return SQLITE_OK;
    err_set(&err, ERR_SIZES_OF_ARRAYS_DONT_MATCH, "Sizes of ARRAY-JOIN-ed arrays do not match");
    sql_run_fail(cursor->run, &err);
    return SQLITE_ERROR;
}

static int filter(sqlite3_vtab_cursor *base, int number, const char *plan, int argc, sqlite3_value **argv)
{
    struct cursor *cursor = (struct cursor *)base;
    (void)number;
    (void)plan;
    forget(cursor);
    size_t index = (size_t)sqlite3_value_int64(argv[0]);
    must(index < cursor->run->calls_count);
    cursor->call = cursor->run->calls[index];
    must((size_t)argc == cursor->call->types_count + 1 && cursor->call->types_count <= SQL_ARRAYS_MAX);
    for (size_t i = 0; i < cursor->call->types_count; i++) {
        struct list *list = &cursor->lists[i];
        strbuf_add(&list->bytes, sql_value_from(argv[i + 1]).s);
        list->rest = strbuf_view(&list->bytes);
        column_init(&list->cell, cursor->call->types[i]->children[0]);
    }
    cursor->ordinal = 0;
    int code = step(cursor);
    cursor->padded = cursor->done && cursor->call->op != 0;
    cursor->done = cursor->done && !cursor->padded;
    return code;
}

static int next(sqlite3_vtab_cursor *base)
{
    struct cursor *cursor = (struct cursor *)base;
    cursor->ordinal++;
    if (!cursor->padded)
        return step(cursor);
    cursor->done = true;
    return SQLITE_OK;
}

static int eof(sqlite3_vtab_cursor *base)
{
    return ((const struct cursor *)base)->done;
}

static bool push_element(struct cursor *cursor, struct list *list, struct err *err)
{
    struct str element = list->element;
    column_clear(&list->cell);
    if (!cursor->padded)
        return sql_key_take(&element, &list->cell) ||
               err_set(err, ERR_LOGICAL_ERROR, "damaged value of type " STR_FMT, STR_ARG(list->cell.type->text));
    column_push_default(&list->cell);
    return true;
}

static int column_(sqlite3_vtab_cursor *base, sqlite3_context *context, int number)
{
    struct cursor *cursor = (struct cursor *)base;
    struct err err = { 0 };
    if (number < 0 || (size_t)number >= cursor->call->types_count)
        return SQLITE_OK;
    struct list *list = &cursor->lists[number];
    struct strbuf scratch = { 0 };
    struct sql_value value;
    if (!push_element(cursor, list, &err)) {
        sql_run_fail(cursor->run, &err);
        return SQLITE_ERROR;
    }
    value = sql_value_of_cell(&list->cell, 0, &scratch);
    sql_value_result(context, &value);
    strbuf_fini(&scratch);
    return SQLITE_OK;
}

static int rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *out)
{
    *out = ((const struct cursor *)base)->ordinal;
    return SQLITE_OK;
}

bool sql_unnest_register(struct sqlite3 *db, struct sql_run *run, struct err *err)
{
    static const sqlite3_module module = { .iVersion = 1,
                                           .xConnect = connect_,
                                           .xDisconnect = disconnect,
                                           .xBestIndex = best_index,
                                           .xOpen = open_,
                                           .xClose = close_,
                                           .xFilter = filter,
                                           .xNext = next,
                                           .xEof = eof,
                                           .xColumn = column_,
                                           .xRowid = rowid };
    return sqlite3_create_module(db, "aj", &module, run) == SQLITE_OK ||
           err_set(err, ERR_LOGICAL_ERROR, "cannot register ARRAY JOIN: %s", sqlite3_errmsg(db));
}
