/* sink_script.h: a sink that does what the test says and remembers what it was given.
 *
 * Without a word it stores: every insert gets INSERT_STORED and one row for each newline. Any thread. */
#ifndef SLUICE_TESTS_SUPPORT_SINK_SCRIPT_H
#define SLUICE_TESTS_SUPPORT_SINK_SCRIPT_H
#include <pthread.h>

#include "base/map.h"
#include "buffer/sink.h"

struct sink_script {
    struct sink sink;
    pthread_mutex_t lock;
    unsigned fail_times; /* so many writes fail as a whole, */
    enum err_code fail_code;
    unsigned fail_after;  /* inserts that are decided before that */
    unsigned fail_every;  /* and so does every n-th one; 0: none */
    const char *bad_text; /* an insert whose body holds this is rejected */
    enum err_code bad_code;
    void (*on_write)(void *context, struct batch *batch); /* before anything else; may move the clock */
    void *context;

    unsigned writes;        /* attempts so far */
    uint64_t stored;        /* inserts */
    struct map tokens;      /* of stored inserts -> how often, as a pointer */
    struct strbuf batches;  /* ids of all attempts, a line each */
    struct strbuf triggers; /* names of them, a line each */
    struct strbuf bodies;   /* of stored inserts, one after the other */
};
void sink_script_init(struct sink_script *s);
void sink_script_fini(struct sink_script *s);
/* How often an insert with this token was stored. */
unsigned sink_script_stored(struct sink_script *s, const char *token);
#endif
