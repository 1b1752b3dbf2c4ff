/* reply.c: see reply.h. */
#include "gateway/reply.h"

#include <stdio.h>

#include "gateway/gateway.h"

void reply_init(struct reply *reply)
{
    reply->status = 0;
    reply->preset = REPLY_PRESET_NONE;
    reply->headers_count = 0;
    reply->body = (struct strbuf){ 0 };
    reply->close = false;
}

void reply_fini(struct reply *reply)
{
    strbuf_fini(&reply->body);
}

void reply_header(struct reply *reply, const char *name, const char *value)
{
    must(reply->headers_count < REPLY_HEADERS_MAX);
    reply->headers[reply->headers_count++] = (struct reply_header){ name, value };
}

bool reply_value_is_clean(struct str value)
{
    for (size_t i = 0; i < value.len; i++) {
        unsigned char c = (unsigned char)value.data[i];
        if (c < 0x20 || c == 0x7f)
            return false;
    }
    return true;
}

void reply_text(struct reply *reply, int status, const char *content_type, struct str body)
{
    reply->status = status;
    reply_header(reply, "Content-Type", content_type);
    strbuf_add(&reply->body, body);
}

enum { RETRY_SECONDS_MAX = 60 };

/* Before chance has its say. */
static uint64_t retry_after_ns(enum err_code code, uint64_t drain_ns)
{
    switch (code) {
    case ERR_TOO_MANY_SIMULTANEOUS_QUERIES:
    case ERR_MEMORY_LIMIT_EXCEEDED:
        return drain_ns;
    case ERR_TOO_MANY_PARTS: /* a merge has to come first */
        return MAX(drain_ns, 5 * NS_PER_S);
    case ERR_NOT_ENOUGH_SPACE: /* and here a person */
        return 30 * NS_PER_S;
    default:
        return 2 * NS_PER_S;
    }
}

unsigned reply_retry_after(enum err_code code, uint64_t drain_ns, struct rng *rng)
{
    if (err_http(code) != 503)
        return 0;
    uint64_t ms = MIN(retry_after_ns(code, drain_ns), RETRY_SECONDS_MAX * NS_PER_S) / NS_PER_MS;
    ms = MAX(ms, 1000u) * (80 + rng_below(rng, 41)) / 100;
    return (unsigned)MIN((ms + 999) / 1000, (uint64_t)RETRY_SECONDS_MAX);
}

void reply_error_text(const struct err *err, bool authenticated, struct strbuf *out)
{
    if (err->code == ERR_POCO_EXCEPTION) {
        strbuf_addf(out, "Poco::Exception. Code: 1000, e.code() = 0, %s", err->text);
    } else {
        size_t len = strlen(err->text);
        const char *stop = len > 0 && err->text[len - 1] == '.' ? "" : ".";
        strbuf_addf(out, "Code: %d. DB::Exception: %s%s (%s)", (int)err->code, err->text, stop, err_name(err->code));
    }
    if (authenticated)
        strbuf_add_text(out, " (version " SLUICE_ENGINE_VERSION ")");
    strbuf_add_char(out, '\n');
}

void reply_error(struct reply *reply, const struct err *err, bool authenticated, struct arena *arena)
{
    reply->status = err_http(err->code);
    strbuf_clear(&reply->body);
    reply_error_text(err, authenticated, &reply->body);
    reply_header(reply, "X-ClickHouse-Exception-Code", arena_printf(arena, "%d", (int)err->code));
    if (err->code == ERR_REQUIRED_PASSWORD)
        reply_header(reply, "WWW-Authenticate", "Basic realm=\"ClickHouse server HTTP API\"");
}

#define ZERO(name) "\"" name "\":\"0\""
static const char zero_summary[] =
    "{" ZERO("read_rows") "," ZERO("read_bytes") "," ZERO("written_rows") "," ZERO("written_bytes") "," ZERO(
        "total_rows_to_read") "," ZERO("result_rows") "," ZERO("result_bytes") "," ZERO("elapsed_ns") "," ZERO("memory_"
                                                                                                               "usage") "}";

