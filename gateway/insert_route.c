/* insert_route.c: an INSERT whose plan is known and whose data has arrived: admission, the hand-over to the buffers,
 * and the answer with the level that was reached.
 *
 *   insert_admit --buffered--> buffers_put --> answer
 *        |-------stored------> park, publish: buffers_put --> done (flusher thread) --> resumed: answer
 *        |-------spooled-----> park, publish: spool_put --> spooled (its writer) --> resumed: answer
 *        '-------SELECT------> insert_select.c: to the pool, then insert_rows: the same from publish on
 *
 * Where every insert is spooled, one that waits until it is stored goes through the spool too. When the buffers are
 * full, one that nobody waits for is spooled instead of refused.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/metric.h"
#include "base/reserve.h"
#include "buffer/buffers.h"
#include "buffer/spool.h"
#include "config/config.h"
#include "format/params.h"
#include "format/rows.h"
#include "gateway/plan.h"
#include "gateway/route.h"
#include "gateway/rules.h"
#include "gateway/sessions.h"
#include "storage/temporary.h"

/* --- answers ------------------------------------------------------------------------------------------------------ */

static void insert_headers(struct request *request)
{
    if (request->batch_id[0] != '\0')
        reply_header(&request->reply, "X-Sluice-Batch", request->batch_id);
}

static void count_ack(enum ack_level level)
{
    static struct metric_series *_Atomic acknowledged[ACK_STORED + 1];
    struct metric_series *series = atomic_load_explicit(&acknowledged[level], memory_order_acquire);
    if (series == NULL) {
        series = metric_series(METRIC_INSERTS, (struct str[]){ STR("clickhouse"), str_of(ack_name(level)) });
        atomic_store_explicit(&acknowledged[level], series, memory_order_release);
    }
    metric_series_add(series, 1);
}

/* What differs from answer to answer; the rest comes with the preset. */
static void answer_ok(struct request *request, enum ack_level level)
{
    static const enum reply_preset presets[] = {
        [ACK_BUFFERED] = REPLY_PRESET_BUFFERED, [ACK_SPOOLED] = REPLY_PRESET_SPOOLED, [ACK_STORED] = REPLY_PRESET_STORED
    };
    struct reply *reply = &request->reply;
    const struct request_verdict *verdict = &request->verdict;
    reply->status = 200;
    reply->preset = presets[level];
    reply_header(reply, "X-ClickHouse-Query-Id", request_query_id(request));
    request_cors_header(request);
    insert_headers(request);
    if (level == ACK_STORED) {
        struct reply_summary summary = { .read_rows = verdict->rows,
                                         .read_bytes = verdict->rows_bytes,
                                         .written_rows = verdict->rows,
                                         .written_bytes = verdict->rows_bytes,
                                         .result_rows = verdict->rows,
                                         .result_bytes = verdict->rows_bytes,
                                         .elapsed_ns = request->home->now_ns - request->begun_ns };
        reply_summary(reply, &summary, request->arena);
        if (verdict->outcome == INSERT_DUPLICATE)
            reply_header(reply, "X-Sluice-Duplicate", "1");
    }
    count_ack(level);
}

static enum request_step answer_error(struct request *request, const struct err *err)
{
    insert_headers(request);
    struct err unknown; /* an INSERT has no answer that it would spoil */
    if (request->plan->output_format.len > 0 && !request_set_format(request, STR_EMPTY, &unknown))
        request->answer_format = NULL;
    return request_fail(request, err);
}

/* Closed buffers mean that the daemon stops: the sender is to come back, not to give up. */
static void put_error(struct err *err)
{
    if (err->code == ERR_ABORTED)
        err_set(err, ERR_TOO_MANY_SIMULTANEOUS_QUERIES, "The server is stopping: nothing of this insert was kept");
}

