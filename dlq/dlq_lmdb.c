/* dlq_lmdb.c: dead letters in LMDB.
 *
 *   DATA/dlq/data.mdb, lock.mdb   one LMDB environment, one database
 *            NAME.letter          what did not fit a record (letter.h)
 *
 *   'L' id (9 bytes)  ->  a letter's record
 *   'M' (1 byte)      ->  1 | next id | number of the last write transaction | xxh3
 *
 * Writing: whoever comes first commits for all who wait (group commit); everything is synced when a call returns. Files
 * are durable before the record that names them, and are removed after the commit that forgets them; what a crash
 * leaves in between is swept at the next start. A failed commit has an unknown outcome: the environment is closed and
 * opened anew, and the number of the last transaction tells which way it went. A second failure within a minute ends
 * writing.
 *
 * Reading: copies out within one short transaction per page. LMDB has no checksums, so every value carries one; a
 * record that fails it is moved to the damaged directory, an environment that does not open goes there whole. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/metric.h"
#include "base/reserve.h"
#include "dlq/letter.h"
#include "dlq/lmdb_env.h"

static const uint64_t DISK_FLOOR_BYTES = 16u << 20;
static const uint64_t STRIKE_NS = 60 * NS_PER_S, STEP_NS = 60 * NS_PER_S;
enum {
    TXN_RECORDS_MAX = 512, /* far below what would spill */
    PAGE_RECORDS = 256,    /* of one read transaction */
    EXPIRE_AT_ONCE = 256
};

enum op_kind { OP_ADD, OP_DROP, OP_REPLACE, OP_SET_ASIDE, OP_EXPIRE };
struct write_op {
    struct list link;
    enum op_kind kind;
    struct letter_image *images; /* ADD; REPLACE: one */
    size_t count, applied;       /* letters of ADD; letters dropped by EXPIRE */
    uint64_t id;                 /* first one given (ADD), or the one meant */
    uint64_t rows;               /* of the letter that was dropped */
    uint64_t old_hash;           /* REPLACE: of the record that it was made from */
    int64_t before_wall_ns;      /* EXPIRE: letters older than this go */
    bool ok, stale, done;        /* stale: the record has changed meanwhile */
    struct err err;
};

/* One write transaction. */
struct work {
    struct keeper *k;
    MDB_txn *txn;
    struct arena *arena;
    struct totals totals;
    struct strbuf garbage; /* names of files to remove after the commit, each with its NUL */
    uint64_t dropped, dropped_rows, damaged;
    int rc; /* of LMDB; not 0: abort */
};

static struct keeper *keeper_of(struct dlq *dlq)
{
    return (struct keeper *)(void *)dlq;
}

static bool write_file(struct keeper *k, const struct letter_image *image, struct err *err)
{
    return image->file.bytes == 0 ||
           fs_write_durably(k->options.fs, k->dir, image->file.name, strbuf_view(&image->content), false, err);
}

/* ---- the write transaction ---- */

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* Keeps the bytes of a record that cannot be trusted, then deletes it. */
static void set_record_aside(struct work *w, uint64_t id, MDB_val key, MDB_val value)
{
    char name[64];
    struct err err = { 0 };
    snprintf(name, sizeof(name), "dlq-record-%016llx", (unsigned long long)id);
    if (!fs_write_durably(w->k->options.fs, w->k->damaged_dir, name, str_of_val(value), true, &err)) {
        log_error("damaged dead letter: id=%016llx code=%d reason=\"%s\"", (unsigned long long)id, (int)err.code,
                  err.text);
        return; /* it stays where it is */
    }
    w->totals.letters = less(w->totals.letters, 1);
    w->totals.bytes = less(w->totals.bytes, key.mv_size + value.mv_size);
    w->rc = mdb_del(w->txn, w->k->dbi, &key, NULL);
    if (w->rc != 0)
        return;
    w->damaged++;
    log_error("damaged dead letter set aside: id=%016llx file=%s", (unsigned long long)id, name);
}

/* Deletes a record and remembers its file. Returns the rows of the letter. */
static uint64_t delete_record(struct work *w, uint64_t id, MDB_val key, MDB_val value)
{
    struct letter letter;
    struct letter_file file;
    struct err err = { 0 };
    if (!letter_decode(id, str_of_val(value), false, w->arena, &letter, &file, &err)) {
        set_record_aside(w, id, key, value);
        return 0;
    }
    w->totals.letters = less(w->totals.letters, 1);
    w->totals.rows = less(w->totals.rows, letter.rows);
    w->totals.bytes = less(w->totals.bytes, letter_stored_bytes(value.mv_size, &file));
    dlq_cause_went(&w->totals.causes, letter.code);
    if (file.bytes > 0)
        strbuf_add_bytes(&w->garbage, file.name, strlen(file.name) + 1);
    w->rc = mdb_del(w->txn, w->k->dbi, &key, NULL);
    return letter.rows;
}

