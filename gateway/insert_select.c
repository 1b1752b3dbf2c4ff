/* insert_select.c: INSERT ... SELECT: the SELECT runs on the pool, its rows go to the table as one insert in Native, so
 * that defaults, conversions, tokens and limits are those of every insert. Where it reads from input('structure'), the
 * data behind it is parsed first. */
#include "config/config.h"
#include "format/insert_head.h"
#include "format/lexer.h"
#include "format/output.h"
#include "format/rows.h"
#include "gateway/plan.h"
#include "gateway/request.h"
#include "gateway/route.h"
#include "gateway/rules.h"
#include "gateway/running.h"
#include "gateway/statement.h"
#include "storage/ddl.h"
#include "storage/sql.h"
#include "storage/store.h"

/* The rows' columns get the names of those they go to, by place. */
static bool name_columns(const struct request *request, const struct schema *schema, struct block *block,
                         struct err *err)
{
    const struct shape *shape = request->shape;
    size_t *columns = ARENA_ARRAY(request->arena, size_t, schema->columns_count + 1), count = 0;
    if (!rows_resolve_columns(schema, shape->columns, shape->columns_count,
                              shape->format_settings.insert_allow_materialized_columns, columns, &count, err))
        return false;
    if (block->columns_count != count)
        return err_set(err, ERR_NUMBER_OF_COLUMNS_DOESNT_MATCH,
                       "Number of columns doesn't match (source: %zu and result: %zu)", block->columns_count, count);
    for (size_t i = 0; i < count; i++)
        block->names[i] = schema->columns[columns[i]].name;
    return true;
}

static bool print_rows(struct request *request, struct sql_result *result, struct err *err)
{
    const struct output_format *native = NULL;
    const struct shape *shape = request->shape;
    struct output_info info = { 0 };
    const struct schema *schema = request->plan->loose_schema;
    struct table *table = NULL;
    if (!result->has_block)
        return err_set(err, ERR_SYNTAX_ERROR, "INSERT takes the rows of a SELECT only");
    if (schema == NULL && !store_table(request->gateway->store, shape->database, shape->table, &table, err))
        return false;
    if (table != NULL)
        schema = table_def(table)->schema;
    strbuf_fini(&request->body);
    strbuf_init(&request->body, (size_t)request->plan->rules->config->sql_result_max);
    bool ok = name_columns(request, schema, &result->block, err) && output_format_find(STR("Native"), &native, err) &&
              output_write(native, &result->block, &info, &request->plan->settings.format, &request->body, err);
    request->data = strbuf_view(&request->body);
    if (table != NULL)
        table_unref(table);
    return ok;
}

/* The rows behind the SELECT, in columns of the structure that input() names. */
static bool read_input(struct request *request, const struct insert_input *input, struct schema **schema,
                       struct block *block, struct err *err)
{
    struct format_settings settings = request->plan->settings.format;
    settings.input_format_defaults_for_omitted_fields = false; /* of the structure; the table's come later */
    struct insert_data data = { .settings = &settings, .body = str_from(request->data, input->data_offset) };
    struct rows_report report = { 0 };
    if (!row_format_find(input->format, &data.format, err) || !table_structure_parse(input->structure, schema, err))
        return false;
    data.schema = *schema;
    return insert_parse(request, &data, block, &report, err);
}

static bool select_from(struct request *request, struct sql_result *result, struct err *err)
{
    struct schema *schema = NULL;
    struct block block = { 0 };
    if (request->input == NULL)
        return statement_select(request, request->statement, NULL, result, err);
    bool ok = read_input(request, request->input, &schema, &block, err) &&
              statement_select(request, request->statement, &block, result, err);
    block_fini(&block);
    schema_unref(schema);
    return ok;
}

static bool select_rows(struct request *request, struct err *err)
{
    struct sql_result result = { 0 };
    struct running *running = request->gateway->running;
    if (!running_add(running, request, err))
        return false;
    bool ok = select_from(request, &result, err);
    if (ok) {
        ok = print_rows(request, &result, err);
        sql_result_fini(&result);
    }
    running_remove(running, request);
    return ok;
}

bool insert_select_run(struct request *request)
{
    struct err err = { 0 };
    if (!select_rows(request, &err)) {
        (void)request_fail(request, &err);
        return true;
    }
    if (request->plan->loose_schema != NULL) {
        insert_loose(request);
        return true;
    }
    insert_rows(request); /* from here on it is the flusher's */
    return false;
}

/* The clause that stood before INSERT belongs to the SELECT, which may have one of its own. */
static struct str join_with(struct arena *arena, struct str with, struct str select)
{
    struct strbuf text = { 0 };
    struct lexer lexer;
    lexer_init(&lexer, select);
    strbuf_add(&text, with);
    if (with.len > 0 && lexer_take_word(&lexer, "WITH")) {
        strbuf_add_char(&text, ',');
        select = str_from(select, lexer.at);
    }
    strbuf_add(&text, select);
    struct str joined = arena_dup(arena, strbuf_view(&text));
    strbuf_fini(&text);
    return joined;
}

enum request_step insert_select(struct request *request, const struct plan *plan)
{
    struct err err = { 0 };
    struct insert_input *input = ARENA_NEW(request->arena, struct insert_input);
    struct str statement = request->data, start = str_sub(statement, 0, (size_t)plan->settings.max_query_size);
    if (!insert_input_find(start, request->arena, input, &err))
        return request_fail(request, &err);
    if (input->is_there) {
        request->input = input;
        statement.len = input->select_bytes;
    }
    if ((plan->user->grants & GRANT_READ) == 0)
        err_set(&err, ERR_ACCESS_DENIED, STR_FMT ": Not enough privileges. This statement needs the grant read",
                STR_ARG(plan->user->name));
    else if (statement.len > plan->settings.max_query_size)
        err_set(&err, ERR_SYNTAX_ERROR,
                "Max query size exceeded (can be increased with the `max_query_size` setting): %zu bytes",
                statement.len);
    if (err.code != ERR_OK)
        return request_fail(request, &err);
    request->statement = join_with(request->arena, plan->with, statement);
    (void)request_query_id(request); /* before other threads look for it */
    return request_to_pool(request, request->gateway->pool, insert_select_run);
}
