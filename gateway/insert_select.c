/* insert_select.c: INSERT ... SELECT: the SELECT runs on the pool, its rows go to the table as one insert in Native, so
 * that defaults, conversions, tokens and limits are those of every insert. */
#include "config/config.h"
#include "format/output.h"
#include "format/rows.h"
#include "gateway/plan.h"
#include "gateway/request.h"
#include "gateway/route.h"
#include "gateway/running.h"
#include "gateway/statement.h"
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
    struct table *table = NULL;
    if (!result->has_block)
        return err_set(err, ERR_SYNTAX_ERROR, "INSERT takes the rows of a SELECT only");
    if (!store_table(request->gateway->store, shape->database, shape->table, &table, err))
        return false;
    strbuf_fini(&request->body);
    strbuf_init(&request->body, (size_t)request->gateway->config->sql_result_max);
    bool ok = name_columns(request, table_def(table)->schema, &result->block, err) &&
              output_format_find(STR("Native"), &native, err) &&
              output_write(native, &result->block, &info, &request->plan->settings.format, &request->body, err);
    request->data = strbuf_view(&request->body);
    table_unref(table);
    return ok;
}

static bool select_rows(struct request *request, struct err *err)
{
    struct sql_result result = { 0 };
    struct running *running = request->gateway->running;
    if (!running_add(running, request, err))
        return false;
    bool ok = statement_select(request, request->statement, &result, err);
    if (ok) {
        ok = print_rows(request, &result, err);
        sql_result_fini(&result);
    }
    running_remove(running, request);
    return ok;
}

static bool insert_select_work(struct request *request)
{
    struct err err = { 0 };
    if (!select_rows(request, &err)) {
        (void)request_fail(request, &err);
        return true;
    }
    insert_rows(request); /* from here on it is the flusher's */
    return false;
}

enum request_step insert_select(struct request *request, const struct plan *plan)
{
    struct err err = { 0 };
    if ((plan->user->grants & GRANT_READ) == 0)
        err_set(&err, ERR_ACCESS_DENIED, STR_FMT ": Not enough privileges. This statement needs the grant read",
                STR_ARG(plan->user->name));
    else if (request->data.len > plan->settings.max_query_size)
        err_set(&err, ERR_SYNTAX_ERROR,
                "Max query size exceeded (can be increased with the `max_query_size` setting): %zu bytes",
                request->data.len);
    if (err.code != ERR_OK)
        return request_fail(request, &err);
    request->statement = arena_dup(request->arena, request->data);
    if (request->query_id[0] == '\0')
        rng_uuid4_text(request->gateway->rng, request->query_id);
    return request_to_pool(request, insert_select_work);
}