/* The letter with the least id. False when there is none, or rc is set. */
static bool find_oldest(struct work *w, uint64_t *id, unsigned char key_copy[LETTER_KEY_BYTES], MDB_val *value)
{
    MDB_cursor *cursor;
    MDB_val key;
    w->rc = mdb_cursor_open(w->txn, w->k->dbi, &cursor);
    if (w->rc != 0)
        return false;
    int rc = mdb_cursor_get(cursor, &key, value, MDB_FIRST);
    mdb_cursor_close(cursor);
    if (rc != 0 && rc != MDB_NOTFOUND)
        w->rc = rc;
    if (rc != 0 || !letter_key_id(str_of_val(key), id))
        return false;
    memcpy(key_copy, key.mv_data, LETTER_KEY_BYTES);
    return true;
}

static bool drop_oldest(struct work *w)
{
    unsigned char key[LETTER_KEY_BYTES];
    uint64_t id;
    MDB_val value;
    if (!find_oldest(w, &id, key, &value))
        return false;
    uint64_t letters = w->totals.letters;
    w->dropped_rows += delete_record(w, id, val_of(str_make(key, sizeof(key))), value);
    w->dropped++;
    return w->rc == 0 && w->totals.letters < letters;
}

/* The live pages against the map, so that LMDB itself never runs full; the rest is for deletes. */
static bool map_has_room(struct work *w)
{
    MDB_stat stat;
    w->rc = mdb_stat(w->txn, w->k->dbi, &stat);
    if (w->rc != 0)
        return false;
    uint64_t pages = stat.ms_branch_pages + stat.ms_leaf_pages + stat.ms_overflow_pages;
    return pages * stat.ms_psize < LMDB_MAP_BYTES / 10 * 8;
}

static bool has_room(struct work *w, uint64_t bytes)
{
    const struct dlq_options *o = &w->k->options;
    return w->totals.letters < o->letters_max && bytes <= o->bytes_max && w->totals.bytes <= o->bytes_max - bytes &&
           map_has_room(w);
}

static bool make_room(struct work *w, uint64_t bytes, struct err *err)
{
    const struct dlq_options *o = &w->k->options;
    while (!has_room(w, bytes)) {
        if (w->rc != 0)
            return false;
        if (o->drop_oldest && bytes <= o->bytes_max && drop_oldest(w))
            continue;
        return err_set(
            err, ERR_NOT_ENOUGH_SPACE,
            "no room for another dead letter: %llu letters, %llu bytes are kept, the maximum is %llu and %llu",
            (unsigned long long)w->totals.letters, (unsigned long long)w->totals.bytes,
            (unsigned long long)o->letters_max, (unsigned long long)o->bytes_max);
    }
    return true;
}

static void apply_add(struct work *w, struct write_op *op)
{
    op->id = w->k->next_id;
    for (op->applied = 0; op->applied < op->count; op->applied++) {
        struct letter_image *image = &op->images[op->applied];
        uint64_t bytes = letter_stored_bytes(image->record.len + 8, &image->file);
        if (!make_room(w, bytes, &op->err))
            return;
        uint64_t id = w->k->next_id++;
        unsigned char raw[LETTER_KEY_BYTES];
        letter_key(id, raw);
        letter_seal(image, id);
        MDB_val key = val_of(str_make(raw, sizeof(raw))), value = val_of(strbuf_view(&image->record));
        w->rc = mdb_put(w->txn, w->k->dbi, &key, &value, MDB_NOOVERWRITE);
        if (w->rc != 0)
            return;
        w->totals.letters++;
        w->totals.rows += image->rows;
        w->totals.bytes += bytes;
        dlq_cause_came(&w->totals.causes, image->code);
    }
    op->ok = true;
}

/* The record of op->id. False when there is none (err is set) or rc is. */
static bool find_record(struct work *w, struct write_op *op, unsigned char raw[LETTER_KEY_BYTES], MDB_val *key,
                        MDB_val *value)
{
    letter_key(op->id, raw);
    *key = val_of(str_make(raw, LETTER_KEY_BYTES));
    int rc = mdb_get(w->txn, w->k->dbi, key, value);
    if (rc == MDB_NOTFOUND)
        return dlq_no_letter(op->id, &op->err);
    w->rc = rc;
    return rc == 0;
}

static void apply_drop(struct work *w, struct write_op *op)
{
    unsigned char raw[LETTER_KEY_BYTES];
    MDB_val key, value;
    if (!find_record(w, op, raw, &key, &value))
        return;
    op->rows = delete_record(w, op->id, key, value);
    op->ok = w->rc == 0;
}

