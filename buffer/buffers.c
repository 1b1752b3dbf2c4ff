/* buffers.c: inserts that wait to be written together.
 *
 * A struct slot is one batch on its way. It is in the heap of due times while OPEN or in BACKOFF:
 *
 *     OPEN --- due, full, command, memory, close ---> READY --- taken ---> TAKEN --- finish ---> gone
 *                                                       ^                    | retry
 *                                                       '---- due -- BACKOFF <
 *
 * Who is READY stands in the queue of its owner, which is one user's inserts into one table. Owners take turns, a batch
 * each, so that one with many batches does not keep the others waiting.
 *
 * A struct buffer is what is remembered of a shape: its pace, and the slot that is open, if any. Buffers without a
 * living slot are idle; the longest idle one is forgotten when there are too many.
 *
 * All is pointer work under one lock. What must be allocated for a new buffer is made outside it (struct fresh). */
#include "buffer/buffers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/sync.h"
#include "buffer/drain.h"
#include "buffer/ledger.h"
#include "buffer/pace.h"

enum { IDLE_MIN = 1024, SIZE_CLASSES = 65, KEPT_SHARE = 8, NOT_IN_HEAP = -1 };

enum slot_state { SLOT_OPEN, SLOT_READY, SLOT_BACKOFF, SLOT_TAKEN };

struct slot {
    struct batch batch; /* first: a batch is found back as its slot */
    struct buffer *buffer;
    enum slot_state state;
    bool alone; /* the pace expected no company */
    uint64_t order, due_ns, wait_ns;
    uint64_t cost; /* memory of its inserts, and limits.shape_bytes */
    uint64_t first_ns, last_ns;
    int64_t first_wall_ns, last_wall_ns;
    ptrdiff_t heap_at;
    struct list alive_link; /* buffers.alive */
    struct list user_link;  /* while open: user.open */
    struct list ready_link; /* while ready: owner.ready */
    struct list size_link;  /* while open: buffers.by_size[size_class] */
    unsigned size_class;
};

struct user {
    struct list link; /* buffers.users_list */
    struct list open; /* slots in order of opening */
    size_t open_count, buffers_count;
};

struct owner {
    struct list turn_link; /* buffers.turns while something is ready */
    struct list ready;     /* slots, the first to be taken first */
    size_t buffers_count, alive_count;
    uint64_t cost; /* of its slots */
};

struct buffer {
    struct shape *shape;
    struct user *user;
    struct owner *owner;
    struct pace pace;
    struct slot *open;
    size_t alive_count;    /* slots not finished */
    struct list idle_link; /* buffers.idle while none is alive */
};

/* A flush command that waits: how many slots opened before it are not finished. */
struct mark {
    struct list link;
    uint64_t id;
    size_t left;
    char *database, *table; /* "": any */
};

struct buffers {
    struct mutex lock; /* LOCK_BUFFERS; guards what follows but for the constants */
    struct cond flushed;
    struct buffers_limits limits;
    struct rng *rng;
    struct ledger *ledger;
    buffers_wake_fn *wake;
    void *wake_context;

    struct map by_key, users, owners; /* shape key -> struct buffer; user name -> struct user; owner_key() -> owner */
    struct list users_list, alive, idle, marks;
    struct list turns; /* owners of what is ready, in the order of their turns */
    size_t ready_count, owners_alive;
    struct drain drain;
    struct slot **heap; /* least (due_ns, order) first */
    size_t heap_count, heap_cap;
    struct list by_size[SIZE_CLASSES]; /* open slots by the bit length of their cost */
    uint64_t size_mask;                /* bit c - 1: by_size[c] is not empty */
    size_t open_count, idle_count, inserts, taken_count;
    uint64_t cost, open_cost, taken_cost;
    uint64_t sequence; /* orders slots and marks */
    uint64_t known_ns; /* when a caller of buffers_take_due means to come back; UINT64_MAX: nobody does */
    bool closed;
};

/* What buffers_put may need, made before the lock is taken again. */
struct fresh {
    struct slot *slot;
    struct buffer *buffer;
};

static struct slot *slot_of(struct batch *batch)
{
    return (struct slot *)(void *)batch;
}

/* ---- the heap of due times ---- */

static bool is_before(const struct slot *a, const struct slot *b)
{
    return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->order < b->order;
}

static void heap_set(struct buffers *b, size_t at, struct slot *slot)
{
    b->heap[at] = slot;
    slot->heap_at = (ptrdiff_t)at;
}