static enum request_step insert_resumed(struct request *request)
{
    const struct request_verdict *verdict = &request->verdict;
    struct err err = { 0 };
    int how = atomic_load_explicit(&request->park, memory_order_acquire);
    if (how == PARK_TIMED_OUT || how == PARK_STOPPED) {
        unsigned long long ms = request->plan->settings.wait_timeout_ns / NS_PER_MS;
        if (how == PARK_TIMED_OUT)
            err_set(&err, ERR_TIMEOUT_EXCEEDED, "Wait for async insert timeout (%llu ms) exceeded", ms);
        else
            err_set(&err, ERR_TIMEOUT_EXCEEDED,
                    "The server stopped before this insert was flushed: whether it was stored is unknown");
        return answer_error(request, &err);
    }
    if (verdict->outcome == INSERT_STORED || verdict->outcome == INSERT_DUPLICATE) {
        answer_ok(request, ACK_STORED);
    } else if (verdict->outcome != INSERT_PENDING) {
        return answer_error(request, &verdict->err);
    } else if (request->waits_for_spool) {
        answer_ok(request, ACK_SPOOLED);
    } else {
        err_set(
            &err, ERR_TIMEOUT_EXCEEDED,
            "The server stopped before this insert was stored: it is in the spool, and will be when the server starts "
            "again");
        reply_header(&request->reply, "X-Sluice-Ack", ack_name(ACK_SPOOLED));
        return answer_error(request, &err);
    }
    return REQUEST_ANSWER;
}

/* --- hand-over ---------------------------------------------------------------------------------------------------- */

/* A flusher thread: the verdict travels to the polling thread. */
static void insert_done(void *context, const struct insert *insert)
{
    struct request *request = context;
    request->verdict.outcome = insert->outcome;
    request->verdict.err = insert->err;
    request->verdict.rows = insert->rows;
    request->verdict.rows_bytes = insert->rows_bytes;
    request_decide(request, false);
}

static bool insert_claim(void *context)
{
    return request_claim(context);
}

/* The spool's writer. err NULL: the insert is safe. */
static void insert_spooled(void *context, const struct err *err)
{
    struct request *request = context;
    request->verdict.outcome = err == NULL ? INSERT_PENDING : INSERT_REJECTED;
    if (err != NULL)
        request->verdict.err = *err;
    request_decide(request, false);
}

/* Through the spool. What the buffers have no room for may stay on disk for a while, but for who waits further. */
static bool put_spooled(struct gateway *gateway, struct insert *insert, struct err *err)
{
    if (buffers_reserve(gateway->buffers, insert, err)) {
        if (spool_put(gateway->spool, insert, true, err))
            return true;
        buffers_release(gateway->buffers, insert);
        return false;
    }
    return err->code != ERR_ABORTED && insert->spooled != NULL && spool_put(gateway->spool, insert, false, err);
}

static void insert_publish(struct request *request)
{
    struct gateway *gateway = request->gateway;
    struct insert *insert = request->insert;
    struct err err = { 0 };
    request->insert = NULL;
    insert->context = request;
    if (request->waits_for_spool) {
        insert->spooled = insert_spooled;
    } else {
        insert->claim = insert_claim;
        insert->done = insert_done;
    }
    if (request->waits_for_spool || insert->shape->spooled
            ? put_spooled(gateway, insert, &err)
            : buffers_put(gateway->buffers, insert, insert->arrival_ns, &err))
        return;
    insert_free(insert);
    put_error(&err);
    request->verdict.outcome = INSERT_REJECTED;
    request->verdict.err = err;
    request_decide(request, true);
}

static enum request_step insert_park(struct request *request, struct insert *insert, bool for_spool)
{
    request->insert = insert;
    request->waits_for_spool = for_spool;
    request->publish = insert_publish;
    request->resumed = insert_resumed;
    request->deadline_ns = request->home->now_ns + request->plan->settings.wait_timeout_ns;
    return REQUEST_PARK;
}

/* A long id is shortened, and stays another than other long ones that begin alike. */
static void copy_query_id(struct insert *insert, struct str query_id)
{
    enum { KEPT = 46 };
    if (query_id.len < sizeof(insert->query_id))
        snprintf(insert->query_id, sizeof(insert->query_id), STR_FMT, STR_ARG(query_id));
    else
        snprintf(insert->query_id, sizeof(insert->query_id), "%.*s-%016llx", KEPT, query_id.data,
                 (unsigned long long)hash64(query_id));
}