/* Whether there is room for what the letter has grown by; a new reason always fits. */
static bool grown_fits(struct work *w, uint64_t id, MDB_val value, const struct letter_image *image)
{
    struct letter letter;
    struct letter_file file = { 0 };
    struct err err = { 0 };
    uint64_t before = letter_decode(id, str_of_val(value), false, w->arena, &letter, &file, &err)
                          ? letter_stored_bytes(value.mv_size, &file)
                          : 0;
    uint64_t after = letter_stored_bytes(image->record.len, &image->file);
    return after <= before + 2 * LETTER_REASON_MAX || w->totals.bytes + (after - before) <= w->k->options.bytes_max;
}

static void apply_replace(struct work *w, struct write_op *op)
{
    unsigned char raw[LETTER_KEY_BYTES];
    MDB_val key, value;
    if (!find_record(w, op, raw, &key, &value))
        return;
    op->stale = hash64(str_of_val(value)) != op->old_hash;
    if (op->stale)
        return;
    struct letter_image *image = op->images;
    if (!grown_fits(w, op->id, value, image)) {
        err_set(&op->err, ERR_NOT_ENOUGH_SPACE, "no room for the letter as it would be: the maximum is %llu bytes",
                (unsigned long long)w->k->options.bytes_max);
        return;
    }
    (void)delete_record(w, op->id, key, value);
    if (w->rc != 0)
        return;
    letter_seal(image, op->id);
    value = val_of(strbuf_view(&image->record));
    w->rc = mdb_put(w->txn, w->k->dbi, &key, &value, 0);
    w->totals.letters++;
    w->totals.rows += image->rows;
    w->totals.bytes += letter_stored_bytes(image->record.len, &image->file);
    dlq_cause_came(&w->totals.causes, image->code);
    op->ok = w->rc == 0;
}

static void apply_set_aside(struct work *w, struct write_op *op)
{
    unsigned char raw[LETTER_KEY_BYTES];
    MDB_val key, value;
    struct letter letter;
    struct letter_file file;
    struct err err = { 0 };
    if (!find_record(w, op, raw, &key, &value))
        return;
    if (!letter_decode(op->id, str_of_val(value), false, w->arena, &letter, &file, &err))
        set_record_aside(w, op->id, key, value);
    op->ok = w->rc == 0;
}

static void apply_expire(struct work *w, struct write_op *op)
{
    unsigned char raw[LETTER_KEY_BYTES];
    uint64_t id;
    MDB_val value;
    for (op->applied = 0; op->applied < EXPIRE_AT_ONCE; op->applied++) {
        struct letter letter = { 0 };
        struct letter_file file;
        struct err err = { 0 };
        if (!find_oldest(w, &id, raw, &value))
            break;
        bool good = letter_decode(id, str_of_val(value), false, w->arena, &letter, &file, &err);
        if (good && letter.first_wall_ns >= op->before_wall_ns)
            break;
        uint64_t letters = w->totals.letters;
        w->dropped_rows += delete_record(w, id, val_of(str_make(raw, sizeof(raw))), value);
        w->dropped += good;
        if (w->rc != 0 || w->totals.letters == letters)
            break;
    }
    op->ok = w->rc == 0;
}

static void apply(struct work *w, struct write_op *op)
{
    switch (op->kind) {
    case OP_ADD:
        apply_add(w, op);
        break;
    case OP_DROP:
        apply_drop(w, op);
        break;
    case OP_REPLACE:
        apply_replace(w, op);
        break;
    case OP_SET_ASIDE:
        apply_set_aside(w, op);
        break;
    case OP_EXPIRE:
        apply_expire(w, op);
        break;
    }
}

static void find_oldest_time(struct work *w)
{
    unsigned char raw[LETTER_KEY_BYTES];
    uint64_t id;
    MDB_val value;
    struct letter letter;
    struct letter_file file;
    struct err err = { 0 };
    w->totals.oldest_wall_ns = 0;
    if (find_oldest(w, &id, raw, &value) && letter_decode(id, str_of_val(value), false, w->arena, &letter, &file, &err))
        w->totals.oldest_wall_ns = letter.first_wall_ns;
}

static void put_meta(struct work *w)
{
    unsigned char raw[META_BYTES];
    w->k->txn_number++;
    MDB_val key = val_of(STR("M")), value = val_of(lmdb_meta_encode(w->k->next_id, w->k->txn_number, raw));
    w->rc = mdb_put(w->txn, w->k->dbi, &key, &value, 0);
}

/* ---- after a failed commit ---- */