/* Puts slot where it belongs, the place `at` being free. */
static void heap_settle(struct buffers *b, size_t at, struct slot *slot)
{
    while (at > 0 && is_before(slot, b->heap[(at - 1) / 2])) {
        heap_set(b, at, b->heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= b->heap_count)
            break;
        if (child + 1 < b->heap_count && is_before(b->heap[child + 1], b->heap[child]))
            child++;
        if (!is_before(b->heap[child], slot))
            break;
        heap_set(b, at, b->heap[child]);
        at = child;
    }
    heap_set(b, at, slot);
}

static void heap_push(struct buffers *b, struct slot *slot)
{
    if (b->heap_count == b->heap_cap) {
        b->heap_cap = b->heap_cap == 0 ? 64 : 2 * b->heap_cap;
        b->heap = mem_realloc(b->heap, b->heap_cap * sizeof(struct slot *));
    }
    heap_settle(b, b->heap_count++, slot);
}

static void heap_remove(struct buffers *b, struct slot *slot)
{
    must(slot->heap_at != NOT_IN_HEAP && b->heap[slot->heap_at] == slot);
    size_t at = (size_t)slot->heap_at;
    struct slot *last = b->heap[--b->heap_count];
    slot->heap_at = NOT_IN_HEAP;
    if (last != slot)
        heap_settle(b, at, last);
}

/* UINT64_MAX when nothing waits. */
static uint64_t next_due_ns(const struct buffers *b)
{
    if (b->ready_count > 0)
        return 0;
    return b->heap_count == 0 ? UINT64_MAX : b->heap[0]->due_ns;
}

/* True when somebody has to be woken: the first due time is earlier than anybody means to look. */
static bool must_wake(struct buffers *b)
{
    if (next_due_ns(b) >= b->known_ns)
        return false;
    b->known_ns = next_due_ns(b);
    return true;
}

static void wake(struct buffers *b)
{
    if (b->wake != NULL)
        b->wake(b->wake_context);
}

/* ---- open slots by size ---- */

static unsigned size_class(uint64_t cost)
{
    return cost == 0 ? 0 : 64u - (unsigned)__builtin_clzll(cost);
}

static uint64_t size_bit(unsigned class)
{
    return class == 0 ? 0 : UINT64_C(1) << (class - 1);
}

static void size_leave(struct buffers *b, struct slot *slot)
{
    list_remove(&slot->size_link);
    if (list_empty(&b->by_size[slot->size_class]))
        b->size_mask &= ~size_bit(slot->size_class);
}

static void size_enter(struct buffers *b, struct slot *slot)
{
    slot->size_class = size_class(slot->cost);
    list_push_back(&b->by_size[slot->size_class], &slot->size_link);
    b->size_mask |= size_bit(slot->size_class);
}

/* An open slot that is at least half as large as the largest. */
static struct slot *largest_open(struct buffers *b)
{
    must(b->size_mask != 0);
    struct list *list = &b->by_size[64u - (unsigned)__builtin_clzll(b->size_mask)];
    return LIST_ENTRY(list->next, struct slot, size_link);
}

/* ---- sealing ---- */

/* From the heap to its owner's queue. */
static void make_ready(struct buffers *b, struct slot *slot)
{
    struct owner *owner = slot->buffer->owner;
    heap_remove(b, slot);
    slot->state = SLOT_READY;
    if (list_empty(&owner->ready))
        list_push_back(&b->turns, &owner->turn_link);
    list_push_back(&owner->ready, &slot->ready_link);
    b->ready_count++;
}

/* The first of the owner whose turn it is; NULL when nothing is ready. */
static struct slot *take_turn(struct buffers *b)
{
    if (list_empty(&b->turns))
        return NULL;
    struct owner *owner = LIST_ENTRY(b->turns.next, struct owner, turn_link);
    struct slot *slot = LIST_ENTRY(owner->ready.next, struct slot, ready_link);
    list_remove(&owner->turn_link);
    list_remove(&slot->ready_link);
    if (!list_empty(&owner->ready))
        list_push_back(&b->turns, &owner->turn_link);
    b->ready_count--;
    return slot;
}

/* From now on the members are fixed. */
static void seal(struct buffers *b, struct slot *slot, enum flush_trigger trigger, uint64_t now_ns)
{
    must(slot->state == SLOT_OPEN && slot->buffer->open == slot && slot->batch.inserts_count > 0);
    make_ready(b, slot);
    slot->buffer->open = NULL;
    slot->batch.trigger = trigger;
    slot->batch.sealed_ns = now_ns;
    size_leave(b, slot);
    list_remove(&slot->user_link);
    slot->buffer->user->open_count--;
    b->open_count--;
    b->open_cost -= slot->cost;
    slot->due_ns = MIN(slot->due_ns, now_ns);
}

