/* plan.h: what a request's URL and headers mean: user, database, settings and, for an INSERT, the shape. Cached, so
 * that a repeated statement costs one lookup.
 *
 * The key of the cache is the URL's parameters as sent, without those that differ from request to request (query_id,
 * tokens, ...), and the headers that matter. Each polling thread has its own cache, bounded by number and bytes: no
 * locks. A plan made before the last DDL statement is made again. Errors are not cached. */
#ifndef SLUICE_GATEWAY_PLAN_H
#define SLUICE_GATEWAY_PLAN_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "gateway/auth.h"
#include "gateway/settings_request.h"

struct request;
struct gateway;
struct rng;
struct rules;

struct plan {
    int refs; /* one polling thread, or one request: not atomic */
    uint64_t generation;
    struct arena *arena;
    struct settings_request settings;
    struct rules *rules; /* that it was made by; a reference, which user lives as long as */
    const struct config_user *user;
    struct str database;
    struct str output_format; /* header, else default_format; empty: none given */

    struct schema *loose_schema; /* of INSERT INTO FUNCTION null('structure') or a temporary table; else NULL */
    bool into_temporary;         /* ... the latter, of the request's session */
    struct shape *shape;         /* the statement is an INSERT that stands wholly before the data; else NULL */
    struct str with;             /* a WITH clause that stood before INSERT ... SELECT */
    bool is_select;              /* ... and what follows is no data but a SELECT, whose rows come as Native */
    struct str head;             /* the bytes of the body that are statement, where it stands there */
    struct str data_start;       /* data that stands in the URL, with its newline */
    struct plan *of_body;        /* on a plan without shape: the plan for bodies that begin with of_body->head */
    size_t cached_bytes;         /* while it is in the cache: what it counts there */
};

struct plans;
struct plans *plans_new(void);
void plans_free(struct plans *plans); /* NULL is fine */
/* Other rules are in force. */
void plans_forget(struct plans *plans);

/* The plan for the request, which gets a reference and its volatile parameters (query id, token).
 * request->authenticated says how far an error came, request->slow_password that identify_slowly() is the next step.
 * Errors: those of auth_check and of settings, UNKNOWN_DATABASE; of
 * plan_for_insert where the URL holds a whole INSERT. */
must_use bool plan_find(struct plans *plans, struct request *request, struct err *err);
/* The plan of an INSERT whose statement is the start of text (of its first max_query_size bytes), made from a plan
 * without shape. *data_offset: where the data, or the SELECT, starts. Errors: SYNTAX_ERROR, UNKNOWN_TABLE,
 * NO_SUCH_COLUMN_IN_TABLE, UNKNOWN_FORMAT, ACCESS_DENIED, settings.
 */
must_use bool plan_for_insert(struct request *request, const struct plan *from, struct str text, struct plan **plan,
                              size_t *data_offset, struct err *err);
/* of_body becomes what plan, without shape, has for bodies that begin with its head. */
void plan_keep_of_body(struct plans *plans, struct plan *plan, struct plan *of_body, struct rng *rng);
struct plan *plan_ref(struct plan *plan);
void plan_unref(struct plan *plan); /* NULL is fine */
#endif