/* Whether the transaction with the present number is in the environment that was opened anew. */
static bool was_applied(struct keeper *k)
{
    MDB_txn *txn;
    MDB_val key = val_of(STR("M")), value;
    uint64_t next_id, txn_number = 0;
    if (mdb_txn_begin(k->env, NULL, MDB_RDONLY, &txn) != 0)
        return false;
    bool found = mdb_get(txn, k->dbi, &key, &value) == 0 && lmdb_meta_decode(str_of_val(value), &next_id, &txn_number);
    mdb_txn_abort(txn);
    return found && txn_number == k->txn_number;
}

static bool disk_is_full(struct keeper *k, int rc)
{
    uint64_t free_bytes;
    struct err err = { 0 };
    return rc == ENOSPC || rc == EDQUOT ||
           (fs_free_bytes(k->options.fs, k->dir, &free_bytes, &err) && free_bytes < DISK_FLOOR_BYTES);
}

static void reopen(struct keeper *k)
{
    mutex_lock(&k->lock);
    k->reopening = true;
    while (k->readers > 0)
        cond_wait(&k->changed, &k->lock);
    mutex_unlock(&k->lock);
    keeper_env_close(k);
    int rc = keeper_env_open(k);
    if (rc != 0)
        log_error("dead letters do not open again: dir=%s reason=\"%s\"", k->dir, mdb_strerror(rc));
    mutex_lock(&k->lock);
    k->reopening = false;
    k->read_only = k->read_only || rc != 0;
    cond_broadcast(&k->changed);
    mutex_unlock(&k->lock);
}

/* Commit said no: true when the transaction is there nevertheless. err says why not. */
static bool survive_failed_commit(struct keeper *k, int rc, struct err *err)
{
    bool full = disk_is_full(k, rc);
    lmdb_err(err, full ? ERR_NOT_ENOUGH_SPACE : ERR_CANNOT_WRITE_TO_FILE_DESCRIPTOR, rc, "commit");
    reopen(k);
    bool applied = k->env != NULL && was_applied(k);
    log_error("dead letters' commit failed: rc=%d disk_full=%d applied=%d reason=\"%s\"", rc, full, applied,
              mdb_strerror(rc));
    if (full) {
        if (!applied && k->options.reserve != NULL)
            (void)reserve_give(k->options.reserve);
        return applied;
    }
    uint64_t now_ns = clock_mono_ns(k->options.clock);
    bool again = k->failed_ns != 0 && now_ns - k->failed_ns < STRIKE_NS;
    k->failed_ns = now_ns == 0 ? 1 : now_ns;
    if (again) {
        log_error("dead letters are read-only from now on, two commits failed within a minute");
        mutex_lock(&k->lock);
        k->read_only = true;
        mutex_unlock(&k->lock);
    }
    return applied;
}

/* ---- group commit ---- */

static void fail_all(struct list *ops, const struct err *err)
{
    LIST_EACH (node, ops) {
        struct write_op *op = LIST_ENTRY(node, struct write_op, link);
        op->ok = op->stale = false;
        op->applied = 0;
        op->err = *err;
    }
}

static void after_commit(struct work *w)
{
    struct keeper *k = w->k;
    mutex_lock(&k->lock);
    k->totals = w->totals;
    k->damaged += w->damaged;
    k->capped += w->dropped;
    k->capped_rows += w->dropped_rows;
    mutex_unlock(&k->lock);
    for (size_t at = 0; at < w->garbage.len; at += strlen(w->garbage.data + at) + 1)
        keeper_remove_file(k, w->garbage.data + at);
    if (w->dropped == 0)
        return;
    metric_series_add(metric_series1(METRIC_DEAD_LETTERS_DISCARDED, STR("cap")), w->dropped);
    log_warn("dead letters dropped by a cap: count=%llu", (unsigned long long)w->dropped);
}

/* The leader's: applies the operations in one transaction and commits it. Under no lock. */
static void run_ops(struct keeper *k, struct list *ops)
{
    struct work w = { .k = k, .totals = k->totals, .arena = arena_new(16384) };
    struct err err = { 0 };
    w.rc = mdb_txn_begin(k->env, NULL, 0, &w.txn);
    if (w.rc != 0) {
        lmdb_err(&err, ERR_CANNOT_WRITE_TO_FILE_DESCRIPTOR, w.rc, "begin");
        fail_all(ops, &err);
        goto done;
    }
    LIST_EACH (node, ops)
        if (w.rc == 0)
            apply(&w, LIST_ENTRY(node, struct write_op, link));
    if (w.rc == 0)
        find_oldest_time(&w);
    if (w.rc == 0)
        put_meta(&w);
    if (w.rc != 0) {
        mdb_txn_abort(w.txn);
        bool full = w.rc == MDB_MAP_FULL || w.rc == MDB_TXN_FULL;
        lmdb_err(&err, full ? ERR_NOT_ENOUGH_SPACE : ERR_CORRUPTED_DATA, w.rc, "write");
        fail_all(ops, &err);
        goto done;
    }
    w.rc = mdb_txn_commit(w.txn);
    if (w.rc == 0 || survive_failed_commit(k, w.rc, &err))
        after_commit(&w);
    else
        fail_all(ops, &err);
done:
    strbuf_fini(&w.garbage);
    arena_free(w.arena);
}