/* The one that was opened first: it has had the most of its time. */
static struct slot *oldest_open(const struct user *user)
{
    must(user->open_count > 0);
    return LIST_ENTRY(user->open.next, struct slot, user_link);
}

/* One of the user who has the most open buffers. */
static struct slot *least_useful(struct buffers *b)
{
    struct user *worst = NULL;
    LIST_EACH (node, &b->users_list) {
        struct user *user = LIST_ENTRY(node, struct user, link);
        if (worst == NULL || user->open_count > worst->open_count)
            worst = user;
    }
    must(worst != NULL);
    return oldest_open(worst);
}

/* Above the line the largest go, down to three quarters of it. What is sealed already will leave by itself: to seal
 * more for its sake would only make small batches. */
static void relieve_pressure(struct buffers *b, uint64_t now_ns)
{
    uint64_t line = b->limits.pressure_bytes;
    while (line > 0 && b->cost > line && b->open_cost > line - line / 4)
        seal(b, largest_open(b), FLUSH_MEMORY, now_ns);
}

/* ---- buffers and users ---- */

static struct user *user_find(struct buffers *b, const struct shape *shape)
{
    struct user *user = map_get(&b->users, shape->user);
    if (user != NULL)
        return user;
    user = NEW(struct user);
    list_init(&user->open);
    map_put(&b->users, shape->user, user);
    list_push_back(&b->users_list, &user->link);
    return user;
}

static void owner_key(const struct shape *shape, struct strbuf *key)
{
    const struct str parts[] = { shape->user, shape->database, shape->table };
    for (size_t i = 0; i < ARRAY_COUNT(parts); i++) {
        strbuf_add(key, parts[i]);
        strbuf_add_char(key, '\0');
    }
}

static struct owner *owner_find(struct buffers *b, const struct shape *shape, bool make)
{
    struct strbuf key = { 0 };
    owner_key(shape, &key);
    struct owner *owner = map_get(&b->owners, strbuf_view(&key));
    if (owner == NULL && make) {
        owner = NEW(struct owner);
        list_init(&owner->turn_link);
        list_init(&owner->ready);
        map_put(&b->owners, strbuf_view(&key), owner);
    }
    strbuf_fini(&key);
    return owner;
}

static void owner_leave(struct buffers *b, const struct buffer *buffer)
{
    struct strbuf key = { 0 };
    if (--buffer->owner->buffers_count > 0)
        return;
    must(list_empty(&buffer->owner->ready) && buffer->owner->alive_count == 0 && buffer->owner->cost == 0);
    owner_key(buffer->shape, &key);
    must(map_remove(&b->owners, strbuf_view(&key)) == buffer->owner);
    strbuf_fini(&key);
    free(buffer->owner);
}

static void buffer_enter(struct buffers *b, struct buffer *buffer)
{
    map_put(&b->by_key, buffer->shape->key, buffer);
    buffer->owner = owner_find(b, buffer->shape, true);
    buffer->owner->buffers_count++;
    buffer->user = user_find(b, buffer->shape);
    buffer->user->buffers_count++;
    list_push_back(&b->idle, &buffer->idle_link);
    b->idle_count++;
}

/* Idle and forgotten; the caller frees it. */
static void buffer_leave(struct buffers *b, struct buffer *buffer)
{
    must(buffer->alive_count == 0 && buffer->open == NULL);
    list_remove(&buffer->idle_link);
    b->idle_count--;
    must(map_remove(&b->by_key, buffer->shape->key) == buffer);
    owner_leave(b, buffer);
    struct user *user = buffer->user;
    if (--user->buffers_count > 0)
        return;
    list_remove(&user->link);
    must(map_remove(&b->users, buffer->shape->user) == user);
    free(user);
}

static void buffer_free(struct buffer *buffer)
{
    if (buffer == NULL)
        return;
    shape_unref(buffer->shape);
    free(buffer);
}

static void slot_free(struct slot *slot)
{
    if (slot == NULL)
        return;
    shape_unref(slot->batch.shape);
    ranges_fini(&slot->batch.spooled);
    free(slot);
}

