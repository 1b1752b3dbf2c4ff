/* admin_route.c: health, metrics, flush, drain and reload. Nothing here takes a lock that ingest holds, but for the
 * commands.
 */
#include <signal.h>
#include <unistd.h>

#include "base/log.h"
#include "base/metric.h"
#include "buffer/buffers.h"
#include "config/config.h"
#include "format/codec.h"
#include "gateway/identify.h"
#include "gateway/ready.h"
#include "gateway/route.h"
#include "gateway/rules.h"
#include "gateway/settings_request.h"

#define PLAIN "text/plain; charset=UTF-8"
enum { STUCK_S = 30, FLUSH_WAIT_S = 60 };

enum request_step admin_metrics(struct request *request)
{
    struct reply *reply = &request->reply;
    struct err err;
    if (!request->home->admin && !request->home->rules->config->metrics)
        return request_fail_text(request, 404, "Metrics are served on the admin port alone.\n");
    bool open = reply_wants_openmetrics(request->h_accept);
    struct strbuf page = { 0 };
    metric_write_page(&page, open);
    reply->status = 200;
    reply_header(reply, "Content-Type",
                 open ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                      : "text/plain; version=0.0.4; charset=utf-8");
    reply_header(reply, "Cache-Control", "no-store");
    struct str encoding = reply_pick_encoding(request->h_accept_encoding);
    bool gzip = str_find(request->h_accept_encoding, STR("gzip")) != STR_NONE && encoding.len > 0;
    if (gzip && codec_compress(STR("gzip"), strbuf_view(&page), &reply->body, &err)) {
        reply_header(reply, "Content-Encoding", "gzip");
        strbuf_fini(&page);
    } else {
        strbuf_fini(&reply->body);
        reply->body = page;
    }
    return REQUEST_ANSWER;
}

enum request_step admin_healthy(struct request *request)
{
    struct gateway *gateway = request->gateway;
    uint64_t since_ns = gateway->stuck_since(gateway), now_ns = request->home->now_ns;
    bool stuck = since_ns != 0 && now_ns > since_ns && now_ns - since_ns > STUCK_S * NS_PER_S;
    if (stuck)
        reply_text(&request->reply, 503, PLAIN, STR("a thread has been stuck for 30 s\n"));
    else
        reply_text(&request->reply, 200, PLAIN, STR("ok\n"));
    return REQUEST_ANSWER;
}

enum request_step admin_ready(struct request *request)
{
    struct strbuf why = { 0 };
    ready_why_not(request->gateway, &why);
    reply_text(&request->reply, why.len > 0 ? 503 : 200, PLAIN, why.len > 0 ? strbuf_view(&why) : STR("ready\n"));
    strbuf_fini(&why);
    return REQUEST_ANSWER;
}

enum request_step admin_startup(struct request *request)
{
    enum gateway_stage stage = (enum gateway_stage)atomic_load(&request->gateway->stage);
    bool started = stage == STAGE_SERVING || stage == STAGE_DRAINING;
    reply_text(&request->reply, started ? 200 : 503, PLAIN,
               str_of(arena_printf(request->arena, "%s\n", gateway_stage_name(stage))));
    return REQUEST_ANSWER;
}

/* Commands are for those who may do anything to all tables; without users for this machine. */
static bool may_command(struct request *request, struct err *err)
{
    struct settings_request url = { 0 };
    const struct config_user *user;
    if (!settings_request_read_url(&url, request->query_string, request->arena, err) ||
        !identify(request, &url, &user, err))
        return false;
    bool may = (user->grants & GRANT_ADMIN) != 0 && user->tables.count == 0;
    log_info("admin command: user=" STR_FMT " peer=%s path=" STR_FMT " allowed=%d", STR_ARG(user->name), request->peer,
             STR_ARG(request->path), may);
    return may ||
           err_set(err, ERR_ACCESS_DENIED, STR_FMT ": Not enough privileges. This needs the grant admin for all tables",
                   STR_ARG(user->name));
}

enum request_step admin_post_begin(struct request *request)
{
    struct err err = { 0 };
    if (!str_is(request->method, "POST")) {
        reply_header(&request->reply, "Allow", "POST");
        return request_fail_text(request, 405, "POST only\n");
    }
    if (atomic_load(&request->gateway->stage) < STAGE_SERVING)
        return request_fail_text(request, 503, "not started yet\n");
    if (!may_command(request, &err))
        return request->slow_password ? identify_slowly(request) : request_fail(request, &err);
    return request_want_body(request, false, false);
}

static bool flush_work(struct request *request)
{
    struct gateway *gateway = request->gateway;
    uint64_t mark = buffers_flush(gateway->buffers, STR_EMPTY, STR_EMPTY, FLUSH_COMMAND);
    gateway->wake_flushers(gateway);
    uint64_t deadline_ns = clock_mono_ns(gateway->clock) + FLUSH_WAIT_S * NS_PER_S;
    bool flushed = false;
    while (!flushed && !atomic_load_explicit(&request->cancel, memory_order_relaxed)) {
        uint64_t now_ns = clock_mono_ns(gateway->clock);
        if (now_ns >= deadline_ns)
            break;
        flushed = buffers_wait_flushed(gateway->buffers, mark, MIN(deadline_ns, now_ns + 100 * NS_PER_MS));
    }
    reply_text(&request->reply, flushed ? 200 : 503, PLAIN,
               flushed ? STR("flushed\n") : STR("not everything was flushed in time\n"));
    return true;
}

enum request_step admin_flush(struct request *request)
{
    return request_to_pool(request, request->gateway->command_pool, flush_work);
}

enum request_step admin_drain(struct request *request)
{
    reply_text(&request->reply, 202, PLAIN, STR("draining\n"));
    if (kill(getpid(), SIGTERM) != 0) /* the signal thread does the rest, as for anybody's SIGTERM */
        request->reply.status = 500;
    return REQUEST_ANSWER;
}

static bool reload_work(struct request *request)
{
    struct gateway *gateway = request->gateway;
    struct strbuf problems = { 0 };
    if (gateway->reload(gateway, &problems))
        reply_text(&request->reply, 200, PLAIN, STR("reloaded\n"));
    else
        reply_text(&request->reply, 400, PLAIN, strbuf_view(&problems));
    strbuf_fini(&problems);
    return true;
}

enum request_step admin_reload(struct request *request)
{
    return request_to_pool(request, request->gateway->command_pool, reload_work);
}
