/* running.c: see running.h. */
#include "gateway/running.h"

#include <stdlib.h>

#include "base/list.h"
#include "base/sync.h"
#include "gateway/request.h"

struct running {
    struct mutex lock;   /* LOCK_CACHE; guards the list */
    struct list entries; /* struct request, by job, which the pool has let go of */
    struct cond left;
};

struct running *running_new(void)
{
    struct running *running = NEW(struct running);
    mutex_init(&running->lock, LOCK_CACHE);
    cond_init(&running->left);
    list_init(&running->entries);
    return running;
}

void running_free(struct running *running)
{
    if (running == NULL)
        return;
    must(list_empty(&running->entries));
    cond_fini(&running->left);
    mutex_fini(&running->lock);
    free(running);
}

/* With the lock held; NULL: none. */
static struct request *find(struct running *running, struct str query_id)
{
    LIST_EACH (node, &running->entries) {
        struct request *request = LIST_ENTRY(node, struct request, job);
        if (str_is(query_id, request->query_id))
            return request;
    }
    return NULL;
}

bool running_add(struct running *running, struct request *request, struct err *err)
{
    mutex_lock(&running->lock);
    bool fresh = find(running, str_of(request->query_id)) == NULL;
    if (fresh)
        list_push_back(&running->entries, &request->job);
    mutex_unlock(&running->lock);
    return fresh || err_set(err, ERR_QUERY_WITH_SAME_ID_IS_ALREADY_RUNNING, "Query with id = %s is already running",
                            request->query_id);
}

void running_remove(struct running *running, struct request *request)
{
    mutex_lock(&running->lock);
    list_remove(&request->job);
    cond_broadcast(&running->left);
    mutex_unlock(&running->lock);
}

void running_each(struct running *running, void (*each)(void *context, const struct request *request), void *context)
{
    mutex_lock(&running->lock);
    LIST_EACH (node, &running->entries)
        each(context, LIST_ENTRY(node, const struct request, job));
    mutex_unlock(&running->lock);
}

bool running_cancel(struct running *running, struct str query_id)
{
    mutex_lock(&running->lock);
    struct request *request = find(running, query_id);
    if (request != NULL)
        atomic_store_explicit(&request->cancel, true, memory_order_relaxed);
    mutex_unlock(&running->lock);
    return request != NULL;
}

bool running_wait_gone(struct running *running, struct str query_id, uint64_t mono_ns)
{
    bool gone;
    mutex_lock(&running->lock);
    for (bool in_time = true; !(gone = find(running, query_id) == NULL) && in_time;)
        in_time = cond_wait_until(&running->left, &running->lock, mono_ns);
    mutex_unlock(&running->lock);
    return gone;
}
