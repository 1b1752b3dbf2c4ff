/* tokens.c: the deduplication window.
 *
 * An entry is known (in its kind's list, oldest first) or pending (in no list, owned by the insert that claimed it).
 * Claims of one insert are taken all together or not at all, so two inserts that share tokens cannot wait for each
 * other. */
#include "storage/tokens.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/map.h"
#include "base/sync.h"

enum { KINDS = 2, KEY_BYTES = 17 };
#define CLOCK_JUMP_NS (60 * (int64_t)NS_PER_S)
#define CLOCK_PAUSE_NS (3600 * NS_PER_S)

struct entry {
    struct list node;
    struct token_entry token;
    bool pending;
};

struct tokens {
    struct mutex lock; /* LOCK_TOKENS; guards all of it */
    struct cond decided;
    struct map entries;
    struct list known[KINDS];
    size_t known_count[KINDS];
    uint64_t window, window_s;
    bool clock_seen;
    int64_t clock_offset; /* wall - mono when last looked */
    uint64_t paused_until_mono_ns;
};

struct tokens *tokens_new(uint64_t window, uint64_t window_s)
{
    struct tokens *t = NEW(struct tokens);
    mutex_init(&t->lock, LOCK_TOKENS);
    cond_init(&t->decided);
    for (size_t i = 0; i < KINDS; i++)
        list_init(&t->known[i]);
    t->window = window;
    t->window_s = window_s;
    return t;
}

void tokens_free(struct tokens *t)
{
    if (t == NULL)
        return;
    size_t at = 0;
    struct str key;
    void *value;
    while (map_next(&t->entries, &at, &key, &value))
        free(value);
    map_fini(&t->entries);
    cond_fini(&t->decided);
    mutex_fini(&t->lock);
    free(t);
}

struct key {
    char bytes[KEY_BYTES];
};
static struct str key_of(struct key *key, struct hash128 identity, enum dedup_kind kind)
{
    key->bytes[0] = (char)kind;
    memcpy(key->bytes + 1, &identity, sizeof identity);
    return str_make(key->bytes, KEY_BYTES);
}

static struct entry *find(struct tokens *t, struct hash128 identity, enum dedup_kind kind)
{
    struct key key;
    return map_get(&t->entries, key_of(&key, identity, kind));
}

static void drop(struct tokens *t, struct entry *entry)
{
    struct key key;
    if (!entry->pending) {
        list_remove(&entry->node);
        t->known_count[entry->token.kind]--;
    }
    must(map_remove(&t->entries, key_of(&key, entry->token.identity, entry->token.kind)) == entry);
    free(entry);
}

static bool is_off(const struct tokens *t)
{
    return t->window == 0 || t->window_s == 0;
}

static void trim(struct tokens *t)
{
    for (size_t kind = 0; kind < KINDS; kind++)
        while (t->known_count[kind] > (is_off(t) ? 0 : t->window))
            drop(t, LIST_ENTRY(t->known[kind].next, struct entry, node));
}

/* True while ages cannot be trusted: the wall clock moved by more than a minute against the monotonic one, less than an
 * hour ago. */
static bool clock_jumped(struct tokens *t, uint64_t mono_ns, int64_t wall_ns)
{
    int64_t offset = (int64_t)((uint64_t)wall_ns - mono_ns);
    int64_t moved = (int64_t)((uint64_t)offset - (uint64_t)t->clock_offset);
    if (t->clock_seen && (moved > CLOCK_JUMP_NS || moved < -CLOCK_JUMP_NS))
        t->paused_until_mono_ns = mono_ns + CLOCK_PAUSE_NS;
    t->clock_seen = true;
    t->clock_offset = offset;
    return mono_ns < t->paused_until_mono_ns;
}

static void expire(struct tokens *t, uint64_t mono_ns, int64_t wall_ns)
{
    if (clock_jumped(t, mono_ns, wall_ns) || t->window_s > (uint64_t)INT64_MAX / NS_PER_S)
        return;
    int64_t window_ns = (int64_t)(t->window_s * NS_PER_S);
    for (size_t kind = 0; kind < KINDS; kind++)
        while (t->known_count[kind] > 0) {
            struct entry *oldest = LIST_ENTRY(t->known[kind].next, struct entry, node);
            if (wall_ns < oldest->token.wall_ns || wall_ns - oldest->token.wall_ns <= window_ns)
                break;
            drop(t, oldest);
        }
}

void tokens_limits(struct tokens *t, uint64_t window, uint64_t window_s)
{
    mutex_lock(&t->lock);
    t->window = window;
    t->window_s = window_s;
    trim(t);
    mutex_unlock(&t->lock);
}

static bool any_pending(struct tokens *t, const struct token_claim *claims, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct entry *entry = find(t, claims[i].identity, claims[i].kind);
        if (entry != NULL && entry->pending)
            return true;
    }
    return false;
}

static struct entry *put(struct tokens *t, struct hash128 identity, enum dedup_kind kind, bool pending)
{
    struct entry *entry = NEW(struct entry);
    struct key key;
    entry->token = (struct token_entry){ .identity = identity, .kind = kind };
    entry->pending = pending;
    must(map_put(&t->entries, key_of(&key, identity, kind), entry) == NULL);
    return entry;
}

