/* table_log.c: a table's tokens.log: appended to in the background, written anew when it has grown or when its end is
 * not to be trusted. One writer at a time, by table_log_begin. */
#include <stdlib.h>

#include "base/log.h"
#include "storage/table_impl.h"

enum { RECORDS_KEPT = 20000 };
static const char log_name[] = "tokens.log";

void table_log_begin(struct table *t)
{
    mutex_lock(&t->write);
    while (t->log_busy)
        cond_wait(&t->changed, &t->write);
    t->log_busy = true;
    mutex_unlock(&t->write);
}

void table_log_end(struct table *t)
{
    mutex_lock(&t->write);
    must(t->log_busy);
    t->log_busy = false;
    cond_broadcast(&t->changed);
    mutex_unlock(&t->write);
}

void table_log_add_part(struct strbuf *records, size_t *count, const struct part *part)
{
    uint64_t partition = tokens_partition(part->partition.dir);
    for (size_t i = 0; i < part->tokens_count; i++) {
        const struct part_token *token = &part->tokens[i];
        struct tokens_log_record record = { .kind = token->kind == DEDUP_TOKEN ? TOKENS_LOG_TOKEN : TOKENS_LOG_CONTENT,
                                            .identity = token->identity,
                                            .wall_ns = token->wall_ns,
                                            .partition = partition };
        tokens_log_add(records, &record);
        ++*count;
    }
    if (part->flush_count > 1) {
        struct tokens_log_record record = { .kind = TOKENS_LOG_FLUSH, .identity = part->flush_id };
        tokens_log_add(records, &record);
        ++*count;
    }
}

static bool append(struct table *t, struct str bytes, struct err *err)
{
    struct fs *fs = t->env->fs;
    struct strbuf path = table_path(t, "_sluice", log_name);
    struct fs_file *file = NULL;
    bool ok =
        fs_append_to(fs, strbuf_cstr(&path), &file, err) && fs_append(fs, file, bytes, err) && fs_sync(fs, file, err);
    ok = fs_finish(fs, &file, ok, err);
    strbuf_fini(&path);
    return ok;
}

/* Everything that has to be in the log beside `records`: what is known, and the flushes whose files are there. */
static void add_all(struct table *t, struct strbuf *out, uint64_t *count)
{
    struct token_entry *entries = NULL;
    size_t entries_count = 0, flushes = 0;
    for (size_t i = 0; i < t->cuts_count; i++) /* first: a cut holds for what stands before it */
        tokens_log_add(out, &t->cuts[i]);
    tokens_copy(t->tokens, &entries, &entries_count);
    for (size_t i = 0; i < entries_count; i++) {
        struct tokens_log_record record = { .kind =
                                                entries[i].kind == DEDUP_TOKEN ? TOKENS_LOG_TOKEN : TOKENS_LOG_CONTENT,
                                            .identity = entries[i].identity,
                                            .wall_ns = entries[i].wall_ns,
                                            .partition = entries[i].partition };
        tokens_log_add(out, &record);
    }
    free(entries);
    mutex_lock(&t->lock);
    for (size_t i = 0; i < t->current->count + t->old_count; i++) {
        const struct part *part = i < t->current->count ? t->current->parts[i] : t->old[i - t->current->count];
        if (part->flush_count <= 1)
            continue;
        struct tokens_log_record record = { .kind = TOKENS_LOG_FLUSH, .identity = part->flush_id };
        tokens_log_add(out, &record);
        flushes++;
    }
    mutex_unlock(&t->lock);
    *count = t->cuts_count + entries_count + flushes;
}

void table_log_all(struct table *t, struct strbuf *out)
{
    uint64_t ignored = 0;
    tokens_log_add_header(out);
    add_all(t, out, &ignored);
}

bool table_log_rewrite(struct table *t, const struct strbuf *records, size_t count, struct err *err)
{
    struct strbuf bytes = { 0 };
    uint64_t all = 0;
    struct strbuf dir = table_path(t, "_sluice", "");
    tokens_log_add_header(&bytes);
    add_all(t, &bytes, &all);
    strbuf_add(&bytes, strbuf_view(records));
    bool ok = fs_write_durably(t->env->fs, strbuf_cstr(&dir), log_name, strbuf_view(&bytes), true, err);
    strbuf_fini(&bytes);
    strbuf_fini(&dir);
    if (ok) {
        t->log_records = all + count;
        t->log_broken = false;
    } else {
        t->log_broken = true;
        err_wrap(err, "write %s of table %s", log_name, t->full_name);
    }
    return ok;
}

bool table_log_mend(struct table *t, struct err *err)
{
    struct strbuf none = { 0 };
    return !t->log_broken || table_log_rewrite(t, &none, 0, err);
}

bool table_log_append(struct table *t, const struct strbuf *records, size_t count, struct err *err)
{
    if (count == 0)
        return true;
    if (t->log_broken || t->log_records == 0 || t->log_records + count > RECORDS_KEPT + 4 * tokens_count(t->tokens))
        return table_log_rewrite(t, records, count, err);
    if (append(t, strbuf_view(records), err)) {
        t->log_records += count;
        return true;
    }
    t->log_broken = true;
    return false;
}

bool table_log_flushes(struct table *t, struct err *err)
{
    struct strbuf records = { 0 };
    mutex_lock(&t->lock);
    size_t count = t->flushes_count;
    for (size_t i = 0; i < count; i++) {
        struct tokens_log_record record = { .kind = TOKENS_LOG_FLUSH, .identity = t->flushes[i] };
        tokens_log_add(&records, &record);
    }
    mutex_unlock(&t->lock);
    bool ok = table_log_append(t, &records, count, err);
    mutex_lock(&t->lock);
    if (ok && count > 0) { /* others may have come meanwhile */
        t->flushes_count -= count;
        memmove(t->flushes, t->flushes + count, t->flushes_count * sizeof *t->flushes);
    }
    mutex_unlock(&t->lock);
    strbuf_fini(&records);
    return ok;
}