/* Moves operations worth one transaction from the queue. Under the lock. */
static void take_ops(struct keeper *k, struct list *ops)
{
    size_t records = 0;
    while (!list_empty(&k->queue)) {
        struct write_op *op = LIST_ENTRY(k->queue.next, struct write_op, link);
        size_t more = op->kind == OP_ADD ? op->count : op->kind == OP_EXPIRE ? EXPIRE_AT_ONCE : 1;
        if (records > 0 && records + more > TXN_RECORDS_MAX)
            return;
        records += more;
        list_remove(&op->link);
        list_push_back(ops, &op->link);
    }
}

static void lead(struct keeper *k)
{
    struct list ops;
    list_init(&ops);
    take_ops(k, &ops);
    bool read_only = k->read_only;
    k->writing = true;
    mutex_unlock(&k->lock);
    if (read_only) {
        struct err err;
        err_set(&err, ERR_TABLE_IS_READ_ONLY, "dead letters are read-only after failures of the disk");
        fail_all(&ops, &err);
    } else {
        run_ops(k, &ops);
    }
    mutex_lock(&k->lock);
    k->writing = false;
    LIST_EACH_SAFE (node, &ops) {
        struct write_op *op = LIST_ENTRY(node, struct write_op, link);
        list_remove(&op->link);
        op->done = true; /* its owner may be gone after the lock is */
    }
    cond_broadcast(&k->changed);
}

static void submit(struct keeper *k, struct write_op *op)
{
    list_init(&op->link);
    mutex_lock(&k->lock);
    list_push_back(&k->queue, &op->link);
    while (!op->done) {
        if (k->writing)
            cond_wait(&k->changed, &k->lock);
        else
            lead(k);
    }
    mutex_unlock(&k->lock);
}

/* ---- backup ---- */

/* Also the files of letters that are about to be added: a start sweeps those that no record speaks of. */
static bool link_files(struct keeper *k, const char *dir, struct err *err)
{
    struct fs *fs = k->options.fs;
    struct fs_names names = { 0 };
    char from[PATH_BYTES], to[PATH_BYTES];
    bool ok = fs_list(fs, k->dir, &names, err);
    for (size_t i = 0; ok && i < names.count; i++)
        if (str_ends(str_of(names.names[i]), STR(LETTER_FILE_SUFFIX)))
            ok = path_join(from, k->dir, "", names.names[i], err) && path_join(to, dir, "", names.names[i], err) &&
                 fs_link(fs, from, to, err);
    fs_names_fini(&names);
    return ok;
}

bool dlq_lmdb_backup(struct dlq *dlq, const char *dir, struct err *err)
{
    struct keeper *k = keeper_of(dlq);
    mutex_lock(&k->lock);
    while (k->writing)
        cond_wait(&k->changed, &k->lock);
    k->writing = true; /* as a leader without operations: no letter comes or goes, no file of one either */
    mutex_unlock(&k->lock);
    bool ok =
        k->env != NULL || err_set(err, ERR_TABLE_IS_READ_ONLY, "dead letters are closed after failures of the disk");
    ok = ok && keeper_env_copy(k, dir, err) && link_files(k, dir, err) && fs_sync_dir(k->options.fs, dir, err);
    mutex_lock(&k->lock);
    k->writing = false;
    cond_broadcast(&k->changed);
    mutex_unlock(&k->lock);
    return ok || err_wrap(err, "dead letters");
}

/* ---- add ---- */

/* One run of at most TXN_RECORDS_MAX letters. */
static size_t add_run(struct keeper *k, struct letter *letters, size_t count, struct err *err)
{
    struct letter_image *images = mem_zalloc(count * sizeof(*images));
    size_t ready = 0;
    bool written = true;
    while (ready < count && written) {
        letter_encode(&letters[ready], rng_real(), &images[ready]);
        written = write_file(k, &images[ready], err);
        if (written)
            ready++;
        else
            letter_image_fini(&images[ready]);
    }
    struct write_op op = { .kind = OP_ADD, .images = images, .count = ready };
    if (ready > 0)
        submit(k, &op);
    if (ready > 0 && !op.ok)
        *err = op.err;
    for (size_t i = 0; i < ready; i++) {
        if (i < op.applied)
            letters[i].id = op.id + i;
        else if (images[i].file.bytes > 0)
            keeper_remove_file(k, images[i].file.name);
        letter_image_fini(&images[i]);
    }
    free(images);
    return op.applied;
}