static void fresh_make(struct buffers *b, struct shape *shape, struct fresh *fresh)
{
    if (fresh->slot == NULL) {
        struct slot *slot = NEW(struct slot);
        slot->batch.shape = shape_ref(shape);
        list_init(&slot->batch.link);
        list_init(&slot->batch.inserts);
        rng_uuid4_text(b->rng, slot->batch.id);
        slot->heap_at = NOT_IN_HEAP;
        fresh->slot = slot;
    }
    if (fresh->buffer == NULL) {
        fresh->buffer = NEW(struct buffer);
        fresh->buffer->shape = shape_ref(shape);
        list_init(&fresh->buffer->idle_link);
        pace_init(&fresh->buffer->pace);
    }
}

/* ---- put ---- */

enum put_result { PUT_DONE, PUT_REFUSED, PUT_NEEDS_FRESH };

static void open_slot(struct buffers *b, struct buffer *buffer, struct slot *slot, uint64_t now_ns)
{
    const struct shape_limits *limits = &buffer->shape->limits;
    struct pace_limits pace_limits = { limits->wait_ns_min, limits->wait_ns_max, limits->adaptive };
    slot->buffer = buffer;
    slot->state = SLOT_OPEN;
    slot->order = ++b->sequence;
    slot->wait_ns = pace_wait_ns(&buffer->pace, &pace_limits);
    slot->alone = buffer->pace.alone;
    slot->due_ns = now_ns > UINT64_MAX - slot->wait_ns ? UINT64_MAX : now_ns + slot->wait_ns;
    slot->first_ns = slot->batch.opened_ns = now_ns;
    if (buffer->alive_count++ == 0) {
        list_remove(&buffer->idle_link);
        b->idle_count--;
    }
    b->owners_alive += buffer->owner->alive_count++ == 0;
    buffer->open = slot;
    b->open_count++;
    list_push_back(&b->alive, &slot->alive_link);
    list_push_back(&buffer->user->open, &slot->user_link);
    buffer->user->open_count++;
    slot->cost = b->limits.shape_bytes;
    b->cost += slot->cost;
    b->open_cost += slot->cost;
    buffer->owner->cost += slot->cost;
    size_enter(b, slot);
    heap_push(b, slot);
}

static void add_insert(struct buffers *b, struct slot *slot, struct insert *insert, uint64_t cost, uint64_t now_ns)
{
    if (slot->batch.inserts_count == 0)
        slot->first_wall_ns = insert->arrival_wall_ns;
    slot->last_ns = now_ns;
    slot->last_wall_ns = insert->arrival_wall_ns;
    list_push_back(&slot->batch.inserts, &insert->link);
    slot->batch.inserts_count++;
    slot->batch.bytes += insert->body_bytes;
    slot->cost += cost;
    slot->buffer->owner->cost += cost;
    ledger_taken(b->ledger, insert); /* within the lock: before anybody settles it */
    b->open_cost += cost;
    if (size_class(slot->cost) != slot->size_class) {
        size_leave(b, slot);
        size_enter(b, slot);
    }
    memcpy(insert->batch_id, slot->batch.id, sizeof(insert->batch_id));
    if (insert->batch_id_to != NULL)
        memcpy(insert->batch_id_to, slot->batch.id, sizeof(insert->batch_id));
}

static void seal_if_full(struct buffers *b, struct slot *slot, uint64_t now_ns)
{
    const struct shape_limits *limits = &slot->buffer->shape->limits;
    if (limits->bytes_max > 0 && slot->batch.bytes >= limits->bytes_max)
        seal(b, slot, FLUSH_BYTES, now_ns);
    else if (limits->inserts_max > 0 && slot->batch.inserts_count >= limits->inserts_max)
        seal(b, slot, FLUSH_INSERTS, now_ns);
}

static bool is_pressing(const struct buffers *b, uint64_t cost)
{
    return b->limits.pressure_bytes > 0 && b->cost + cost > b->limits.pressure_bytes;
}

/* Under pressure nobody has more than his share, so that the others find room. */
static bool within_share(const struct buffers *b, uint64_t has, uint64_t cost, struct err *err)
{
    uint64_t share = b->limits.total_bytes_max / (b->owners_alive + (has == 0));
    return has + cost <= share ||
           err_set(err, ERR_TOO_MANY_SIMULTANEOUS_QUERIES,
                   "Too many inserts wait: those of this user into this table take %llu bytes, with this one more than "
                   "their share of %llu",
                   (unsigned long long)has, (unsigned long long)share);
}

static uint64_t owner_cost(struct buffers *b, const struct shape *shape)
{
    const struct owner *owner = owner_find(b, shape, false);
    return owner == NULL ? 0 : owner->cost;
}