static struct insert *insert_make(struct request *request, struct shape *shape, uint64_t now_ns, int64_t wall_ns)
{
    size_t bytes = request->data.len;
    char *body;
    if (request->data.data == request->body.data) {
        body = strbuf_take(&request->body);
    } else { /* the statement stood before it */
        body = mem_alloc(bytes + 1);
        memcpy(body, request->data.data, bytes);
        body[bytes] = '\0';
    }
    struct insert *insert = insert_new(shape, body, bytes);
    copy_query_id(insert, str_of(request_query_id(request)));
    snprintf(insert->peer, sizeof(insert->peer), "%s", request->peer);
    insert->token_given = request->token.len > 0;
    if (insert->token_given) {
        insert->token = mem_alloc(request->token.len + 1);
        memcpy(insert->token, request->token.data, request->token.len);
        insert->token[request->token.len] = '\0';
    } else {
        char made[UUID_TEXT_BYTES];
        rng_uuid4_text(request->gateway->rng, made);
        insert->token = mem_strdup(made);
    }
    insert->arrival_ns = now_ns;
    insert->arrival_wall_ns = wall_ns;
    insert->batch_id_to = request->batch_id;
    return insert;
}

static bool finds_room(const struct request *request, const struct plan *plan, uint64_t cost, struct err *err)
{
    const struct gateway *gateway = request->gateway;
    if (plan->shape == NULL || plan->is_select || plan->loose_schema != NULL)
        return true;
    if (reserve_is_gone(gateway->reserve, err))
        return false;
    if (buffers_have_room(gateway->buffers, plan->shape, cost, err))
        return true;
    bool may_spill = !plan->settings.wait && (plan->settings.spooled || plan->settings.spool != SPOOL_OFF);
    if (err->code != ERR_ABORTED && may_spill)
        return spool_has_room(gateway->spool, cost, err);
    put_error(err);
    return false;
}

bool insert_finds_room(const struct request *request, const struct plan *plan, struct err *err)
{
    return finds_room(request, plan, request->content_length, err);
}

static bool may_write(struct request *request, const struct plan *plan, struct err *err)
{
    if (request->get_or_head || plan->settings.readonly != 0)
        return err_set(err, ERR_READONLY,
                       STR_FMT ": Cannot execute query in readonly mode. For queries over HTTP, method GET implies "
                               "readonly. You should use method POST for modifying queries",
                       STR_ARG(plan->user->name));
    if (str_find_char(request->token, '\0') != STR_NONE)
        return err_set(err, ERR_BAD_ARGUMENTS, "insert_deduplication_token holds a zero byte");
    return true;
}

/* After all that may refuse an insert for now: one that finds no room costs nothing of the quota. */
static bool take_quota(struct request *request, const struct plan *plan, struct err *err)
{
    const struct config_user *user = plan->user;
    bool limited = user->inserts_per_minute > 0 || user->bytes_per_minute > 0;
    return !limited ||
           auth_take_quota(plan->rules->auth, user, request->data.len, request->home->now_ns, &request->again_ns, err);
}

/* rows: how many framing saw. */
static bool admission_check(struct request *request, const struct plan *plan, uint64_t *rows, struct err *err)
{
    if (!may_write(request, plan, err))
        return false;
    if ((plan->settings.wait || plan->settings.spooled) &&
        request->home->parked_count >= request->home->rules->config->http_waiters)
        return err_set(err, ERR_TOO_MANY_SIMULTANEOUS_QUERIES, "Too many inserts wait for their flush: %zu",
                       request->home->parked_count);
    /* Others came while the body was read; framing it would be work in vain. */
    if (!finds_room(request, plan, request->data.len, err) || !take_quota(request, plan, err))
        return false;
    if (plan->settings.wait)
        return true; /* the flush refuses it alone, and knows the types that the engine's code depends on */
    if (shape_check_framing(plan->shape, request->data, rows, err))
        return true;
    rows_rejected(shape_count_rows(plan->shape, request->data), err->code);
    return false;
}

/* The parameters are the request's and go with it: what waits has to mean the same without them. */
static bool substitute_params(struct request *request, const struct plan *plan, struct err *err)
{
    const struct settings_request *settings = &plan->settings;
    if (settings->params_count == 0 || !str_is(str_of(row_format_name(plan->shape->format)), "Values"))
        return true;
    return params_into_text(request->data, settings->params, settings->params_count, request->arena, &request->data,
                            err);
}