static size_t lmdb_add_many(struct dlq *dlq, struct letter *letters, size_t count, struct err *err)
{
    size_t added = 0;
    while (added < count) {
        size_t run = MIN(count - added, (size_t)TXN_RECORDS_MAX / 2);
        size_t here = add_run(keeper_of(dlq), letters + added, run, err);
        added += here;
        if (here < run)
            break;
    }
    return added;
}

static bool lmdb_add(struct dlq *dlq, struct letter *letter, struct err *err)
{
    return lmdb_add_many(dlq, letter, 1, err) == 1;
}

/* ---- reading ---- */

static bool read_begin(struct keeper *k, MDB_txn **txn, struct err *err)
{
    mutex_lock(&k->lock);
    while (k->reopening)
        cond_wait(&k->changed, &k->lock);
    k->readers++;
    mutex_unlock(&k->lock);
    int rc = k->env == NULL ? MDB_PANIC : mdb_txn_begin(k->env, NULL, MDB_RDONLY, txn);
    if (rc == 0)
        return true;
    *txn = NULL;
    return lmdb_err(err, ERR_CANNOT_READ_FROM_FILE_DESCRIPTOR, rc, "read");
}

static void read_end(struct keeper *k, MDB_txn *txn)
{
    if (txn != NULL)
        mdb_txn_abort(txn);
    mutex_lock(&k->lock);
    if (--k->readers == 0)
        cond_broadcast(&k->changed);
    mutex_unlock(&k->lock);
}

void keeper_set_letter_aside(struct keeper *k, uint64_t id)
{
    struct write_op op = { .kind = OP_SET_ASIDE, .id = id };
    submit(k, &op);
}

struct listed {
    struct letter letter;
    struct letter_file file;
    bool damaged;
};

/* Up to max records after *after_id, from one transaction. *after_id moves on; *more: there may be others. */
static bool list_page(struct keeper *k, uint64_t *after_id, struct listed *page, size_t max, size_t *count,
                      struct arena *arena, struct err *err)
{
    MDB_txn *txn;
    MDB_cursor *cursor = NULL;
    unsigned char raw[LETTER_KEY_BYTES];
    letter_key(*after_id + 1, raw);
    MDB_val key = val_of(str_make(raw, sizeof(raw))), value;
    bool ok = read_begin(k, &txn, err);
    int rc = 0;
    *count = 0;
    if (ok)
        rc = mdb_cursor_open(txn, k->dbi, &cursor);
    if (ok && rc == 0)
        rc = mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE);
    while (ok && rc == 0 && *count < max) {
        struct listed *item = &page[*count];
        struct err damage = { 0 };
        uint64_t id;
        if (!letter_key_id(str_of_val(key), &id))
            break;
        item->damaged = !letter_decode(id, str_of_val(value), false, arena, &item->letter, &item->file, &damage);
        item->letter.id = *after_id = id;
        ++*count;
        rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
    }
    if (cursor != NULL)
        mdb_cursor_close(cursor);
    read_end(k, txn);
    if (ok && rc != 0 && rc != MDB_NOTFOUND)
        return lmdb_err(err, ERR_CORRUPTED_DATA, rc, "list");
    return ok;
}

/* Blob and reason from the beginning of a letter's file. */
static bool read_details(struct keeper *k, struct listed *item, struct arena *arena, struct err *err)
{
    struct fs *fs = k->options.fs;
    struct fs_file *file = NULL;
    char path[PATH_BYTES], head[LETTER_FILE_HEAD_BYTES];
    size_t got = 0;
    uint64_t bytes = 0;
    char *start = NULL;
    bool ok = path_join(path, k->dir, "", item->file.name, err) && fs_open(fs, path, &file, err) &&
              fs_read_at(fs, file, 0, head, sizeof(head), &got, err) &&
              letter_file_details_bytes(str_make(head, got), &bytes, err);
    if (ok && bytes > item->file.bytes)
        ok = err_set(err, ERR_CORRUPTED_DATA, "dead letter: bad lengths in the file");
    if (ok) {
        start = mem_alloc((size_t)bytes);
        ok = fs_read_at(fs, file, 0, start, (size_t)bytes, &got, err) &&
             letter_decode_details(str_make(start, got), &item->file, arena, &item->letter, err);
    }
    free(start);
    fs_discard(fs, &file);
    return ok;
}