static bool may_put(struct buffers *b, const struct shape *shape, uint64_t cost, struct err *err)
{
    if (b->closed)
        return err_set(err, ERR_ABORTED, "The server is shutting down: nothing more is buffered");
    uint64_t max = b->limits.total_bytes_max;
    if (max == 0)
        return true;
    bool pressing = is_pressing(b, cost);
    uint64_t has = pressing ? owner_cost(b, shape) : 0, kept = max / KEPT_SHARE;
    if (pressing && has + cost > kept) /* what is kept is for one who comes, however many want what is given back */
        max -= kept;
    if (cost > max || b->cost > max - cost)
        return err_set(err, ERR_MEMORY_LIMIT_EXCEEDED,
                       "Memory limit (for inserts that wait) exceeded: %llu bytes wait, this insert needs %llu, the "
                       "maximum is %llu",
                       (unsigned long long)b->cost, (unsigned long long)cost, (unsigned long long)max);
    return !pressing || within_share(b, has, cost, err);
}

static void reserve_locked(struct buffers *b, uint64_t cost)
{
    b->inserts++;
    b->cost += cost;
}

/* The buffer of the shape, entered if it is new; *fresh has what that takes. */
static struct buffer *buffer_find(struct buffers *b, const struct shape *shape, struct fresh *fresh)
{
    struct buffer *buffer = map_get(&b->by_key, shape->key);
    if (buffer == NULL && fresh->buffer != NULL) {
        buffer = fresh->buffer;
        fresh->buffer = NULL;
        buffer_enter(b, buffer);
    }
    return buffer;
}

static enum put_result put_locked(struct buffers *b, struct insert *insert, uint64_t now_ns, bool reserved,
                                  struct fresh *fresh, struct err *err)
{
    uint64_t cost = insert_cost(insert);
    if (!reserved && !may_put(b, insert->shape, cost, err))
        return PUT_REFUSED;
    struct buffer *buffer = map_get(&b->by_key, insert->shape->key);
    bool opens = buffer == NULL || buffer->open == NULL;
    if (opens && (fresh->slot == NULL || (buffer == NULL && fresh->buffer == NULL)))
        return PUT_NEEDS_FRESH;
    buffer = buffer_find(b, insert->shape, fresh);
    if (!reserved)
        reserve_locked(b, cost);
    pace_arrival(&buffer->pace, now_ns);
    if (opens) {
        open_slot(b, buffer, fresh->slot, now_ns);
        fresh->slot = NULL;
    }
    struct slot *slot = buffer->open;
    add_insert(b, slot, insert, cost, now_ns);
    seal_if_full(b, slot, now_ns);
    if (b->closed && slot->state == SLOT_OPEN)
        seal(b, slot, FLUSH_SHUTDOWN, now_ns);
    if (opens && insert->user_buffers_max > 0 && buffer->user->open_count > insert->user_buffers_max)
        seal(b, oldest_open(buffer->user), FLUSH_MEMORY, now_ns);
    if (opens && b->limits.shapes_max > 0 && b->open_count > b->limits.shapes_max)
        seal(b, least_useful(b), FLUSH_MEMORY, now_ns);
    relieve_pressure(b, now_ns);
    return PUT_DONE;
}

static bool put(struct buffers *b, struct insert *insert, uint64_t now_ns, bool reserved, struct err *err)
{
    struct fresh fresh = { 0 };
    enum put_result result;
    bool sooner;
    must(insert->outcome == INSERT_PENDING);
    for (;;) {
        mutex_lock(&b->lock);
        result = put_locked(b, insert, now_ns, reserved, &fresh, err);
        sooner = must_wake(b);
        mutex_unlock(&b->lock);
        if (result != PUT_NEEDS_FRESH)
            break;
        fresh_make(b, insert->shape, &fresh);
    }
    if (sooner)
        wake(b);
    slot_free(fresh.slot);
    buffer_free(fresh.buffer);
    return result == PUT_DONE;
}

bool buffers_put(struct buffers *b, struct insert *insert, uint64_t now_ns, struct err *err)
{
    return put(b, insert, now_ns, false, err);
}

bool buffers_have_room(struct buffers *b, const struct shape *shape, uint64_t cost, struct err *err)
{
    mutex_lock(&b->lock);
    bool ok = may_put(b, shape, cost, err);
    mutex_unlock(&b->lock);
    uint64_t max = b->limits.total_bytes_max;
    if (!ok && err->code != ERR_ABORTED && cost > max)
        err_set(err, ERR_QUERY_IS_TOO_LARGE,
                "An insert of %llu bytes is larger than what all inserts may take (%llu bytes)",
                (unsigned long long)cost, (unsigned long long)max);
    return ok;
}

