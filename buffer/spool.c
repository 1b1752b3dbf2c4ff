/* spool.c: the log of inserts that were promised to survive: queue, writer, marks, removal. The start and the reader
 * are in spool_recover.c.
 *
 * A commit is all that was queued when the writer came: marks of what is done, batches, inserts; appended, then synced
 * once. Marks alone wait for a sync by others, but not for long. What a commit did is told to the rest of the object
 * (undone, synced) only after its sync.
 *
 * When an append or a sync fails, nobody knows what of the commit is in the file: its inserts get a mark in a new
 * segment, which must be safe before they are refused, so that no start takes them for promised. */
#include "buffer/spool.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/crash_points.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/metric.h"
#include "base/varint.h"
#include "buffer/batch.h"
#include "buffer/buffers.h"
#include "buffer/ledger.h"
#include "buffer/spool_impl.h"

#define MARKS_SYNC_NS NS_PER_S      /* marks wait at most so long for a sync */
#define IDLE_NS (10 * NS_PER_S)     /* then a segment goes in which all is done */
#define FAILURES_NS (60 * NS_PER_S) /* two disk errors in this time are too many */
#define AFTER_FAILURE_NS NS_PER_S   /* marks are not tried again before */
#define KEPT_AGAIN_NS (60 * NS_PER_S)
enum {
    OUT_BYTES = 1 << 20,    /* appended at once */
    DIRECT_BYTES = 1 << 18, /* a body of this size is not copied first */
    MARKS_SHARE = 16        /* one part in so many of a segment is kept for marks and batches */
};

/* A batch whose flusher waits for its record. */
struct seal {
    struct list link;
    const struct batch *batch;
    bool over, ok;
    struct err err;
};

/* What one turn of the writer works on. */
struct commit {
    struct list inserts, spills, seals;
    struct list refused, refused_spills; /* there was no room for them */
    struct err refused_err;
    struct ranges marks;
    uint64_t syncs_asked;
    uint64_t first_sequence;
    bool synced;
};

/* ---- segments ---- */

void segment_path(const struct spool *spool, const struct segment *segment, const char *prefix, char path[PATH_BYTES])
{
    int n = snprintf(path, PATH_BYTES, "%s/%s%016llx-%016llx.spool", spool->dir, prefix, (unsigned long long)spool->id,
                     (unsigned long long)segment->number);
    must(n > 0 && n < PATH_BYTES);
}