static bool lmdb_list(struct dlq *dlq, uint64_t after_id, size_t max, struct arena *arena, struct letter **letters,
                      size_t *count, struct err *err)
{
    struct keeper *k = keeper_of(dlq);
    struct listed *page = mem_zalloc(PAGE_RECORDS * sizeof(*page));
    size_t cap = 0, wanted = 0, got = 0;
    bool ok = true;
    *letters = NULL;
    *count = 0;
    while (ok && *count < max && got == wanted && after_id < UINT64_MAX) {
        wanted = MIN(max - *count, (size_t)PAGE_RECORDS);
        ok = list_page(k, &after_id, page, wanted, &got, arena, err);
        for (size_t i = 0; ok && i < got; i++) {
            struct err why = { 0 };
            if (page[i].damaged) {
                keeper_set_letter_aside(k, page[i].letter.id);
                continue;
            }
            bool details = page[i].file.has_blob || page[i].file.has_reason;
            if (details && !read_details(k, &page[i], arena, &why))
                page[i].letter.reason = arena_dup(arena, str_of(why.text));
            if (*count == cap) {
                cap = cap == 0 ? 64 : 2 * cap;
                struct letter *grown = ARENA_ARRAY(arena, struct letter, cap);
                if (*count > 0)
                    memcpy(grown, *letters, *count * sizeof(*grown));
                *letters = grown;
            }
            (*letters)[(*count)++] = page[i].letter;
        }
    }
    free(page);
    return ok;
}

/* The record of a letter, copied out. */
static bool read_record(struct keeper *k, uint64_t id, struct strbuf *record, struct err *err)
{
    MDB_txn *txn;
    unsigned char raw[LETTER_KEY_BYTES];
    letter_key(id, raw);
    MDB_val key = val_of(str_make(raw, sizeof(raw))), value;
    bool ok = read_begin(k, &txn, err);
    int rc = ok ? mdb_get(txn, k->dbi, &key, &value) : 0;
    if (ok && rc == 0)
        strbuf_add(record, str_of_val(value));
    read_end(k, txn);
    if (!ok)
        return false;
    if (rc == MDB_NOTFOUND)
        return dlq_no_letter(id, err);
    return rc == 0 || lmdb_err(err, ERR_CORRUPTED_DATA, rc, "get");
}

static bool has_letter(struct keeper *k, uint64_t id)
{
    struct strbuf record = { 0 };
    struct err err = { 0 };
    bool has = read_record(k, id, &record, &err);
    strbuf_fini(&record);
    return has;
}

static bool read_letter_file(struct keeper *k, const struct letter_file *file, struct arena *arena,
                             struct letter *letter, struct err *err)
{
    char path[PATH_BYTES];
    struct strbuf content = { 0 };
    bool ok = path_join(path, k->dir, "", file->name, err) &&
              fs_read_file(k->options.fs, path, (size_t)file->bytes + 1, &content, err);
    if (ok && !letter_decode_file(strbuf_view(&content), file, arena, letter, err)) {
        keeper_set_file_aside(k, file->name);
        ok = false;
    }
    strbuf_fini(&content);
    return ok;
}

/* A whole letter; *hash is that of its record. */
static bool read_letter(struct keeper *k, uint64_t id, struct arena *arena, struct letter *letter, uint64_t *hash,
                        struct err *err)
{
    struct strbuf record = { 0 };
    struct letter_file file;
    bool ok = read_record(k, id, &record, err);
    if (ok && !letter_decode(id, strbuf_view(&record), true, arena, letter, &file, err)) {
        keeper_set_letter_aside(k, id);
        ok = false;
    }
    *hash = hash64(strbuf_view(&record));
    strbuf_fini(&record);
    if (!ok || file.bytes == 0 || read_letter_file(k, &file, arena, letter, err))
        return ok;
    if (!has_letter(k, id))
        return dlq_no_letter(id, err); /* dropped while it was being read */
    err->code = ERR_CORRUPTED_DATA;
    return err_wrap(err, "dead letter %016llx", (unsigned long long)id);
}

static bool lmdb_get(struct dlq *dlq, uint64_t id, struct arena *arena, struct letter *letter, struct err *err)
{
    uint64_t hash;
    return read_letter(keeper_of(dlq), id, arena, letter, &hash, err);
}

/* ---- drop, note, stats, step ---- */

static bool lmdb_drop(struct dlq *dlq, uint64_t id, uint64_t *rows, struct err *err)
{
    struct write_op op = { .kind = OP_DROP, .id = id };
    submit(keeper_of(dlq), &op);
    if (rows != NULL)
        *rows = op.rows;
    if (!op.ok)
        *err = op.err;
    return op.ok;
}