bool buffers_reserve(struct buffers *b, const struct insert *insert, struct err *err)
{
    uint64_t cost = insert_cost(insert);
    mutex_lock(&b->lock);
    bool ok = may_put(b, insert->shape, cost, err);
    if (ok)
        reserve_locked(b, cost);
    mutex_unlock(&b->lock);
    return ok;
}

void buffers_put_reserved(struct buffers *b, struct insert *insert, uint64_t now_ns)
{
    struct err never;
    must(put(b, insert, now_ns, true, &never));
}

void buffers_release(struct buffers *b, const struct insert *insert)
{
    mutex_lock(&b->lock);
    must(b->inserts > 0);
    b->inserts--;
    b->cost -= insert_cost(insert);
    mutex_unlock(&b->lock);
}

static void put_batch_locked(struct buffers *b, struct fresh *fresh, struct list *inserts, uint64_t now_ns)
{
    struct slot *slot = fresh->slot;
    struct buffer *buffer = buffer_find(b, slot->batch.shape, fresh);
    struct slot *open = buffer->open;
    open_slot(b, buffer, slot, now_ns);
    LIST_EACH_SAFE (node, inserts) {
        struct insert *insert = LIST_ENTRY(node, struct insert, link);
        list_remove(node);
        reserve_locked(b, insert_cost(insert));
        add_insert(b, slot, insert, insert_cost(insert), now_ns);
    }
    seal(b, slot, FLUSH_COMMAND, now_ns);
    buffer->open = open;
}

void buffers_put_batch(struct buffers *b, const char *id, struct list *inserts, struct ranges *spooled, uint64_t now_ns)
{
    struct fresh fresh = { 0 };
    must(!list_empty(inserts));
    fresh_make(b, LIST_ENTRY(inserts->next, struct insert, link)->shape, &fresh);
    snprintf(fresh.slot->batch.id, sizeof(fresh.slot->batch.id), "%s", id);
    fresh.slot->batch.spooled = *spooled;
    *spooled = (struct ranges){ 0 };
    mutex_lock(&b->lock);
    put_batch_locked(b, &fresh, inserts, now_ns);
    bool sooner = must_wake(b);
    mutex_unlock(&b->lock);
    if (sooner)
        wake(b);
    buffer_free(fresh.buffer);
}

/* ---- take, finish, retry ---- */

static void ready_what_is_due(struct buffers *b, uint64_t now_ns)
{
    while (b->heap_count > 0 && b->heap[0]->due_ns <= now_ns) {
        struct slot *slot = b->heap[0];
        bool alone = slot->alone && slot->batch.inserts_count == 1;
        if (slot->state == SLOT_OPEN)
            seal(b, slot, alone ? FLUSH_ALONE : FLUSH_TIME, now_ns);
        else
            make_ready(b, slot);
    }
}

static struct slot *take_locked(struct buffers *b, uint64_t now_ns, uint64_t *again_ns)
{
    ready_what_is_due(b, now_ns);
    struct slot *slot = take_turn(b);
    if (slot == NULL) {
        *again_ns = b->known_ns = next_due_ns(b);
        return NULL;
    }
    slot->state = SLOT_TAKEN;
    if (slot->batch.sealed_ns == 0)
        slot->batch.sealed_ns = now_ns;
    b->taken_count++;
    b->taken_cost += slot->cost;
    *again_ns = now_ns;
    b->known_ns = UINT64_MAX; /* the caller is busy now; somebody else has to look at what is next */
    return slot;
}

struct batch *buffers_take_due(struct buffers *b, uint64_t now_ns, uint64_t *again_ns)
{
    mutex_lock(&b->lock);
    struct slot *slot = take_locked(b, now_ns, again_ns);
    bool others = slot != NULL && must_wake(b);
    mutex_unlock(&b->lock);
    if (others)
        wake(b);
    return slot == NULL ? NULL : &slot->batch;
}

static bool in_table(const struct slot *slot, struct str database, struct str table)
{
    const struct shape *shape = slot->batch.shape;
    return database.len == 0 || (str_eq(shape->database, database) && (table.len == 0 || str_eq(shape->table, table)));
}

static void mark_free(struct mark *mark)
{
    free(mark->database);
    free(mark->table);
    free(mark);
}