void reply_summary(struct reply *reply, const struct reply_summary *summary, struct arena *arena)
{
    if (summary == NULL) {
        reply_header(reply, "X-ClickHouse-Summary", zero_summary);
        return;
    }
    reply_header(reply, "X-ClickHouse-Summary",
                 arena_printf(arena,
                              "{\"read_rows\":\"%llu\",\"read_bytes\":\"%llu\",\"written_rows\":\"%llu\","
                              "\"written_bytes\":\"%llu\",\"total_rows_to_read\":\"%llu\",\"result_rows\":\"%llu\","
                              "\"result_bytes\":\"%llu\",\"elapsed_ns\":\"%llu\",\"memory_usage\":\"0\"}",
                              (unsigned long long)summary->read_rows, (unsigned long long)summary->read_bytes,
                              (unsigned long long)summary->written_rows, (unsigned long long)summary->written_bytes,
                              (unsigned long long)summary->total_rows, (unsigned long long)summary->result_rows,
                              (unsigned long long)summary->result_bytes, (unsigned long long)summary->elapsed_ns));
}

void reply_progress(struct reply *reply, const struct reply_summary *summary, struct arena *arena)
{
    reply_header(reply, "X-ClickHouse-Progress",
                 arena_printf(arena,
                              "{\"read_rows\":\"%llu\",\"read_bytes\":\"%llu\",\"total_rows_to_read\":\"%llu\","
                              "\"elapsed_ns\":\"%llu\"}",
                              (unsigned long long)summary->read_rows, (unsigned long long)summary->read_bytes,
                              (unsigned long long)summary->total_rows, (unsigned long long)summary->elapsed_ns));
}

/* "gzip;q=0" drops a coding; any other weight takes it: the engine goes by its own order. */
static bool offers(struct str accept, struct str name)
{
    struct str rest = accept, piece;
    while (str_cut(&rest, ',', &piece)) {
        struct str word, weight = piece;
        if (!str_cut(&weight, ';', &word))
            continue;
        if (!str_eq_nocase(str_trim(word), name))
            continue;
        weight = str_trim(weight);
        double q = 1;
        if (str_starts_nocase(weight, STR("q=")) && !str_to_double(str_trim(str_from(weight, 2)), &q))
            q = 0;
        return q > 0;
    }
    return false;
}

struct str reply_pick_encoding(struct str accept_encoding)
{
    static const struct str order[] = { { "zstd", 4 }, { "br", 2 },      { "lz4", 3 }, { "snappy", 6 },
                                        { "gzip", 4 }, { "deflate", 7 }, { "xz", 2 } };
    if (accept_encoding.len == 0)
        return STR_EMPTY;
    for (size_t i = 0; i < ARRAY_COUNT(order); i++) {
        if (offers(accept_encoding, order[i]))
            return order[i];
    }
    return offers(accept_encoding, STR("*")) ? order[0] : STR_EMPTY;
}

bool reply_wants_openmetrics(struct str accept)
{
    double best_open = 0, best_text = 0;
    struct str rest = accept, piece;
    while (str_cut(&rest, ',', &piece)) {
        struct str parameters = piece, type, parameter;
        if (!str_cut(&parameters, ';', &type))
            continue;
        double q = 1;
        while (str_cut(&parameters, ';', &parameter)) {
            parameter = str_trim(parameter);
            if (str_starts_nocase(parameter, STR("q=")) && !str_to_double(str_from(parameter, 2), &q))
                q = 0;
        }
        type = str_trim(type);
        if (str_eq_nocase(type, STR("application/openmetrics-text")))
            best_open = MAX(best_open, q);
        else if (str_eq_nocase(type, STR("text/plain")) || str_is(type, "text/*") || str_is(type, "*/*"))
            best_text = MAX(best_text, q);
    }
    return best_open > 0 && best_open >= best_text;
}
