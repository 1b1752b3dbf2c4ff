/* client.c: one HTTP call with libcurl: no redirects, no proxy from the environment, HTTP/1.1. */
#include <curl/curl.h>
#include <stdio.h>

#include "base/text.h"
#include "cli/cli.h"

enum { REPLY_BYTES_MAX = 1 << 30 };

void cli_add_parameter(struct strbuf *parameters, const char *name, struct str value)
{
    if (parameters->len != 0)
        strbuf_add_char(parameters, '&');
    strbuf_add_text(parameters, name);
    strbuf_add_char(parameters, '=');
    text_url_encode(parameters, value);
}

void cli_add_name(struct strbuf *sql, struct str name)
{
    strbuf_add_char(sql, '`');
    for (size_t i = 0; i < name.len; i++) {
        if (name.data[i] == '`' || name.data[i] == '\\')
            strbuf_add_char(sql, '\\');
        strbuf_add_char(sql, name.data[i]);
    }
    strbuf_add_char(sql, '`');
}

void cli_add_text(struct strbuf *sql, struct str text)
{
    strbuf_add_char(sql, '\'');
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] == '\'' || text.data[i] == '\\')
            strbuf_add_char(sql, '\\');
        strbuf_add_char(sql, text.data[i]);
    }
    strbuf_add_char(sql, '\'');
}

static size_t take_body(char *data, size_t size, size_t count, void *context)
{
    struct reply *reply = context;
    strbuf_add_bytes(&reply->body, data, size * count);
    return strbuf_ok(&reply->body) ? size * count : 0;
}

static void copy_value(char *out, size_t bytes, struct str value)
{
    snprintf(out, bytes, STR_FMT, STR_ARG(value));
}

/* "written_rows":"12" of X-ClickHouse-Summary; 0 where it is not there. */
static uint64_t summary_number(struct str json, struct str key)
{
    uint64_t number = 0;
    ptrdiff_t at = str_find(json, key);
    struct str rest = at < 0 ? STR_EMPTY : str_from(json, (size_t)at + key.len), digits;
    if (str_cut(&rest, '"', &digits))
        (void)str_to_u64(digits, &number); /* stays 0 when it is none */
    return number;
}

static void take_summary(struct reply *reply, struct str json)
{
    reply->read_rows = summary_number(json, STR("\"read_rows\":\""));
    reply->written_rows = summary_number(json, STR("\"written_rows\":\""));
    reply->result_rows = summary_number(json, STR("\"result_rows\":\""));
}

static size_t take_header(char *data, size_t size, size_t count, void *context)
{
    struct reply *reply = context;
    struct str value = str_make(data, size * count), name;
    if (!str_cut(&value, ':', &name))
        return size * count;
    value = str_trim(value);
    if (str_eq_nocase(name, STR("X-Sluice-Ack")))
        copy_value(reply->ack, sizeof(reply->ack), value);
    else if (str_eq_nocase(name, STR("X-Sluice-Batch")))
        copy_value(reply->batch, sizeof(reply->batch), value);
    else if (str_eq_nocase(name, STR("X-ClickHouse-Query-Id")))
        copy_value(reply->query_id, sizeof(reply->query_id), value);
    else if (str_eq_nocase(name, STR("X-ClickHouse-Exception-Code")))
        copy_value(reply->exception_code, sizeof(reply->exception_code), value);
    else if (str_eq_nocase(name, STR("X-ClickHouse-Format")))
        copy_value(reply->format, sizeof(reply->format), value);
    else if (str_eq_nocase(name, STR("X-Sluice-Duplicate")))
        reply->duplicate = str_is(value, "1");
    else if (str_eq_nocase(name, STR("X-ClickHouse-Summary")))
        take_summary(reply, value);
    return size * count;
}

void cli_add_table_condition(struct cli *cli, struct strbuf *sql, struct str table)
{
    struct str database = cli->database != NULL ? str_of(cli->database) : STR("default");
    if (str_find_char(table, '.') != STR_NONE)
        (void)str_cut(&table, '.', &database);
    strbuf_add_text(sql, "database = ");
    cli_add_text(sql, database);
    strbuf_add_text(sql, " AND table = ");
    cli_add_text(sql, table);
}

static size_t read_file(char *data, size_t size, size_t count, void *context)
{
    size_t got = fread(data, 1, size * count, context);
    return ferror((FILE *)context) ? CURL_READFUNC_ABORT : got;
}