/* Marks that waited for this slot wait for one less. */
static void settle_marks(struct buffers *b, const struct slot *slot)
{
    LIST_EACH_SAFE (node, &b->marks) {
        struct mark *mark = LIST_ENTRY(node, struct mark, link);
        if (slot->order > mark->id || !in_table(slot, str_of(mark->database), str_of(mark->table)))
            continue;
        if (--mark->left > 0)
            continue;
        list_remove(&mark->link);
        mark_free(mark);
        cond_broadcast(&b->flushed);
    }
}

void batch_finish(struct buffers *b, struct batch *batch, uint64_t now_ns, uint64_t cost_ns, bool stored)
{
    struct slot *slot = slot_of(batch);
    struct buffer *buffer = slot->buffer, *forgotten = NULL;
    must(list_empty(&batch->inserts));
    mutex_lock(&b->lock);
    must(slot->state == SLOT_TAKEN);
    list_remove(&slot->alive_link);
    b->inserts -= batch->inserts_count;
    b->cost -= slot->cost;
    b->taken_count--;
    b->taken_cost -= slot->cost;
    buffer->owner->cost -= slot->cost;
    b->owners_alive -= --buffer->owner->alive_count == 0;
    drain_done(&b->drain, now_ns, slot->cost);
    settle_marks(b, slot);
    if (stored)
        pace_flushed(&buffer->pace, &(struct pace_flush){
                                        .cost_ns = cost_ns,
                                        .inserts = batch->inserts_count,
                                        .open_ns = MIN(slot->wait_ns, slot->due_ns - MIN(slot->first_ns, slot->due_ns)),
                                        .spread_ns = slot->last_ns - MIN(slot->first_ns, slot->last_ns) });
    if (--buffer->alive_count == 0) {
        list_push_back(&b->idle, &buffer->idle_link);
        if (++b->idle_count > MAX(b->limits.shapes_max, (uint64_t)IDLE_MIN)) {
            forgotten = LIST_ENTRY(b->idle.next, struct buffer, idle_link);
            buffer_leave(b, forgotten);
        }
    }
    mutex_unlock(&b->lock);
    buffer_free(forgotten);
    slot_free(slot);
}

void batch_retry(struct buffers *b, struct batch *batch, uint64_t retry_at_ns)
{
    struct slot *slot = slot_of(batch);
    mutex_lock(&b->lock);
    must(slot->state == SLOT_TAKEN);
    slot->state = SLOT_BACKOFF;
    slot->due_ns = batch->retry_at_ns = retry_at_ns;
    b->taken_count--;
    b->taken_cost -= slot->cost;
    heap_push(b, slot);
    bool sooner = must_wake(b);
    mutex_unlock(&b->lock);
    if (sooner)
        wake(b);
}

/* ---- flush, close ---- */

static char *name_copy(struct str name)
{
    char *copy = mem_alloc(name.len + 1);
    memcpy(copy, name.data, name.len);
    copy[name.len] = '\0';
    return copy;
}

uint64_t buffers_flush(struct buffers *b, struct str database, struct str table, enum flush_trigger trigger)
{
    struct mark *mark = NEW(struct mark);
    mark->database = name_copy(database);
    mark->table = name_copy(table);
    mutex_lock(&b->lock);
    uint64_t id = mark->id = ++b->sequence;
    LIST_EACH (node, &b->alive) {
        struct slot *slot = LIST_ENTRY(node, struct slot, alive_link);
        if (!in_table(slot, database, table))
            continue;
        mark->left++;
        if (slot->state == SLOT_OPEN)
            seal(b, slot, trigger, 0);
    }
    if (mark->left > 0) {
        list_push_back(&b->marks, &mark->link);
        mark = NULL;
    }
    bool sooner = must_wake(b);
    mutex_unlock(&b->lock);
    if (mark != NULL)
        mark_free(mark);
    if (sooner)
        wake(b);
    return id;
}

static bool flushed_locked(const struct buffers *b, uint64_t id)
{
    LIST_EACH (node, &b->marks)
        if (LIST_ENTRY(node, struct mark, link)->id == id)
            return false;
    return true;
}

bool buffers_flushed(struct buffers *b, uint64_t mark)
{
    mutex_lock(&b->lock);
    bool flushed = flushed_locked(b, mark);
    mutex_unlock(&b->lock);
    return flushed;
}

bool buffers_wait_flushed(struct buffers *b, uint64_t mark, uint64_t deadline_ns)
{
    bool in_time = true, flushed;
    mutex_lock(&b->lock);
    while (!(flushed = flushed_locked(b, mark)) && in_time)
        in_time = cond_wait_until(&b->flushed, &b->lock, deadline_ns);
    mutex_unlock(&b->lock);
    return flushed;
}

