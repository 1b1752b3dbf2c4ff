#include "tests/support/sink_script.h"

#include <string.h>

static struct sink_script *script_of(struct sink *sink)
{
    return (struct sink_script *)(void *)sink;
}

static void store(struct sink_script *s, struct insert *insert)
{
    struct str body = str_make(insert->body, insert->body_bytes);
    if (s->bad_text != NULL && str_find(body, str_of(s->bad_text)) != STR_NONE) {
        insert->outcome = INSERT_REJECTED;
        insert->error_row = 1;
        memcpy(insert->error_column, "a", 2);
        err_set(&insert->err, s->bad_code, "bad text in the body");
        return;
    }
    insert->outcome = INSERT_STORED;
    for (size_t i = 0; i < body.len; i++)
        insert->rows += body.data[i] == '\n';
    insert->rows_bytes = body.len;
    s->stored++;
    strbuf_add(&s->bodies, body);
    if (insert->token != NULL) {
        uintptr_t before = (uintptr_t)map_get(&s->tokens, str_of(insert->token));
        map_put(&s->tokens, str_of(insert->token), (void *)(before + 1));
    }
}

static bool script_write(struct sink *sink, struct batch *batch, struct err *err)
{
    struct sink_script *s = script_of(sink);
    if (s->on_write != NULL)
        s->on_write(s->context, batch);
    pthread_mutex_lock(&s->lock);
    s->writes++;
    strbuf_addf(&s->batches, "%s\n", batch->id);
    strbuf_addf(&s->triggers, "%s\n", flush_trigger_name(batch->trigger));
    bool fails = s->fail_times > 0 || (s->fail_every > 0 && s->writes % s->fail_every == 0);
    s->fail_times -= s->fail_times > 0;
    size_t count = 0, decided = 0;
    LIST_EACH (node, &batch->inserts) {
        struct insert *insert = LIST_ENTRY(node, struct insert, link);
        count++;
        if (insert->outcome == INSERT_PENDING && (!fails || decided++ < s->fail_after))
            store(s, insert);
    }
    must(count == batch->inserts_count);
    pthread_mutex_unlock(&s->lock);
    return !fails || err_set(err, s->fail_code, "the script says no");
}

void sink_script_init(struct sink_script *s)
{
    *s = (struct sink_script){ .sink = { "script", script_write } };
    must(pthread_mutex_init(&s->lock, NULL) == 0);
}

void sink_script_fini(struct sink_script *s)
{
    map_fini(&s->tokens);
    strbuf_fini(&s->batches);
    strbuf_fini(&s->triggers);
    strbuf_fini(&s->bodies);
    must(pthread_mutex_destroy(&s->lock) == 0);
}

unsigned sink_script_stored(struct sink_script *s, const char *token)
{
    pthread_mutex_lock(&s->lock);
    uintptr_t times = (uintptr_t)map_get(&s->tokens, str_of(token));
    pthread_mutex_unlock(&s->lock);
    return (unsigned)times;
}