static bool hex_number(struct str hex, uint64_t *out)
{
    uint64_t value = 0;
    for (size_t i = 0; i < hex.len; i++) {
        char c = hex.data[i];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
            return false;
        value = value << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    *out = value;
    return true;
}

bool segment_name_parse(struct str name, uint64_t *spool, uint64_t *number)
{
    return name.len == 16 + 1 + 16 + strlen(".spool") && name.data[16] == '-' && str_ends(name, STR(".spool")) &&
           hex_number(str_sub(name, 0, 16), spool) && hex_number(str_sub(name, 17, 16), number);
}

struct segment *segment_new(uint64_t number, uint64_t first)
{
    struct segment *segment = NEW(struct segment);
    list_init(&segment->link);
    segment->number = number;
    segment->first = first;
    segment->read_at = SPOOL_FILE_HEAD_BYTES;
    return segment;
}

void segment_free(struct segment *segment)
{
    if (segment == NULL)
        return;
    free(segment->settled);
    free(segment);
}

bool segment_is_settled(const struct segment *segment, uint64_t sequence)
{
    uint64_t bit = sequence - segment->first;
    return bit / 8 < segment->settled_bytes && (segment->settled[bit / 8] >> bit % 8 & 1) != 0;
}

void segment_settle(struct segment *segment, uint64_t sequence)
{
    uint64_t bit = sequence - segment->first;
    if (bit / 8 >= segment->settled_bytes) {
        size_t bytes = MAX((size_t)(bit / 8 + 1), MAX(segment->settled_bytes * 2, (size_t)64));
        segment->settled = mem_realloc(segment->settled, bytes);
        memset(segment->settled + segment->settled_bytes, 0, bytes - segment->settled_bytes);
        segment->settled_bytes = bytes;
    }
    segment->settled[bit / 8] |= (uint8_t)(1u << bit % 8);
}

void segment_unsettle(struct segment *segment, uint64_t sequence)
{
    uint64_t bit = sequence - segment->first;
    must(bit / 8 < segment->settled_bytes);
    segment->settled[bit / 8] &= (uint8_t) ~(1u << bit % 8);
}

/* Inserts leave something to others; marks, which let segments go, do not. */
static bool has_room_for_inserts(struct spool *spool, uint64_t need, struct err *err)
{
    const struct spool_options *o = &spool->options;
    uint64_t free_bytes = 0;
    struct err unread;
    mutex_lock(&spool->lock);
    uint64_t bytes = spool->stats.bytes;
    bool full = spool->stats.full = bytes > o->bytes_max || need > o->bytes_max - bytes;
    mutex_unlock(&spool->lock);
    if (full)
        return err_set(err, ERR_NOT_ENOUGH_SPACE, "The spool is full: %llu of %llu bytes (spool.bytes_max)",
                       (unsigned long long)bytes, (unsigned long long)o->bytes_max);
    if (fs_free_bytes(o->fs, spool->dir, &free_bytes, &unread) && free_bytes < o->free_min + need)
        return err_set(err, ERR_NOT_ENOUGH_SPACE,
                       "The disk of the spool is nearly full: %llu bytes are free, %llu have to be (spool.free_min and "
                       "one segment)",
                       (unsigned long long)free_bytes, (unsigned long long)(o->free_min + need));
    return true;
}

enum contents { INSERTS, MARKS, NOTHING };

/* Marks let segments go: they are tried with what little room there is. */
static bool take_room(struct spool *spool, struct fs_file *file, enum contents contents, struct err *err)
{
    return contents == NOTHING || fs_reserve(spool->options.fs, file, spool->options.segment_bytes, err) ||
           (contents == MARKS && err->code == ERR_NOT_ENOUGH_SPACE);
}

/* Whoever made the directory may have been stopped before that was safe. */
static bool make_dir(struct spool *spool, struct err *err)
{
    struct fs *fs = spool->options.fs;
    if (!spool->dir_safe)
        spool->dir_safe = fs_mkdir(fs, spool->dir, err) && fs_sync_dir(fs, spool->data_dir, err);
    return spool->dir_safe;
}

/* A start may pass over sequences that the last segment does not have. */
static uint32_t unpromised_before(struct spool *spool, const struct segment *segment)
{
    uint64_t count = spool->unpromised;
    if (!list_empty(&spool->segments)) {
        const struct segment *last = LIST_ENTRY(spool->segments.prev, struct segment, link);
        count += segment->first - (last->first + last->count);
    }
    return (uint32_t)MIN(count, (uint64_t)UINT32_MAX);
}

/* The file is complete before it has its name. */
static bool create_file(struct spool *spool, const struct segment *segment, enum contents contents,
                        struct fs_file **file, struct err *err)
{
    struct fs *fs = spool->options.fs;
    struct strbuf head = { 0 };
    char temp[PATH_BYTES], path[PATH_BYTES];
    struct err ignored;
    segment_path(spool, segment, "_tmp_", temp);
    segment_path(spool, segment, "", path);
    spool_file_head_add(&head, &(struct spool_file_head){ .spool = spool->id,
                                                          .first_sequence = segment->first,
                                                          .unpromised = unpromised_before(spool, segment) });
    bool made = make_dir(spool, err) && fs_create(fs, temp, file, err);
    bool ok = made && take_room(spool, *file, contents, err) && fs_append(fs, *file, strbuf_view(&head), err);
    CRASH_POINT("spool.created");
    ok = ok && fs_sync(fs, *file, err) && fs_rename(fs, temp, path, err);
    CRASH_POINT("spool.renamed");
    ok = ok && fs_sync_dir(fs, spool->dir, err);
    strbuf_fini(&head);
    if (ok)
        return true;
    fs_discard(fs, file);
    if (made) {
        (void)fs_unlink(fs, temp,
                        &ignored); /* one of the two; a start removes the first, and an empty segment harms nobody */
        (void)fs_unlink(fs, path, &ignored);
    }
    return false;
}

/* On failure the current segment is as it was. */
static bool open_segment(struct spool *spool, enum contents contents, struct err *err)
{
    struct fs_file *file = NULL;
    struct segment *segment = segment_new(spool->number_next++, spool->sequence_next);
    if (!create_file(spool, segment, contents, &file, err)) {
        segment_free(segment);
        return false;
    }
    segment->bytes = segment->synced = SPOOL_FILE_HEAD_BYTES;
    mutex_lock(&spool->lock);
    list_push_back(&spool->segments, &segment->link);
    spool->stats.bytes += segment->bytes;
    mutex_unlock(&spool->lock);
    must(spool->file == NULL);
    spool->unpromised = 0;
    spool->file = file;
    spool->current = segment;
    return true;
}

static bool append(struct spool *spool, struct str bytes, struct err *err)
{
    if (bytes.len == 0)
        return true;
    if (!fs_append(spool->options.fs, spool->file, bytes, err))
        return false;
    mutex_lock(&spool->lock);
    spool->current->bytes += bytes.len;
    spool->stats.bytes += bytes.len;
    mutex_unlock(&spool->lock);
    return true;
}

static bool append_out(struct spool *spool, struct err *err)
{
    bool ok = append(spool, strbuf_view(&spool->out), err);
    strbuf_clear(&spool->out);
    return ok;
}

static bool sync_current(struct spool *spool, struct err *err)
{
    uint64_t from_ns = clock_mono_ns(spool->options.clock);
    CRASH_POINT("spool.appended");
    if (!fs_sync(spool->options.fs, spool->file, err))
        return false;
    CRASH_POINT("spool.synced");
    metric_observe(METRIC_SPOOL_SYNC_DURATION,
                   (double)(clock_mono_ns(spool->options.clock) - from_ns) / (double)NS_PER_S);
    return true;
}

/* ---- a commit: writing ---- */

static void add_record(struct spool *spool, enum spool_kind kind, struct str payload)
{
    struct spool_record record = {
        .kind = kind, .commit = spool->commit, .sequence = spool->sequence_next, .payload = payload
    };
    spool_record_add(&spool->out, spool->id, &record);
}

/* Its end says that it was complete. */
static bool end_segment(struct spool *spool, struct err *err)
{
    add_record(spool, SPOOL_END, STR_EMPTY);
    if (!append_out(spool, err) || !sync_current(spool, err) || !fs_finish(spool->options.fs, &spool->file, true, err))
        return false;
    spool->current = NULL;
    CRASH_POINT("spool.rotated");
    return true;
}

enum room { ROOM, NO_ROOM, ROOM_LOST };

/* A segment that can take so many bytes more. NO_ROOM: the current one, if any, is as it was. LOST: it cannot be relied
 * on any more. */
static enum room make_room(struct spool *spool, uint64_t bytes, bool for_inserts, struct err *err)
{
    uint64_t segment_bytes = spool->options.segment_bytes;
    uint64_t limit = for_inserts ? segment_bytes - segment_bytes / MARKS_SHARE : segment_bytes;
    if (spool->current != NULL && spool->current->bytes + spool->out.len + bytes <= limit)
        return ROOM;
    if (for_inserts && !has_room_for_inserts(spool, MAX(segment_bytes, SPOOL_FILE_HEAD_BYTES + bytes), err))
        return NO_ROOM;
    if (spool->current != NULL && spool->current->bytes + spool->out.len <= SPOOL_FILE_HEAD_BYTES)
        return ROOM; /* it is too large for any segment: it has one of its own */
    if (spool->current != NULL && !end_segment(spool, err))
        return ROOM_LOST;
    return open_segment(spool, for_inserts ? INSERTS : MARKS, err) ? ROOM : NO_ROOM;
}

static bool write_record(struct spool *spool, enum spool_kind kind, struct str payload, struct err *err)
{
    if (make_room(spool, spool_record_bytes(payload.len), false, err) != ROOM)
        return false;
    add_record(spool, kind, payload);
    return spool->out.len < OUT_BYTES || append_out(spool, err);
}

static bool write_marks(struct spool *spool, const struct ranges *marks, struct err *err)
{
    struct strbuf payload = { 0 };
    if (marks->count == 0)
        return true;
    ranges_print(marks, &payload);
    bool ok = write_record(spool, SPOOL_DONE, strbuf_view(&payload), err);
    strbuf_fini(&payload);
    return ok;
}

static bool write_seals(struct spool *spool, const struct list *seals, struct err *err)
{
    struct strbuf payload = { 0 };
    bool ok = true;
    LIST_EACH (node, seals) {
        const struct batch *batch = LIST_ENTRY(node, struct seal, link)->batch;
        strbuf_clear(&payload);
        varint_add_text(&payload, str_of(batch->id));
        ranges_print(&batch->spooled, &payload);
        ok = ok && write_record(spool, SPOOL_BATCH, strbuf_view(&payload), err);
    }
    strbuf_fini(&payload);
    return ok;
}

static enum room write_insert(struct spool *spool, struct insert *insert, struct strbuf *start, struct err *err)
{
    struct str body = str_make(insert->body == NULL ? "" : insert->body, insert->body_bytes);
    strbuf_clear(start);
    spool_insert_print(start, insert);
    enum room room = make_room(spool, spool_record_bytes(start->len + body.len), true, err);
    if (room != ROOM)
        return room;
    struct spool_record record = {
        .kind = SPOOL_INSERT, .commit = spool->commit, .sequence = spool->sequence_next, .payload = strbuf_view(start)
    };
    insert->spool_sequence = spool->sequence_next++;
    spool->current->count++;
    uint32_t crc = crc32c(spool_record_start(&spool->out, spool->id, &record, body.len), body);
    bool ok = true;
    if (body.len < DIRECT_BYTES)
        strbuf_add(&spool->out, body);
    else
        ok = append_out(spool, err) && append(spool, body, err);
    spool_record_finish(&spool->out, crc, start->len + body.len);
    return ok && (spool->out.len < OUT_BYTES || append_out(spool, err)) ? ROOM : ROOM_LOST;
}

/* Those for which there is no room go to refused. */
static bool write_inserts(struct spool *spool, struct commit *c, struct list *inserts, struct list *refused,
                          struct err *err)
{
    struct strbuf start = { 0 };
    enum room room = ROOM;
    LIST_EACH_SAFE (node, inserts) {
        struct insert *insert = LIST_ENTRY(node, struct insert, link);
        if (c->refused_err.code == ERR_OK)
            room = write_insert(spool, insert, &start, err);
        if (room == ROOM_LOST)
            break;
        if (room == NO_ROOM && c->refused_err.code == ERR_OK)
            c->refused_err = *err;
        if (c->refused_err.code != ERR_OK) {
            list_remove(node);
            list_push_back(refused, node);
        }
    }
    strbuf_fini(&start);
    return room != ROOM_LOST;
}

static bool must_sync(const struct spool *spool, const struct commit *c, uint64_t now_ns)
{
    return !list_empty(&c->inserts) || !list_empty(&c->spills) || !list_empty(&c->seals) ||
           c->syncs_asked > spool->syncs_done || (spool->marks_sync_ns != 0 && now_ns >= spool->marks_sync_ns);
}

static bool write_commit(struct spool *spool, struct commit *c, uint64_t now_ns, struct err *err)
{
    spool->commit++;
    c->first_sequence = spool->sequence_next;
    if (!write_marks(spool, &c->marks, err) || !write_seals(spool, &c->seals, err) ||
        !write_inserts(spool, c, &c->inserts, &c->refused, err) ||
        !write_inserts(spool, c, &c->spills, &c->refused_spills, err))
        return false;
    if (spool->file == NULL) {
        c->synced = true; /* nothing is open: what was written before is safe */
        return true;
    }
    if (!append_out(spool, err))
        return false;
    c->synced = must_sync(spool, c, now_ns);
    return !c->synced || sync_current(spool, err);
}

/* ---- a commit: its end ---- */

/* It had been acknowledged as buffered, and a stop was to save it. */
static void lose(struct spool *spool, const struct insert *insert, const struct err *err)
{
    log_error("insert lost: query_id=%s table=" STR_FMT "." STR_FMT " bytes=%zu code=%d reason=\"%s\"",
              insert->query_id, STR_ARG(insert->shape->database), STR_ARG(insert->shape->table), insert->body_bytes,
              (int)err->code, err->text);
    struct ledger_entry entry = { .lost_reason = err_name(err->code) };
    ledger_add(&entry, insert->account, LEDGER_LOST, 1, insert->rows_framed);
    ledger_post(spool->options.ledger, &entry, insert->shape->full_name);
}

void spool_refuse(struct spool *spool, struct insert *insert, const struct err *err)
{
    insert->outcome = err_verdict(err->code) == ERR_UNKNOWN ? INSERT_UNKNOWN : INSERT_REJECTED;
    insert->err = *err;
    if (insert->spooled != NULL)
        insert->spooled(insert->context, err);
    else if (insert->done != NULL)
        insert->done(insert->context, insert);
    else
        lose(spool, insert, err);
    insert_free(insert);
}

/* room: the buffers still reserve it for them. */
static void refuse_all(struct spool *spool, struct list *inserts, const struct err *err, bool room)
{
    LIST_EACH_SAFE (node, inserts) {
        struct insert *insert = LIST_ENTRY(node, struct insert, link);
        list_remove(node);
        if (room)
            buffers_release(spool->buffers, insert);
        spool_refuse(spool, insert, err);
    }
}

static void end_seals(struct commit *c, bool ok, const struct err *err)
{
    LIST_EACH_SAFE (node, &c->seals) {
        struct seal *seal = LIST_ENTRY(node, struct seal, link);
        list_remove(node);
        if (!ok)
            seal->err = *err;
        seal->ok = ok;
        seal->over = true;
    }
}

struct segment *segment_of(struct spool *spool, uint64_t sequence)
{
    for (struct list *node = spool->segments.prev; node != &spool->segments; node = node->prev) {
        struct segment *segment = LIST_ENTRY(node, struct segment, link);
        if (sequence >= segment->first && sequence - segment->first < segment->count)
            return segment;
    }
    return NULL;
}

static void account_insert(struct spool *spool, const struct insert *insert, bool waits)
{
    struct segment *segment = segment_of(spool, insert->spool_sequence);
    must(segment != NULL);
    segment->undone++;
    spool->stats.undone++;
    if (!waits) {
        segment_settle(segment, insert->spool_sequence);
        return;
    }
    segment->waiting++;
    spool->stats.on_disk_only++;
}

/* Marks of what has gone with its segment are of no interest. */
static void account_marks(struct spool *spool, const struct ranges *marks)
{
    LIST_EACH (node, &spool->segments) {
        struct segment *segment = LIST_ENTRY(node, struct segment, link);
        if (segment->count == 0)
            continue;
        uint64_t end = segment->first + segment->count - 1;
        for (size_t i = 0; i < marks->count; i++) {
            uint64_t from = MAX(marks->items[i].first, segment->first), to = MIN(marks->items[i].last, end);
            if (from > to)
                continue;
            must(to - from < segment->undone);
            segment->undone -= to - from + 1;
            spool->stats.undone -= to - from + 1;
        }
    }
}

static size_t account_commit(struct spool *spool, struct commit *c)
{
    size_t inserts = 0;
    mutex_lock(&spool->lock);
    LIST_EACH (node, &c->inserts) {
        account_insert(spool, LIST_ENTRY(node, struct insert, link), false);
        inserts++;
    }
    LIST_EACH (node, &c->spills) {
        account_insert(spool, LIST_ENTRY(node, struct insert, link), true);
        inserts++;
    }
    if (c->synced) {
        LIST_EACH (node, &spool->segments) {
            struct segment *segment = LIST_ENTRY(node, struct segment, link);
            segment->synced = segment->bytes;
        }
        account_marks(spool, &spool->marks_appended);
        ranges_fini(&spool->marks_appended);
        spool->marks_sync_ns = 0;
        spool->syncs_done = c->syncs_asked;
    }
    end_seals(c, true, NULL);
    cond_broadcast(&spool->changed);
    mutex_unlock(&spool->lock);
    return inserts;
}

static void post_accepted(struct spool *spool, struct list *inserts)
{
    LIST_EACH (node, inserts)
        ledger_taken(spool->options.ledger, LIST_ENTRY(node, struct insert, link));
}

/* All of it is safe: it goes on, and is told. */
static void publish(struct spool *spool, struct commit *c, uint64_t now_ns)
{
    ranges_join(&spool->marks_appended, &c->marks);
    if (!c->synced && spool->marks_sync_ns == 0)
        spool->marks_sync_ns = now_ns + MARKS_SYNC_NS;
    size_t inserts = account_commit(spool, c);
    bool spilled = !list_empty(&c->spills);
    if (inserts > 0) {
        metric_observe(METRIC_SPOOL_SYNC_INSERTS, (double)inserts);
        spool->inserted_ns = now_ns;
    }
    post_accepted(spool, &c->inserts);
    LIST_EACH (node, &c->spills)
        if (LIST_ENTRY(node, struct insert, link)->account == LEDGER_ACCEPTED)
            LIST_ENTRY(node, struct insert, link)->rows_framed = 0; /* the reader will count them */
    post_accepted(spool, &c->spills);
    LIST_EACH_SAFE (node, &c->inserts) {
        struct insert *insert = LIST_ENTRY(node, struct insert, link);
        void (*spooled)(void *context, const struct err *err) = insert->spooled;
        void *context = insert->context;
        list_remove(node);
        buffers_put_reserved(spool->buffers, insert, now_ns); /* first: it gives the batch id */
        if (spooled != NULL)
            spooled(context, NULL);
    }
    LIST_EACH_SAFE (node, &c->spills) {
        struct insert *insert = LIST_ENTRY(node, struct insert, link);
        list_remove(node);
        if (insert->spooled != NULL)
            insert->spooled(insert->context, NULL);
        else if (insert->done != NULL)
            insert->done(insert->context, insert);
        insert_free(insert);
    }
    CRASH_POINT("spool.told");
    if (spilled)
        spool->options.wake_reader(spool->options.context);
}

static void note_disk_error(struct spool *spool, const struct err *err, uint64_t now_ns)
{
    metric_series_add(metric_series1(METRIC_DISK_ERRORS, STR("spool")), 1);
    log_error("spool commit failed, its segment is closed: code=%d reason=\"%s\"", (int)err->code, err->text);
    if (err->code == ERR_NOT_ENOUGH_SPACE)
        return;
    if (spool->failed_ns != 0 && now_ns - spool->failed_ns < FAILURES_NS) {
        log_error("spool failed twice within a minute, nothing is taken until a restart");
        mutex_lock(&spool->lock);
        spool->broken = true;
        mutex_unlock(&spool->lock);
    }
    spool->failed_ns = now_ns;
}

static void abandon_segment(struct spool *spool)
{
    fs_discard(spool->options.fs, &spool->file);
    spool->current = NULL;
    strbuf_clear(&spool->out);
}

/* The inserts of the failed commit are not to count, whatever of them is in the file. */
static bool disown(struct spool *spool, uint64_t first_sequence, struct err *err)
{
    struct ranges sequences = { 0 };
    if (first_sequence == spool->sequence_next)
        return true;
    ranges_add(&sequences, first_sequence, spool->sequence_next - 1);
    bool ok = write_marks(spool, &sequences, err) && append_out(spool, err) && sync_current(spool, err);
    ranges_fini(&sequences);
    if (!ok)
        abandon_segment(spool);
    return ok;
}

static void give_up(struct spool *spool, struct commit *c, const struct err *why, uint64_t now_ns)
{
    struct err err = *why, again = { 0 };
    note_disk_error(spool, why, now_ns);
    abandon_segment(spool);
    spool->unpromised += spool->sequence_next - c->first_sequence;
    if (!disown(spool, c->first_sequence, &again)) {
        note_disk_error(spool, &again, now_ns);
        err_set(&err, ERR_UNKNOWN_STATUS_OF_INSERT, "it is not known whether this insert is kept: %s", why->text);
    } else {
        err_wrap(&err, "nothing of this insert is kept, the spool could not write it");
    }
    ranges_join(&c->marks, &spool->marks_appended); /* once more, elsewhere */
    ranges_fini(&spool->marks_appended);
    spool->marks_sync_ns = 0;
    mutex_lock(&spool->lock);
    for (uint64_t n = c->first_sequence; n < spool->sequence_next; n++)
        segment_settle(segment_of(spool, n), n); /* the reader is to pass over them */
    ranges_join(&spool->marks, &c->marks);
    spool->syncs_done = spool->syncs_failed = c->syncs_asked;
    end_seals(c, false, why);
    spool->writer_awake = false; /* it pauses: the disk may need a moment */
    cond_broadcast(&spool->changed);
    mutex_unlock(&spool->lock);
    refuse_all(spool, &c->inserts, &err, true);
    refuse_all(spool, &c->spills, &err, false);
}

/* ---- segments that go ---- */

static bool remove_segment(struct spool *spool, struct segment *segment)
{
    struct fs *fs = spool->options.fs;
    char path[PATH_BYTES];
    struct err err = { 0 };
    segment_path(spool, segment, "", path);
    if (!fs_unlink(fs, path, &err) && err.code != ERR_FILE_DOESNT_EXIST) {
        log_warn("spool segment cannot be removed: code=%d error=%s", (int)err.code, err.text);
        return false;
    }
    CRASH_POINT("spool.removed");
    mutex_lock(&spool->lock);
    list_remove(&segment->link);
    spool->stats.bytes -= segment->bytes;
    mutex_unlock(&spool->lock);
    segment_free(segment);
    spool->removed = true;
    return true;
}

/* Before the next one goes: marks about the last one may be in it. */
static bool make_removal_safe(struct spool *spool)
{
    struct err err = { 0 };
    if (spool->removed && !fs_sync_dir(spool->options.fs, spool->dir, &err)) {
        log_warn("removal of a spool segment is not safe yet: code=%d error=%s", (int)err.code, err.text);
        return false;
    }
    spool->removed = false;
    return true;
}

static bool is_done(struct spool *spool, const struct segment *segment)
{
    mutex_lock(&spool->lock);
    bool done = segment->undone == 0 && segment != spool->reading && !segment->unreadable && spool->holds == 0;
    mutex_unlock(&spool->lock);
    return done;
}

/* In order, since marks about one are in those behind it. */
static void remove_done(struct spool *spool)
{
    while (make_removal_safe(spool) && !list_empty(&spool->segments)) {
        struct segment *segment = LIST_ENTRY(spool->segments.next, struct segment, link);
        if (segment == spool->current || !is_done(spool, segment) || !remove_segment(spool, segment))
            break;
    }
    uint64_t floor = list_empty(&spool->segments) ? spool->sequence_next
                                                  : LIST_ENTRY(spool->segments.next, struct segment, link)->first;
    mutex_lock(&spool->lock);
    if (spool->holds == 0)
        spool->stats.floor = floor;
    mutex_unlock(&spool->lock);
}

static bool is_held(struct spool *spool)
{
    mutex_lock(&spool->lock);
    bool held = spool->holds > 0;
    mutex_unlock(&spool->lock);
    return held;
}

/* Nothing came for a while, and all is done: the last segment goes too. Returns when to look again. */
static uint64_t rest(struct spool *spool, uint64_t now_ns)
{
    if (spool->marks_sync_ns != 0)
        return spool->marks_sync_ns;
    if (is_held(spool))
        return now_ns + NS_PER_S;
    if (spool->current == NULL || spool->segments.next != &spool->current->link || !is_done(spool, spool->current))
        return UINT64_MAX;
    if (now_ns < spool->inserted_ns + IDLE_NS)
        return spool->inserted_ns + IDLE_NS;
    abandon_segment(spool);
    remove_done(spool);
    return UINT64_MAX;
}

/* ---- the writer ---- */

static bool take_commit(struct spool *spool, struct commit *c, uint64_t now_ns)
{
    *c = (struct commit){ 0 };
    list_init(&c->inserts);
    list_init(&c->spills);
    list_init(&c->seals);
    list_init(&c->refused);
    list_init(&c->refused_spills);
    mutex_lock(&spool->lock);
    list_splice(&c->inserts, &spool->queue);
    list_splice(&c->spills, &spool->spills);
    list_splice(&c->seals, &spool->seals);
    c->marks = spool->marks;
    spool->marks = (struct ranges){ 0 };
    c->syncs_asked = spool->syncs_asked;
    spool->spills_bytes = 0;
    bool any = must_sync(spool, c, now_ns) || c->marks.count > 0;
    spool->writer_awake = any;
    mutex_unlock(&spool->lock);
    return any;
}

uint64_t spool_step(struct spool *spool, uint64_t now_ns)
{
    struct commit c;
    struct err err = { 0 };
    if (!take_commit(spool, &c, now_ns)) {
        remove_done(spool);
        return rest(spool, now_ns);
    }
    bool written = write_commit(spool, &c, now_ns, &err);
    if (written)
        publish(spool, &c, now_ns);
    else
        give_up(spool, &c, &err, now_ns);
    refuse_all(spool, &c.refused, &c.refused_err, true);
    refuse_all(spool, &c.refused_spills, &c.refused_err, false);
    ranges_fini(&c.marks);
    remove_done(spool);
    return written ? now_ns : now_ns + AFTER_FAILURE_NS;
}

/* ---- what others ask of it ---- */

/* Under the lock. True: the caller wakes the writer once it has let go of it. */
static bool rouse(struct spool *spool)
{
    bool rests = !spool->writer_awake;
    spool->writer_awake = true;
    return rests;
}

static void wake_writer(struct spool *spool, bool rests)
{
    if (rests)
        spool->options.wake_writer(spool->options.context);
}

static bool may_spill(const struct spool *spool, uint64_t cost, struct err *err)
{
    uint64_t max = spool->options.queue_bytes_max;
    return spool->spills_bytes == 0 || (cost <= max && spool->spills_bytes <= max - cost) ||
           err_set(err, ERR_MEMORY_LIMIT_EXCEEDED,
                   "Memory limit (for inserts on their way to the spool) exceeded: %llu bytes wait",
                   (unsigned long long)spool->spills_bytes);
}

bool spool_has_room(struct spool *spool, uint64_t cost, struct err *err)
{
    mutex_lock(&spool->lock);
    bool ok = may_spill(spool, cost, err);
    mutex_unlock(&spool->lock);
    return ok;
}

static bool may_put(const struct spool *spool, const struct insert *insert, bool buffered, struct err *err)
{
    if (spool->broken)
        return err_set(err, ERR_CANNOT_WRITE_TO_FILE_DESCRIPTOR,
                       "The disk of the spool has failed: it takes nothing until a restart");
    if (insert->body_bytes > SPOOL_PAYLOAD_MAX - (1 << 20))
        return err_set(err, ERR_QUERY_IS_TOO_LARGE, "An insert of %zu bytes does not fit the spool",
                       insert->body_bytes);
    return buffered || may_spill(spool, insert_cost(insert), err);
}

bool spool_put(struct spool *spool, struct insert *insert, bool buffered, struct err *err)
{
    bool rests = false;
    mutex_lock(&spool->lock);
    bool ok = may_put(spool, insert, buffered, err);
    if (ok) {
        list_push_back(buffered ? &spool->queue : &spool->spills, &insert->link);
        if (!buffered)
            spool->spills_bytes += insert_cost(insert);
        rests = rouse(spool);
    }
    mutex_unlock(&spool->lock);
    wake_writer(spool, rests);
    return ok;
}

static int by_sequence(const void *a, const void *b)
{
    const struct insert *x = *(struct insert *const *)a, *y = *(struct insert *const *)b;
    return x->spool_sequence < y->spool_sequence ? -1 : x->spool_sequence > y->spool_sequence;
}

/* The order in which a start would bring them back. */
static void sort_members(struct batch *batch)
{
    struct insert **inserts = mem_alloc(batch->inserts_count * sizeof *inserts);
    size_t count = 0;
    LIST_EACH_SAFE (node, &batch->inserts) {
        inserts[count++] = LIST_ENTRY(node, struct insert, link);
        list_remove(node);
    }
    must(count == batch->inserts_count);
    qsort(inserts, count, sizeof *inserts, by_sequence);
    for (size_t i = 0; i < count; i++) {
        must(inserts[i]->spool_sequence != 0);
        list_push_back(&batch->inserts, &inserts[i]->link);
        ranges_add(&batch->spooled, inserts[i]->spool_sequence, inserts[i]->spool_sequence);
    }
    free(inserts);
}

bool spool_seal(struct spool *spool, struct batch *batch, struct err *err)
{
    struct seal seal = { .batch = batch };
    if (batch->spooled.count > 0)
        return true;
    sort_members(batch);
    mutex_lock(&spool->lock);
    list_push_back(&spool->seals, &seal.link);
    bool rests = rouse(spool);
    mutex_unlock(&spool->lock);
    wake_writer(spool, rests);
    mutex_lock(&spool->lock);
    while (!seal.over)
        cond_wait(&spool->changed, &spool->lock);
    mutex_unlock(&spool->lock);
    if (seal.ok)
        return true;
    *err = seal.err;
    ranges_fini(&batch->spooled);
    return false;
}

void spool_done(struct spool *spool, const struct ranges *sequences)
{
    mutex_lock(&spool->lock);
    ranges_join(&spool->marks, sequences);
    bool rests = rouse(spool);
    mutex_unlock(&spool->lock);
    wake_writer(spool, rests);
}

void spool_keep(struct spool *spool, uint64_t sequence)
{
    mutex_lock(&spool->lock);
    ranges_add(&spool->kept, sequence, sequence);
    spool->kept_again_ns = clock_mono_ns(spool->options.clock) + KEPT_AGAIN_NS;
    mutex_unlock(&spool->lock);
    spool->options.wake_reader(spool->options.context);
}

bool spool_sync(struct spool *spool)
{
    mutex_lock(&spool->lock);
    uint64_t asked = ++spool->syncs_asked;
    bool rests = rouse(spool);
    mutex_unlock(&spool->lock);
    wake_writer(spool, rests);
    mutex_lock(&spool->lock);
    while (spool->syncs_done < asked)
        cond_wait(&spool->changed, &spool->lock);
    bool ok = spool->syncs_failed < asked;
    mutex_unlock(&spool->lock);
    return ok;
}

void spool_hold(struct spool *spool, struct spool_file **files, size_t *count)
{
    size_t cap = 0;
    *files = NULL;
    *count = 0;
    mutex_lock(&spool->lock);
    spool->holds++;
    LIST_EACH (node, &spool->segments) {
        const struct segment *segment = LIST_ENTRY(node, struct segment, link);
        char path[PATH_BYTES];
        if (*count == cap) {
            cap = MAX(2 * cap, (size_t)16);
            *files = mem_realloc(*files, cap * sizeof **files);
        }
        struct spool_file *file = &(*files)[(*count)++];
        segment_path(spool, segment, "", path);
        snprintf(file->name, sizeof file->name, "%s", strrchr(path, '/') + 1);
        file->bytes = segment->synced;
    }
    mutex_unlock(&spool->lock);
}

void spool_release(struct spool *spool)
{
    mutex_lock(&spool->lock);
    must(spool->holds > 0);
    spool->holds--;
    mutex_unlock(&spool->lock); /* the writer looks again by itself: who takes a backup may have locks of its own */
}

bool spool_wait_read(struct spool *spool, uint64_t brought_back, uint64_t deadline_ns)
{
    bool in_time = true;
    mutex_lock(&spool->lock);
    while (spool->stats.brought_back < brought_back && in_time)
        in_time = cond_wait_until(&spool->changed, &spool->lock, deadline_ns);
    bool read = spool->stats.brought_back >= brought_back;
    mutex_unlock(&spool->lock);
    return read;
}

void spool_get_stats(struct spool *spool, struct spool_stats *stats)
{
    mutex_lock(&spool->lock);
    *stats = spool->stats;
    stats->bytes_max = spool->options.bytes_max;
    stats->broken = spool->broken;
    mutex_unlock(&spool->lock);
}

uint64_t spool_id(const struct spool *spool)
{
    return spool->id;
}

/* ---- life ---- */

static char *below(const char *dir, const char *name)
{
    struct strbuf path = { 0 };
    strbuf_add_text(&path, dir);
    strbuf_add_text(&path, name);
    return strbuf_take(&path);
}

struct spool *spool_new(const struct spool_options *options)
{
    struct spool *spool = NEW(struct spool);
    spool->options = *options;
    spool->options.segment_bytes = MAX(MIN(options->segment_bytes, options->bytes_max / 4), (uint64_t)4096);
    spool->data_dir = mem_strdup(options->data_dir);
    spool->dir = below(options->data_dir, "/spool");
    spool->damaged_dir = below(options->data_dir, "/damaged");
    mutex_init(&spool->lock, LOCK_SPOOL);
    cond_init(&spool->changed);
    list_init(&spool->segments);
    list_init(&spool->queue);
    list_init(&spool->spills);
    list_init(&spool->seals);
    list_init(&spool->batches);
    spool->sequence_next = spool->number_next = 1;
    return spool;
}

bool spool_open(const struct spool_options *options, struct spool **out, struct err *err)
{
    struct spool *spool = spool_new(options);
    if (!spool_scan(spool, err)) {
        spool_close(spool);
        return false;
    }
    while (spool->id == 0)
        spool->id = rng_next(options->rng);
    *out = spool;
    return true;
}

/* The last marks, and the end of the last segment, so that a start knows it to be complete. If something is left, the
 * head of a segment behind it says so once more, should that end be damaged. */
static void end_writing(struct spool *spool)
{
    struct err err = { 0 };
    spool->syncs_asked++;
    (void)spool_step(spool, clock_mono_ns(spool->options.clock));
    bool open = spool->file != NULL, ended = open && end_segment(spool, &err);
    if (open && !ended)
        note_disk_error(spool, &err, clock_mono_ns(spool->options.clock));
    abandon_segment(spool);
    remove_done(spool);
    if (ended && !list_empty(&spool->segments) && !open_segment(spool, NOTHING, &err))
        log_warn("no segment behind the last one of the spool: code=%d error=%s", (int)err.code, err.text);
    abandon_segment(spool);
}

void spool_close(struct spool *spool)
{
    if (spool == NULL)
        return;
    must(list_empty(&spool->queue) && list_empty(&spool->spills) && list_empty(&spool->seals));
    spool_reader_close(spool);
    if (spool->buffers != NULL)
        end_writing(spool);
    while (!list_empty(&spool->segments)) {
        struct segment *segment = LIST_ENTRY(spool->segments.next, struct segment, link);
        list_remove(&segment->link);
        segment_free(segment);
    }
    strbuf_fini(&spool->out);
    ranges_fini(&spool->marks);
    ranges_fini(&spool->marks_appended);
    ranges_fini(&spool->kept);
    ranges_fini(&spool->kept_before);
    ranges_fini(&spool->done);
    ranges_fini(&spool->stored);
    ranges_fini(&spool->missing);
    map_fini(&spool->batch_ids);
    cond_fini(&spool->changed);
    mutex_fini(&spool->lock);
    free(spool->data_dir);
    free(spool->dir);
    free(spool->damaged_dir);
    free(spool);
}