void tokens_claim(struct tokens *t, struct token_claim *claims, size_t count)
{
    mutex_lock(&t->lock);
    while (any_pending(t, claims, count))
        cond_wait(&t->decided, &t->lock);
    for (size_t i = 0; i < count; i++) {
        claims[i].known = find(t, claims[i].identity, claims[i].kind) != NULL;
        if (!claims[i].known)
            put(t, claims[i].identity, claims[i].kind, true);
    }
    mutex_unlock(&t->lock);
}

static void make_known(struct tokens *t, struct entry *entry, uint64_t partition, int64_t wall_ns)
{
    entry->pending = false;
    entry->token.partition = partition;
    entry->token.wall_ns = wall_ns;
    list_push_back(&t->known[entry->token.kind], &entry->node);
    t->known_count[entry->token.kind]++;
}

void tokens_commit(struct tokens *t, const struct token_claim *claims, const uint64_t *partitions, size_t count,
                   uint64_t mono_ns, int64_t wall_ns)
{
    mutex_lock(&t->lock);
    for (size_t i = 0; i < count; i++) {
        if (claims[i].known)
            continue;
        struct entry *entry = find(t, claims[i].identity, claims[i].kind);
        must(entry != NULL && entry->pending);
        make_known(t, entry, partitions[i], wall_ns);
    }
    expire(t, mono_ns, wall_ns);
    trim(t);
    cond_broadcast(&t->decided);
    mutex_unlock(&t->lock);
}

void tokens_release(struct tokens *t, const struct token_claim *claims, size_t count)
{
    mutex_lock(&t->lock);
    for (size_t i = 0; i < count; i++) {
        if (claims[i].known)
            continue;
        struct entry *entry = find(t, claims[i].identity, claims[i].kind);
        must(entry != NULL && entry->pending);
        drop(t, entry);
    }
    cond_broadcast(&t->decided);
    mutex_unlock(&t->lock);
}

bool tokens_known(struct tokens *t, struct hash128 identity, enum dedup_kind kind)
{
    mutex_lock(&t->lock);
    struct entry *entry = find(t, identity, kind);
    bool known = entry != NULL && !entry->pending;
    mutex_unlock(&t->lock);
    return known;
}

static int compare_age(const void *a, const void *b)
{
    const struct token_entry *x = a, *y = b;
    if (x->wall_ns != y->wall_ns)
        return x->wall_ns < y->wall_ns ? -1 : 1;
    if (x->identity.hi != y->identity.hi)
        return x->identity.hi < y->identity.hi ? -1 : 1;
    return x->identity.lo < y->identity.lo ? -1 : x->identity.lo > y->identity.lo;
}

void tokens_load(struct tokens *t, struct token_entry *entries, size_t count, uint64_t mono_ns, int64_t wall_ns)
{
    if (count > 1)
        qsort(entries, count, sizeof *entries, compare_age);
    mutex_lock(&t->lock);
    for (size_t i = 0; i < count; i++) {
        struct entry *before = find(t, entries[i].identity, entries[i].kind);
        if (before != NULL) /* stored again once it was too old: the newer counts */
            drop(t, before);
        struct entry *entry = put(t, entries[i].identity, entries[i].kind, false);
        make_known(t, entry, entries[i].partition, entries[i].wall_ns);
    }
    expire(t, mono_ns, wall_ns);
    trim(t);
    mutex_unlock(&t->lock);
}

void tokens_expire(struct tokens *t, uint64_t mono_ns, int64_t wall_ns)
{
    mutex_lock(&t->lock);
    expire(t, mono_ns, wall_ns);
    mutex_unlock(&t->lock);
}

static void forget(struct tokens *t, bool all, uint64_t partition)
{
    mutex_lock(&t->lock);
    for (size_t kind = 0; kind < KINDS; kind++)
        LIST_EACH_SAFE (node, &t->known[kind]) {
            struct entry *entry = LIST_ENTRY(node, struct entry, node);
            if (all || entry->token.partition == partition)
                drop(t, entry);
        }
    mutex_unlock(&t->lock);
}

void tokens_forget(struct tokens *t)
{
    forget(t, true, 0);
}

void tokens_forget_partition(struct tokens *t, uint64_t partition)
{
    forget(t, false, partition);
}

size_t tokens_count(struct tokens *t)
{
    mutex_lock(&t->lock);
    size_t count = t->known_count[DEDUP_TOKEN] + t->known_count[DEDUP_CONTENT];
    mutex_unlock(&t->lock);
    return count;
}

int64_t tokens_oldest_wall_ns(struct tokens *t)
{
    int64_t oldest_ns = INT64_MAX;
    mutex_lock(&t->lock);
    for (size_t kind = 0; kind < KINDS; kind++)
        if (t->known_count[kind] > 0)
            oldest_ns = MIN(oldest_ns, LIST_ENTRY(t->known[kind].next, struct entry, node)->token.wall_ns);
    mutex_unlock(&t->lock);
    return oldest_ns == INT64_MAX ? 0 : oldest_ns;
}

void tokens_copy(struct tokens *t, struct token_entry **entries, size_t *count)
{
    mutex_lock(&t->lock);
    *count = 0;
    *entries = mem_alloc((t->known_count[DEDUP_TOKEN] + t->known_count[DEDUP_CONTENT]) * sizeof **entries);
    for (size_t kind = 0; kind < KINDS; kind++)
        LIST_EACH (node, &t->known[kind])
            (*entries)[(*count)++] = LIST_ENTRY(node, struct entry, node)->token;
    mutex_unlock(&t->lock);
}
