/* crash_load.c: see crash.h. A client is a thread that has one insert on the way at a time. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "cli/crash.h"

enum { ANSWER_SECONDS_MAX = 60 };

void crash_world_init(struct crash_world *world, uint32_t senders)
{
    *world = (struct crash_world){ .senders = senders };
    mutex_init(&world->lock, LOCK_REQUEST);
    cond_init(&world->changed);
}

void crash_world_fini(struct crash_world *world)
{
    cond_fini(&world->changed);
    mutex_fini(&world->lock);
}

void crash_world_set(struct crash_world *world, uint16_t port, uint32_t life)
{
    mutex_lock(&world->lock);
    world->port = port;
    world->life = life;
    cond_broadcast(&world->changed);
    mutex_unlock(&world->lock);
}

void crash_world_end(struct crash_world *world)
{
    mutex_lock(&world->lock);
    world->ending = true;
    cond_broadcast(&world->changed);
    mutex_unlock(&world->lock);
}

bool crash_world_sending(struct crash_world *world)
{
    mutex_lock(&world->lock);
    bool sending = world->senders > 0;
    mutex_unlock(&world->lock);
    return sending;
}

/* What a client has to know before it sends; waits for a daemon. False: the end has come, and no daemon with it. */
struct view {
    uint16_t port;
    uint32_t life;
    bool ending, no_spool;
};
static bool look(struct crash_world *world, struct view *view)
{
    mutex_lock(&world->lock);
    while (world->port == 0 && !world->ending)
        cond_wait(&world->changed, &world->lock);
    *view =
        (struct view){ .port = world->port, .life = world->life, .ending = world->ending, .no_spool = world->no_spool };
    mutex_unlock(&world->lock);
    return view->port != 0;
}

static void note_no_spool(struct crash_world *world)
{
    mutex_lock(&world->lock);
    world->no_spool = true;
    mutex_unlock(&world->lock);
}

static void note_end(struct crash_world *world)
{
    mutex_lock(&world->lock);
    world->senders--;
    cond_broadcast(&world->changed);
    mutex_unlock(&world->lock);
}

static void add_rows(const struct crash_sender *sender, uint32_t sequence, const struct crash_plan *plan,
                     struct strbuf *body)
{
    for (unsigned piece = 0; piece < plan->pieces; piece++) {
        if (plan->poisoned && piece + 1 == plan->pieces)
            strbuf_add_text(body, "{\"client\":\"none\"}\n");
        else
            strbuf_addf(body, "{\"client\":%u,\"sequence\":%u,\"piece\":%u,\"pieces\":%u,\"value\":%llu}\n",
                        sender->number, sequence, piece, plan->pieces,
                        (unsigned long long)crash_value(sender->seed, sender->number, sequence, piece));
    }
}

static void add_parameters(const struct crash_sender *sender, uint32_t sequence, const struct crash_plan *plan,
                           enum crash_level level, struct strbuf *parameters)
{
    char token[CRASH_TOKEN_BYTES];
    cli_add_parameter(parameters, "query", STR("INSERT INTO crash_test FORMAT JSONEachRow"));
    cli_add_parameter(parameters, "wait_for_async_insert", level == CRASH_STORED ? STR("1") : STR("0"));
    if (level == CRASH_SPOOLED)
        cli_add_parameter(parameters, "sluice_ack", STR("spooled"));
    if (level == CRASH_BUFFERED)
        cli_add_parameter(parameters, "sluice_ack", STR("buffered"));
    if (!plan->retried)
        return;
    crash_token(sender->number, sequence, token);
    cli_add_parameter(parameters, "insert_deduplication_token", str_of(token));
}

/* 36 is what a level is refused with that the daemon is not set up for. */
static bool level_refused(const struct reply *reply, enum crash_level level)
{
    return level == CRASH_SPOOLED && reply->status == 400 && strcmp(reply->exception_code, "36") == 0;
}

static enum crash_level answer_level(const struct reply *reply)
{
    return strcmp(reply->ack, "stored") == 0    ? CRASH_STORED
           : strcmp(reply->ack, "spooled") == 0 ? CRASH_SPOOLED
                                                : CRASH_BUFFERED;
}

/* One attempt. False: another one may tell more. */
static bool attempt(const struct crash_sender *sender, uint32_t sequence, const struct crash_plan *plan,
                    const struct view *view, struct crash_insert *insert)
{
    struct cli cli = { 0 };
    struct strbuf url = { 0 }, parameters = { 0 }, body = { 0 };
    struct reply reply;
    enum crash_level level = plan->level == CRASH_SPOOLED && view->no_spool ? CRASH_STORED : plan->level;
    strbuf_addf(&url, "http://127.0.0.1:%u", view->port);
    add_rows(sender, sequence, plan, &body);
    add_parameters(sender, sequence, plan, level, &parameters);
    struct call call = { .base = strbuf_cstr(&url),
                         .path = "/",
                         .parameters = strbuf_cstr(&parameters),
                         .source = BODY_BYTES,
                         .bytes = strbuf_view(&body),
                         .timeout_s = ANSWER_SECONDS_MAX };
    cli_call(&cli, &call, &reply);
    sender->client->requests++;
    bool temporary = reply.status == 0 || reply.status == 408 || reply.status == 429 || reply.status >= 500;
    bool decided = !temporary;
    if (level_refused(&reply, level)) {
        note_no_spool(sender->world);
        decided = false;
    } else if (reply.status >= 200 && reply.status < 300) {
        insert->answer = CRASH_ACKNOWLEDGED;
        insert->level = (uint8_t)MIN(level, answer_level(&reply)); /* the better one: what was asked for was promised */
    } else if (!temporary || (reply.status == 503 && !plan->retried)) {
        insert->answer = CRASH_REFUSED; /* and final, since there was no attempt before it that may have been taken */
    }
    insert->life = view->life;
    insert->answered_ns = clock_mono_ns(clock_real());
    reply_fini(&reply);
    strbuf_fini(&url);
    strbuf_fini(&parameters);
    strbuf_fini(&body);
    return decided;
}

static struct crash_insert *add_insert(struct crash_client *client)
{
    if (client->count == client->cap) {
        client->cap = client->cap == 0 ? 1024 : 2 * client->cap;
        client->inserts = mem_realloc(client->inserts, client->cap * sizeof(*client->inserts));
    }
    struct crash_insert *insert = &client->inserts[client->count++];
    *insert = (struct crash_insert){ .answer = CRASH_UNKNOWN };
    return insert;
}

void *crash_send(void *context)
{
    const struct crash_sender *sender = context;
    struct view view;
    while (look(sender->world, &view) && !view.ending) {
        uint32_t sequence = (uint32_t)sender->client->count;
        struct crash_plan plan = crash_plan(sender->seed, sender->number, sequence);
        struct crash_insert *insert = add_insert(sender->client);
        while (!attempt(sender, sequence, &plan, &view, insert) && plan.retried && look(sender->world, &view))
            ;
    }
    note_end(sender->world);
    return NULL;
}