void buffers_close(struct buffers *b)
{
    mutex_lock(&b->lock);
    b->closed = true;
    LIST_EACH (node, &b->alive) {
        struct slot *slot = LIST_ENTRY(node, struct slot, alive_link);
        if (slot->state == SLOT_OPEN)
            seal(b, slot, FLUSH_SHUTDOWN, 0);
        else if (slot->state == SLOT_BACKOFF)
            make_ready(b, slot);
    }
    bool sooner = must_wake(b);
    mutex_unlock(&b->lock);
    if (sooner)
        wake(b);
}

/* ---- what others may see ---- */

void buffers_get_stats(struct buffers *b, struct buffers_stats *stats)
{
    mutex_lock(&b->lock);
    *stats = (struct buffers_stats){
        .shapes = b->open_count,
        .inserts = b->inserts,
        .bytes = b->cost,
        .bytes_max = b->limits.total_bytes_max - b->limits.total_bytes_max / KEPT_SHARE,
        .in_flight_batches = b->taken_count,
        .in_flight_bytes = b->taken_cost,
    };
    if (!list_empty(&b->alive))
        stats->oldest_ns = LIST_ENTRY(b->alive.next, struct slot, alive_link)->first_ns;
    mutex_unlock(&b->lock);
}

uint64_t buffers_drain_ns(struct buffers *b, uint64_t now_ns)
{
    mutex_lock(&b->lock);
    uint64_t time_ns = drain_time_ns(&b->drain, now_ns, b->cost);
    mutex_unlock(&b->lock);
    return time_ns;
}

void buffers_each(struct buffers *b, void (*each)(void *context, const struct buffer_info *info), void *context)
{
    mutex_lock(&b->lock);
    LIST_EACH (node, &b->alive) {
        const struct slot *slot = LIST_ENTRY(node, struct slot, alive_link);
        if (slot->state == SLOT_TAKEN)
            continue;
        struct buffer_info info = {
            .shape = slot->batch.shape,
            .first_ns = slot->first_ns,
            .last_ns = slot->last_ns,
            .due_ns = slot->due_ns,
            .bytes = slot->batch.bytes,
            .inserts = slot->batch.inserts_count,
            .wait_ns = slot->wait_ns,
            .first_wall_ns = slot->first_wall_ns,
            .last_wall_ns = slot->last_wall_ns,
            .batch_id = slot->batch.id,
            .members = &slot->batch.inserts,
        };
        each(context, &info);
    }
    mutex_unlock(&b->lock);
}

void buffers_each_wait(struct buffers *b, void (*each)(void *context, const struct shape *shape, uint64_t wait_ns),
                       void *context)
{
    size_t at = 0;
    struct str key;
    void *value;
    mutex_lock(&b->lock);
    while (map_next(&b->by_key, &at, &key, &value)) {
        const struct buffer *buffer = value;
        each(context, buffer->shape, buffer->pace.wait_ns);
    }
    mutex_unlock(&b->lock);
}

/* ---- life ---- */

struct buffers *buffers_new(const struct buffers_limits *limits, struct rng *rng, struct ledger *ledger,
                            buffers_wake_fn *wake_fn, void *context)
{
    struct buffers *b = NEW(struct buffers);
    b->ledger = ledger;
    mutex_init(&b->lock, LOCK_BUFFERS);
    cond_init(&b->flushed);
    b->limits = *limits;
    b->rng = rng;
    b->wake = wake_fn;
    b->wake_context = context;
    b->known_ns = UINT64_MAX;
    list_init(&b->users_list);
    list_init(&b->alive);
    list_init(&b->idle);
    list_init(&b->marks);
    list_init(&b->turns);
    for (size_t i = 0; i < SIZE_CLASSES; i++)
        list_init(&b->by_size[i]);
    return b;
}

void buffers_free(struct buffers *b)
{
    if (b == NULL)
        return;
    must(list_empty(&b->alive) && list_empty(&b->marks));
    while (!list_empty(&b->idle)) {
        struct buffer *buffer = LIST_ENTRY(b->idle.next, struct buffer, idle_link);
        buffer_leave(b, buffer);
        buffer_free(buffer);
    }
    map_fini(&b->by_key);
    map_fini(&b->users);
    map_fini(&b->owners);
    free(b->heap);
    cond_fini(&b->flushed);
    mutex_fini(&b->lock);
    free(b);
}
