/* dlq_mem.c: dead letters in memory, for tests. Each letter has an arena of its own; they stand in order of id. */
#include <stdlib.h>

#include "base/list.h"
#include "base/sync.h"
#include "dlq/dlq.h"
#include "dlq/letter.h"

struct mem_letter {
    struct list link;
    struct arena *arena;
    struct letter letter;
};

struct dlq_mem {
    struct dlq dlq; /* first */
    struct mutex lock;
    struct clock *clock;
    struct list letters;
    uint64_t bytes_max, bytes, count, last_id;
};

static struct dlq_mem *mem_of(struct dlq *dlq)
{
    return (struct dlq_mem *)(void *)dlq;
}

static uint64_t letter_cost(const struct letter *letter)
{
    return sizeof(struct mem_letter) + letter->body.len + letter->query.len + letter->reason.len;
}

static void mem_letter_free(struct mem_letter *kept)
{
    arena_free(kept->arena);
    free(kept);
}

static bool mem_add(struct dlq *dlq, struct letter *letter, struct err *err)
{
    struct dlq_mem *mem = mem_of(dlq);
    struct mem_letter *kept = NEW(struct mem_letter);
    kept->arena = arena_new(1024);
    letter_copy(letter, true, kept->arena, &kept->letter);
    kept->letter.reason = str_sub(kept->letter.reason, 0, LETTER_REASON_MAX);
    kept->letter.body_bytes = letter->body.len;
    uint64_t cost = letter_cost(&kept->letter);
    mutex_lock(&mem->lock);
    bool fits = mem->bytes + cost <= mem->bytes_max;
    if (fits) {
        letter->id = kept->letter.id = ++mem->last_id;
        list_push_back(&mem->letters, &kept->link);
        mem->bytes += cost;
        mem->count++;
    }
    mutex_unlock(&mem->lock);
    if (fits)
        return true;
    mem_letter_free(kept);
    return err_set(err, ERR_NOT_ENOUGH_SPACE, "no room for another dead letter: %llu bytes are kept",
                   (unsigned long long)mem->bytes_max);
}

static size_t mem_add_many(struct dlq *dlq, struct letter *letters, size_t count, struct err *err)
{
    size_t added = 0;
    while (added < count && mem_add(dlq, &letters[added], err))
        added++;
    return added;
}

static bool mem_list(struct dlq *dlq, uint64_t after_id, size_t max, struct arena *arena, struct letter **letters,
                     size_t *count, struct err *err)
{
    struct dlq_mem *mem = mem_of(dlq);
    (void)err;
    *count = 0;
    mutex_lock(&mem->lock);
    size_t room = (size_t)MIN(mem->count, (uint64_t)max);
    *letters = ARENA_ARRAY(arena, struct letter, room);
    LIST_EACH (node, &mem->letters) {
        const struct mem_letter *kept = LIST_ENTRY(node, const struct mem_letter, link);
        if (kept->letter.id > after_id && *count < room)
            letter_copy(&kept->letter, false, arena, &(*letters)[(*count)++]);
    }
    mutex_unlock(&mem->lock);
    return true;
}

/* Under the lock. */
static struct mem_letter *find(struct dlq_mem *mem, uint64_t id)
{
    LIST_EACH (node, &mem->letters) {
        struct mem_letter *kept = LIST_ENTRY(node, struct mem_letter, link);
        if (kept->letter.id == id)
            return kept;
    }
    return NULL;
}

static bool mem_get(struct dlq *dlq, uint64_t id, struct arena *arena, struct letter *letter, struct err *err)
{
    struct dlq_mem *mem = mem_of(dlq);
    mutex_lock(&mem->lock);
    const struct mem_letter *kept = find(mem, id);
    if (kept != NULL)
        letter_copy(&kept->letter, true, arena, letter);
    mutex_unlock(&mem->lock);
    return kept != NULL || dlq_no_letter(id, err);
}

static bool mem_drop(struct dlq *dlq, uint64_t id, uint64_t *rows, struct err *err)
{
    struct dlq_mem *mem = mem_of(dlq);
    mutex_lock(&mem->lock);
    struct mem_letter *kept = find(mem, id);
    if (kept != NULL) {
        list_remove(&kept->link);
        mem->bytes -= letter_cost(&kept->letter);
        mem->count--;
    }
    mutex_unlock(&mem->lock);
    if (kept == NULL)
        return dlq_no_letter(id, err);
    if (rows != NULL)
        *rows = kept->letter.rows;
    mem_letter_free(kept);
    return true;
}

static bool mem_change(struct dlq *dlq, uint64_t id, dlq_edit_fn *edit, void *context, struct err *err)
{
    struct dlq_mem *mem = mem_of(dlq);
    mutex_lock(&mem->lock);
    struct mem_letter *kept = find(mem, id);
    if (kept != NULL) {
        struct letter edited = kept->letter;
        struct arena *arena = arena_new(1024);
        edit(context, &edited);
        mem->bytes -= letter_cost(&kept->letter);
        letter_copy(&edited, true, arena, &kept->letter);
        kept->letter.id = id;
        kept->letter.reason = str_sub(kept->letter.reason, 0, LETTER_REASON_MAX);
        kept->letter.body_bytes = edited.body.len;
        mem->bytes += letter_cost(&kept->letter);
        arena_free(kept->arena);
        kept->arena = arena;
    }
    mutex_unlock(&mem->lock);
    return kept != NULL || dlq_no_letter(id, err);
}

static void mem_stats(struct dlq *dlq, struct dlq_stats *stats)
{
    struct dlq_mem *mem = mem_of(dlq);
    mutex_lock(&mem->lock);
    *stats = (struct dlq_stats){ .letters = mem->count, .bytes = mem->bytes, .bytes_max = mem->bytes_max };
    if (mem->count > 0)
        stats->oldest_wall_ns = LIST_ENTRY(mem->letters.next, struct mem_letter, link)->letter.first_wall_ns;
    LIST_EACH (node, &mem->letters) {
        const struct letter *letter = &LIST_ENTRY(node, struct mem_letter, link)->letter;
        stats->rows += letter->rows;
        dlq_cause_came(&stats->causes, letter->code);
    }
    mutex_unlock(&mem->lock);
}

static uint64_t mem_step(struct dlq *dlq, uint64_t now_ns)
{
    (void)dlq;
    (void)now_ns;
    return UINT64_MAX;
}

static void mem_close(struct dlq *dlq)
{
    struct dlq_mem *mem = mem_of(dlq);
    LIST_EACH_SAFE (node, &mem->letters)
        mem_letter_free(LIST_ENTRY(node, struct mem_letter, link));
    mutex_fini(&mem->lock);
    free(mem);
}

struct dlq *dlq_mem_new(struct clock *clock, uint64_t bytes_max)
{
    struct dlq_mem *mem = NEW(struct dlq_mem);
    mutex_init(&mem->lock, LOCK_DLQ);
    list_init(&mem->letters);
    mem->clock = clock;
    mem->bytes_max = bytes_max;
    mem->dlq = (struct dlq){
        .add = mem_add,
        .add_many = mem_add_many,
        .list = mem_list,
        .get = mem_get,
        .drop = mem_drop,
        .change = mem_change,
        .stats = mem_stats,
        .step = mem_step,
        .close = mem_close,
    };
    return &mem->dlq;
}
