/* route.c: see route.h. */
#include "gateway/route.h"

static enum request_step ok_page(struct request *request)
{
    reply_text(&request->reply, 200, "text/html; charset=UTF-8", STR("Ok.\n"));
    reply_header(&request->reply, "Vary", "Accept-Encoding");
    reply_summary(&request->reply, NULL, request->arena);
    reply_header(&request->reply, "X-ClickHouse-Exception-Tag", request->gateway->exception_tag);
    request_encode_body(request);
    return REQUEST_ANSWER;
}

static enum request_step replicas_page(struct request *request)
{
    reply_text(&request->reply, 200, "text/plain; charset=UTF-8", STR("Ok.\n"));
    return REQUEST_ANSWER;
}

static enum request_step unknown_page(struct request *request)
{
    static const char help[] = "\n\nUse / or /ping for health checks.\n"
                               "Or /replicas_status for more sophisticated health checks.\n\n"
                               "Send queries from your program with POST method or GET /?query=...\n\n"
                               "Use clickhouse-client:\n\nFor interactive data analysis:\n    clickhouse-client\n\n"
                               "For batch query processing:\n    clickhouse-client --query='SELECT 1' > result\n"
                               "    clickhouse-client < query > result\n";
    struct str target = str_sub(request->target, 0, 1000);
    return request_fail_text(request, 404,
                             arena_printf(request->arena, "There is no handle " STR_FMT "%s", STR_ARG(target), help));
}

static const struct route data_routes[] = {
    { "/", ROUTE_ANY, statement_begin, statement_end },
    { "/ping", ROUTE_READ_EXACT, ok_page, NULL },
    { "/replicas_status", ROUTE_READ, replicas_page, NULL },
    { "/metrics", ROUTE_ANY, admin_metrics, NULL },
};
static const struct route front_page = { "/", ROUTE_READ_EXACT, ok_page, NULL };
static const struct route unknown_route = { "", ROUTE_ANY, unknown_page, NULL };

static const struct route admin_routes[] = {
    { "/metrics", ROUTE_ANY, admin_metrics, NULL },
    { "/-/healthy", ROUTE_ANY, admin_healthy, NULL },
    { "/livez", ROUTE_ANY, admin_healthy, NULL },
    { "/-/ready", ROUTE_ANY, admin_ready, NULL },
    { "/readyz", ROUTE_ANY, admin_ready, NULL },
    { "/startupz", ROUTE_ANY, admin_startup, NULL },
    { "/-/flush", ROUTE_ANY, admin_post_begin, admin_flush },
    { "/-/drain", ROUTE_ANY, admin_post_begin, admin_drain },
    { "/-/reload", ROUTE_ANY, admin_post_begin, admin_reload },
};
static const struct route unknown_admin = { "", ROUTE_ANY, unknown_page, NULL };

const struct route *route_find(bool admin, struct str path, struct str target, bool get_or_head)
{
    const struct route *routes = admin ? admin_routes : data_routes;
    size_t count = admin ? ARRAY_COUNT(admin_routes) : ARRAY_COUNT(data_routes);
    if (!admin && get_or_head && str_is(target, "/"))
        return &front_page;
    for (size_t i = 0; i < count; i++) {
        if (!str_is(path, routes[i].path))
            continue;
        if ((routes[i].takes != ROUTE_ANY && !get_or_head) ||
            (routes[i].takes == ROUTE_READ_EXACT && path.len != target.len))
            break;
        return &routes[i];
    }
    return admin ? &unknown_admin : &unknown_route;
}