static struct curl_slist *request_headers(struct cli *cli, const struct call *call)
{
    struct curl_slist *headers = curl_slist_append(NULL, "Expect:");
    struct strbuf line = { 0 };
    if (cli->user != NULL || cli->password != NULL) {
        strbuf_addf(&line, "X-ClickHouse-User: %s", cli->user != NULL ? cli->user : "default");
        headers = curl_slist_append(headers, strbuf_cstr(&line));
        strbuf_clear(&line);
        strbuf_addf(&line, "X-ClickHouse-Key: %s", cli->password != NULL ? cli->password : "");
        headers = curl_slist_append(headers, strbuf_cstr(&line));
    }
    if (cli->database != NULL) {
        strbuf_clear(&line);
        strbuf_addf(&line, "X-ClickHouse-Database: %s", cli->database);
        headers = curl_slist_append(headers, strbuf_cstr(&line));
    }
    if (call->source == BODY_FILE)
        headers = curl_slist_append(headers, "Transfer-Encoding: chunked");
    strbuf_fini(&line);
    return headers;
}

static void set_body(CURL *curl, const struct call *call)
{
    if (call->source == BODY_FILE) {
        curl_easy_setopt(curl, CURLOPT_POST, 1L);
        curl_easy_setopt(curl, CURLOPT_READFUNCTION, read_file);
        curl_easy_setopt(curl, CURLOPT_READDATA, call->file);
    } else if (call->source == BODY_BYTES) {
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, call->bytes.data);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->bytes.len);
    }
    if (call->method != NULL)
        curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, call->method);
}

/* Why there is no answer, and what that means. A body that broke off is refused whole: nothing of it is stored. */
static void explain(CURL *curl, const struct call *call, CURLcode code, struct reply *reply)
{
    bool torn = call->source == BODY_FILE && ferror((FILE *)call->file);
    long request_bytes = 0;
    curl_easy_getinfo(curl, CURLINFO_REQUEST_SIZE, &request_bytes);
    if (torn)
        snprintf(reply->error, sizeof(reply->error), "cannot read what to insert; nothing was stored");
    else
        snprintf(reply->error, sizeof(reply->error), "%s: %s; %s", call->base, curl_easy_strerror(code),
                 request_bytes > 0 ? "it is not known whether that was done" : "is sluiced running there?");
}

/* base and the call's path as URL; unix:PATH instead of http://HOST:PORT is a socket. */
static void set_url(CURL *curl, const struct call *call)
{
    struct str base = str_of(call->base);
    if (str_starts(base, STR("unix:"))) {
        curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, call->base + STR("unix:").len);
        base = STR("http://localhost");
    }
    while (str_ends(base, STR("/")))
        base.len--;
    struct strbuf url = { 0 };
    strbuf_add(&url, base);
    strbuf_add_text(&url, call->path);
    if (call->parameters != NULL && call->parameters[0] != '\0')
        strbuf_addf(&url, "?%s", call->parameters);
    curl_easy_setopt(curl, CURLOPT_URL, strbuf_cstr(&url)); /* copies it */
    strbuf_fini(&url);
}

static int ask_whether_it_goes_on(void *context, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    const struct call *call = context;
    (void)a, (void)b, (void)c, (void)d;
    return call->goes_on(call->context) ? 0 : 1;
}

void cli_call(struct cli *cli, const struct call *call, struct reply *reply)
{
    *reply = (struct reply){ 0 };
    reply->body.limit = REPLY_BYTES_MAX;
    CURL *curl = curl_easy_init();
    must(curl != NULL);
    set_url(curl, call);
    struct curl_slist *headers = request_headers(cli, call);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    if (cli->ca_file != NULL)
        curl_easy_setopt(curl, CURLOPT_CAINFO, cli->ca_file);
    if (cli->cert_file != NULL)
        curl_easy_setopt(curl, CURLOPT_SSLCERT, cli->cert_file);
    if (cli->key_file != NULL)
        curl_easy_setopt(curl, CURLOPT_SSLKEY, cli->key_file);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, 5L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, call->timeout_s != 0 ? call->timeout_s : 300L);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, reply);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, reply);
    if (call->goes_on != NULL) {
        curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
        curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, ask_whether_it_goes_on);
        curl_easy_setopt(curl, CURLOPT_XFERINFODATA, call);
    }
    set_body(curl, call);
    CURLcode code = curl_easy_perform(curl);
    if (code == CURLE_OK)
        curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &reply->status);
    else
        explain(curl, call, code, reply);
    reply->stopped = code == CURLE_ABORTED_BY_CALLBACK;
    curl_slist_free_all(headers);
    curl_easy_cleanup(curl);
}

void reply_fini(struct reply *reply)
{
    strbuf_fini(&reply->body);
}

bool cli_statement(struct cli *cli, struct str statement, const char *parameters, struct reply *reply)
{
    struct call call = {
        .base = cli->url, .path = "/", .parameters = parameters, .source = BODY_BYTES, .bytes = statement
    };
    cli_call(cli, &call, reply);
    if (reply->status >= 200 && reply->status < 300)
        return true;
    if (reply->status == 0)
        cli_fail("%s", reply->error);
    else
        cli_fail(STR_FMT, STR_ARG(str_trim(strbuf_view(&reply->body))));
    reply_fini(reply);
    return false;
}