/* Made from the letter as it was read; if somebody changed it meanwhile, once more. */
static bool lmdb_change(struct dlq *dlq, uint64_t id, dlq_edit_fn *edit, void *context, struct err *err)
{
    struct keeper *k = keeper_of(dlq);
    struct write_op op;
    do {
        struct arena *arena = arena_new(4096);
        struct letter letter;
        struct letter_image image = { 0 };
        op = (struct write_op){ .kind = OP_REPLACE, .id = id, .images = &image };
        bool ok = read_letter(k, id, arena, &letter, &op.old_hash, err);
        if (ok) {
            edit(context, &letter);
            letter_encode(&letter, rng_real(), &image);
            ok = write_file(k, &image, err);
        }
        if (ok) {
            submit(k, &op);
            if (!op.ok && image.file.bytes > 0)
                keeper_remove_file(k, image.file.name);
            if (!op.ok && !op.stale)
                *err = op.err;
        }
        letter_image_fini(&image);
        arena_free(arena);
        if (!ok)
            return false;
    } while (op.stale);
    return op.ok;
}

static void lmdb_stats(struct dlq *dlq, struct dlq_stats *stats)
{
    struct keeper *k = keeper_of(dlq);
    mutex_lock(&k->lock);
    *stats = (struct dlq_stats){
        .letters = k->totals.letters,
        .bytes = k->totals.bytes,
        .bytes_max = k->options.bytes_max,
        .rows = k->totals.rows,
        .capped = k->capped,
        .capped_rows = k->capped_rows,
        .damaged = k->damaged,
        .oldest_wall_ns = k->totals.oldest_wall_ns,
        .causes = k->totals.causes,
        .read_only = k->read_only,
    };
    mutex_unlock(&k->lock);
}

static uint64_t lmdb_step(struct dlq *dlq, uint64_t now_ns)
{
    struct keeper *k = keeper_of(dlq);
    struct write_op op = { .kind = OP_EXPIRE };
    struct dlq_stats stats;
    struct err err = { 0 };
    MDB_txn *txn;
    if (now_ns >= k->check_ns) {
        if (read_begin(k, &txn, &err) && mdb_reader_check(k->env, NULL) != 0)
            log_warn("dead letters' check of readers failed");
        read_end(k, txn);
        k->check_ns = now_ns + STEP_NS;
    }
    lmdb_stats(dlq, &stats);
    op.before_wall_ns = clock_wall_ns(k->options.clock) - (int64_t)k->options.age_ns_max;
    if (k->options.age_ns_max == 0 || stats.letters == 0 || stats.read_only ||
        stats.oldest_wall_ns >= op.before_wall_ns)
        return now_ns + STEP_NS;
    submit(k, &op);
    return op.applied == EXPIRE_AT_ONCE ? now_ns : now_ns + STEP_NS;
}

/* ---- open, close ---- */

static void lmdb_close(struct dlq *dlq)
{
    struct keeper *k = keeper_of(dlq);
    must(list_empty(&k->queue) && !k->writing && k->readers == 0);
    keeper_env_close(k);
    keeper_release(k);
    cond_fini(&k->changed);
    mutex_fini(&k->lock);
    free(k);
}

static bool keep_path(char kept[PATH_BYTES], const char *path, struct err *err)
{
    size_t len = strlen(path);
    if (len >= PATH_BYTES)
        return err_set(err, ERR_BAD_ARGUMENTS, "path of %zu bytes is too long", len);
    memcpy(kept, path, len + 1);
    return true;
}

bool dlq_lmdb_open(const struct dlq_options *options, struct dlq **dlq, struct err *err)
{
    struct keeper *k = NEW(struct keeper);
    mutex_init(&k->lock, LOCK_DLQ);
    cond_init(&k->changed);
    list_init(&k->queue);
    list_init(&k->claim.link);
    k->options = *options;
    k->dlq = (struct dlq){
        .add = lmdb_add,
        .add_many = lmdb_add_many,
        .list = lmdb_list,
        .get = lmdb_get,
        .drop = lmdb_drop,
        .change = lmdb_change,
        .stats = lmdb_stats,
        .step = lmdb_step,
        .close = lmdb_close,
    };
    bool ok = keep_path(k->dir, options->dir, err) && keep_path(k->damaged_dir, options->damaged_dir, err);
    ok = ok && fs_make_dirs(options->fs, options->dir, err) && fs_make_dirs(options->fs, options->damaged_dir, err);
    ok = ok && keeper_start(k, err);
    if (!ok) {
        err_wrap(err, "dead letters in %s", options->dir);
        lmdb_close(&k->dlq);
        return false;
    }
    *dlq = &k->dlq;
    return true;
}