void insert_rows(struct request *request)
{
    struct gateway *gateway = request->gateway;
    struct insert *insert =
        insert_make(request, request->shape, clock_mono_ns(gateway->clock), clock_wall_ns(gateway->clock));
    insert->token_given = true; /* one that was made up is new: equal rows of two SELECTs are not the same insert */
    request->insert = insert;
    request->resumed = insert_resumed;
    insert_publish(request);
}

bool insert_parse(struct request *request, const struct insert_data *data, struct block *block,
                  struct rows_report *report, struct err *err)
{
    const struct schema *schema = data->schema;
    size_t *columns = ARENA_ARRAY(request->arena, size_t, schema->columns_count + 1), count = 0;
    block_init(block, schema->columns_count);
    for (size_t i = 0; i < schema->columns_count; i++) {
        column_init(&block->columns[i], schema->columns[i].type);
        block->names[i] = schema->columns[i].name;
    }
    if (!rows_resolve_columns(schema, data->columns, data->columns_count,
                              data->settings->insert_allow_materialized_columns, columns, &count, err))
        return false;
    struct rows_target target = { .schema = schema,
                                  .columns = columns,
                                  .columns_count = count,
                                  .settings = data->settings,
                                  .wall_ns = clock_wall_ns(request->gateway->clock),
                                  .rng = request->gateway->rng };
    return rows_parse(data->format, data->body, &target, block, report, err);
}

/* Of a temporary table: the rows stay with the session, whose own the request is. */
static bool keep_temporary(struct request *request, const struct block *block, struct err *err)
{
    if (!request->plan->into_temporary)
        return true;
    struct temporary_tables *tables = session_tables(request->session);
    return temporary_tables_append(tables, temporary_tables_find(tables, request->shape->table), block, err);
}

void insert_loose(struct request *request)
{
    struct rows_report report = { 0 };
    struct block block;
    struct err err = { 0 };
    const struct shape *shape = request->shape;
    struct insert_data data = { .format = shape->format,
                                .schema = request->plan->loose_schema,
                                .columns = shape->columns,
                                .columns_count = shape->columns_count,
                                .settings = &shape->format_settings,
                                .body = request->data };
    if (insert_parse(request, &data, &block, &report, &err) && keep_temporary(request, &block, &err)) {
        request->verdict = (struct request_verdict){ .outcome = INSERT_STORED,
                                                     .rows = report.rows,
                                                     .rows_bytes = block_bytes(&block) };
        answer_ok(request, ACK_STORED);
    } else {
        (void)answer_error(request, &err);
    }
    block_fini(&block);
}

static bool insert_loose_work(struct request *request)
{
    insert_loose(request);
    return true;
}

static enum request_step admit_select(struct request *request, const struct plan *plan)
{
    struct err err = { 0 };
    if (!may_write(request, plan, &err) || !take_quota(request, plan, &err))
        return answer_error(request, &err);
    request->shape = shape_ref(plan->shape);
    return insert_select(request, plan);
}

enum request_step insert_admit(struct request *request, const struct plan *plan)
{
    struct err err = { 0 };
    uint64_t rows = 0;
    if (plan->settings.token.len > 0) /* of the statement's own clause */
        request->token = plan->settings.token;
    if (plan->is_select)
        return admit_select(request, plan);
    if (!substitute_params(request, plan, &err) || !admission_check(request, plan, &rows, &err))
        return answer_error(request, &err);
    if (plan->loose_schema != NULL) {
        request->shape = shape_ref(plan->shape);
        return request_to_pool(request, request->gateway->pool, insert_loose_work);
    }
    struct insert *insert = insert_make(request, plan->shape, request->home->now_ns, request->home->wall_ns);
    insert->rows_framed = rows;
    insert->user_buffers_max = plan->user->buffers;
    if (request->body_reserved > 0) { /* from here on the buffers count it */
        gateway_release_body(request->gateway, request->body_reserved);
        request->body_reserved = 0;
    }
    if (plan->settings.wait || plan->settings.spooled)
        return insert_park(request, insert, !plan->settings.wait);
    if (!buffers_put(request->gateway->buffers, insert, insert->arrival_ns, &err)) {
        if (err.code != ERR_ABORTED && plan->settings.spool != SPOOL_OFF) /* no room for it */
            return insert_park(request, insert, true);
        insert_free(insert);
        put_error(&err);
        return answer_error(request, &err);
    }
    answer_ok(request, ACK_BUFFERED);
    return REQUEST_ANSWER;
}
