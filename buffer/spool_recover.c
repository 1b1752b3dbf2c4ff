/* spool_recover.c: what a start finds in the spool, and how it comes back.
 *
 * Segments are read once to learn what is not done; then they serve, and the reader brings the inserts back from disk
 * as far as the buffers have room, in the order of their sequences. It does the same with what came when the buffers
 * were full. Batches that were recorded are held until all their inserts are read.
 *
 * A range without a record is the torn end of the last commit, which nobody was told of, or damage: records of a later
 * commit follow it, or the segment says that it was complete, or the head of the next one knows of more. Sequences are
 * given out without gaps, so the records around a range tell how many inserts it held. */
#include <stdio.h>
#include <stdlib.h>

#include "base/crash_points.h"
#include "base/log.h"
#include "base/metric.h"
#include "buffer/buffers.h"
#include "buffer/ledger.h"
#include "buffer/spool_impl.h"

#define FULL_AGAIN_NS (20 * NS_PER_MS) /* the buffers have no room: look again after */
#define UNREAD_AGAIN_NS (10 * NS_PER_S)
#define UNREAD_SEQUENCES (UINT64_C(1) << 32)
enum { STEP_RECORDS = 1000, STEP_BYTES = 4 << 20, SHAPES_KEPT = 1000, COPY_BYTES = 1 << 20 };

static const char damaged_spool[] = "damaged_spool"; /* why inserts are lost */

/* A range of a segment that holds no record. */
struct hole {
    uint64_t offset, bytes;
    uint64_t missing_first, missing; /* the inserts that were in it */
    uint32_t commit;                 /* of the record behind it; 0: nothing is behind it */
};

/* One segment while it is scanned. */
struct scan {
    struct spool *spool;
    struct segment *segment;
    struct fs_file *file;
    char path[PATH_BYTES];
    struct hole *holes;
    size_t holes_count;
    uint32_t commit; /* of the last record */
    bool first_known;
    bool ended;                         /* nothing in it is a torn end */
    const struct spool_file_head *next; /* of the segment behind it; NULL: there is none, or nobody can tell */
};

/* To whoever only looks; the daemon logs what it does about it. */
static void tell(const struct spool *spool, bool damage, const char *path, const char *why)
{
    spool->verify->found(spool->verify->context, damage, path, why);
}

static bool file_read(void *context, uint64_t offset, void *out, size_t bytes, size_t *got, struct err *err)
{
    struct scan *scan = context;
    return fs_read_at(scan->spool->options.fs, scan->file, offset, out, bytes, got, err);
}

/* ---- what the records say ---- */

static void note_hole(struct scan *scan, uint64_t offset, uint64_t bytes)
{
    scan->holes = mem_realloc(scan->holes, (scan->holes_count + 1) * sizeof scan->holes[0]);
    scan->holes[scan->holes_count++] = (struct hole){ .offset = offset, .bytes = bytes };
}

static void take_batch(struct spool *spool, struct str payload)
{
    struct ranges members = { 0 };
    struct str id;
    if (!spool_batch_parse(payload, &id, &members) || map_get(&spool->batch_ids, id) != NULL) {
        ranges_fini(&members);
        return;
    }
    struct kept_batch *batch = NEW(struct kept_batch);
    list_init(&batch->inserts);
    memcpy(batch->id, id.data, id.len);
    batch->members = members;
    list_push_back(&spool->batches, &batch->link);
    map_put(&spool->batch_ids, id, batch);
}

static void take_done(struct spool *spool, struct str payload)
{
    struct ranges done = { 0 };
    if (ranges_parse(payload, &done))
        ranges_join(&spool->done, &done);
    ranges_fini(&done);
}

/* A file of this length cannot have more inserts before it. */
static bool is_in_place(const struct segment *segment, const struct spool_record *record)
{
    return record->sequence >= segment->first &&
           record->sequence - segment->first <= segment->bytes / SPOOL_RECORD_HEAD_BYTES;
}

/* Whether the segment begins where the one before it ended, should its head not tell. */
static bool follows_another(const struct scan *scan)
{
    return !list_empty(&scan->spool->segments);
}

/* Inserts between the last record and this one are in the hole before it. */
static void meet_sequence(struct scan *scan, const struct spool_record *record)
{
    struct segment *segment = scan->segment;
    if (!scan->first_known && !(follows_another(scan) && is_in_place(segment, record)))
        segment->first = record->sequence;
    scan->first_known = true;
    uint64_t expected = segment->first + segment->count;
    bool after_hole = scan->holes_count > 0 && scan->holes[scan->holes_count - 1].commit == 0;
    if (record->sequence > expected && !after_hole) { /* bytes are gone */
        note_hole(scan, record->offset, 0);
        after_hole = true;
    }
    if (after_hole) {
        struct hole *hole = &scan->holes[scan->holes_count - 1];
        hole->commit = record->commit;
        hole->missing_first = expected;
        hole->missing = record->sequence > expected ? record->sequence - expected : 0;
    }
    if (record->sequence > expected)
        segment->count = record->sequence - segment->first;
}

/* Its checksum holds, so whoever wrote it was wrong. */
static const char *payload_fault(const struct spool_record *record)
{
    struct spool_insert insert;
    struct shape *shape = NULL;
    struct ranges sequences = { 0 };
    struct str id;
    struct err err;
    const char *why = NULL;
    switch (record->kind) {
    case SPOOL_INSERT:
        if (!spool_insert_parse(record->payload, &insert) || !shape_parse(insert.shape, &shape, &err))
            why = "an insert that cannot be understood";
        break;
    case SPOOL_BATCH:
        if (!spool_batch_parse(record->payload, &id, &sequences))
            why = "a batch that cannot be understood";
        break;
    case SPOOL_DONE:
        if (!ranges_parse(record->payload, &sequences))
            why = "a mark that cannot be understood";
        break;
    case SPOOL_END:
        break;
    }
    shape_unref(shape);
    ranges_fini(&sequences);
    return why;
}

static void take_record(struct scan *scan, const struct spool_record *record)
{
    const char *fault = scan->spool->verify == NULL ? NULL : payload_fault(record);
    if (fault != NULL)
        tell(scan->spool, true, scan->path, fault);
    meet_sequence(scan, record);
    scan->commit = record->commit;
    switch (record->kind) {
    case SPOOL_INSERT:
        if (record->sequence == scan->segment->first + scan->segment->count)
            scan->segment->count++;
        break;
    case SPOOL_BATCH:
        take_batch(scan->spool, record->payload);
        break;
    case SPOOL_DONE:
        take_done(scan->spool, record->payload);
        break;
    case SPOOL_END:
        scan->ended = true;
        break;
    }
}

/* ---- damage ---- */

static bool copy_range(struct scan *scan, const struct hole *hole, const char *name, struct err *err)
{
    struct spool *spool = scan->spool;
    struct strbuf bytes = { 0 };
    struct fs *fs = spool->options.fs;
    struct fs_file *out = NULL;
    char path[PATH_BYTES];
    bool ok = fs_make_dirs(fs, spool->damaged_dir, err) && path_join(path, spool->damaged_dir, "", name, err) &&
              fs_create(fs, path, &out, err);
    for (uint64_t at = 0, got = 1; ok && at < hole->bytes && got > 0; at += got) {
        size_t want = (size_t)MIN(hole->bytes - at, (uint64_t)COPY_BYTES), read = 0;
        strbuf_clear(&bytes);
        ok = fs_read_at(fs, scan->file, hole->offset + at, strbuf_room(&bytes, want), want, &read, err);
        strbuf_grew(&bytes, ok ? read : 0);
        ok = ok && fs_append(fs, out, strbuf_view(&bytes), err);
        got = read;
    }
    ok = ok && fs_sync(fs, out, err);
    strbuf_fini(&bytes);
    return fs_finish(fs, &out, ok, err);
}

/* The bytes are kept for people; the segment itself stays as it is. */
static void set_aside(struct scan *scan, const struct hole *hole)
{
    struct spool *spool = scan->spool;
    struct err err = { 0 };
    char name[128];
    snprintf(name, sizeof name, "spool-%016llx-%llu.bin", (unsigned long long)scan->segment->number,
             (unsigned long long)hole->offset);
    bool copied = copy_range(scan, hole, name, &err);
    CRASH_POINT("spool.set_aside");
    bool before = !copied && err.code == ERR_FILE_ALREADY_EXISTS; /* by an earlier start */
    if (copied)
        spool->stats.damaged++;
    log_error("spool damaged: file=%s offset=%llu bytes=%llu inserts=%llu copy=%s problem=\"%s\"", scan->path,
              (unsigned long long)hole->offset, (unsigned long long)hole->bytes, (unsigned long long)hole->missing,
              name, copied || before ? "" : err.text);
}

static void tell_hole(const struct scan *scan, const struct hole *hole, bool torn)
{
    char why[128];
    snprintf(why, sizeof why,
             torn ? "a commit that was not finished: %llu bytes at %llu"
                  : "%llu bytes at %llu hold no record; inserts that were there: %llu",
             (unsigned long long)hole->bytes, (unsigned long long)hole->offset, (unsigned long long)hole->missing);
    tell(scan->spool, !torn, scan->path, why);
}

/* Whoever wrote the next segment knew of all inserts before it. A gap that is larger than any segment is a jump over
 * one that could not be read. */
static void meet_next(struct scan *scan)
{
    uint64_t end = scan->segment->first + scan->segment->count;
    bool ends_early = scan->next != NULL && !scan->segment->unreadable && scan->next->first_sequence > end;
    uint64_t gap = ends_early ? scan->next->first_sequence - end : 0;
    if (gap == 0 || gap > UINT32_MAX || (scan->ended && gap <= scan->next->unpromised) ||
        (!scan->first_known && !follows_another(scan)))
        return;
    if (scan->holes_count == 0 || scan->holes[scan->holes_count - 1].commit != 0)
        note_hole(scan, scan->segment->bytes, 0);
    struct hole *hole = &scan->holes[scan->holes_count - 1];
    hole->missing_first = end;
    hole->missing = gap;
}

static bool may_be_torn(const struct scan *scan, const struct hole *hole)
{
    return !scan->ended && (hole->commit == 0 || hole->commit == scan->commit);
}

/* True: the end of the segment was torn when the next one was made, if it has been. Leaves for that one how many
 * inserts are not there. */
static bool is_torn(struct scan *scan)
{
    uint64_t count = 0;
    for (size_t i = 0; i < scan->holes_count; i++)
        count += may_be_torn(scan, &scan->holes[i]) ? scan->holes[i].missing : 0;
    scan->spool->unpromised = count;
    return scan->next == NULL || count <= scan->next->unpromised;
}

/* Those of a torn end count as done, nobody was told of them. */
static void judge_holes(struct scan *scan)
{
    bool end_is_torn = is_torn(scan);
    for (size_t i = 0; i < scan->holes_count; i++) {
        const struct hole *hole = &scan->holes[i];
        bool torn = end_is_torn && may_be_torn(scan, hole);
        struct ranges *to = torn ? &scan->spool->done : &scan->spool->missing;
        if (scan->spool->verify != NULL)
            tell_hole(scan, hole, torn);
        else if (torn)
            log_warn("torn end of the spool is cut off: file=%s offset=%llu bytes=%llu", scan->path,
                     (unsigned long long)hole->offset, (unsigned long long)hole->bytes);
        else
            set_aside(scan, hole);
        if (hole->missing > 0)
            ranges_add(to, hole->missing_first, hole->missing_first + hole->missing - 1);
    }
}

/* ---- one segment, all segments ---- */

static void note_unreadable(struct scan *scan, const struct err *err)
{
    scan->segment->unreadable = true;
    if (scan->spool->verify != NULL)
        tell(scan->spool, true, scan->path, err->text);
    else
        log_error("spool segment cannot be read: file=%s code=%d error=%s", scan->path, (int)err->code, err->text);
}

static void scan_records(struct scan *scan)
{
    struct spool_reader reader = { .read = file_read,
                                   .context = scan,
                                   .size = scan->segment->bytes,
                                   .spool = scan->spool->id,
                                   .at = SPOOL_FILE_HEAD_BYTES };
    struct spool_record record;
    struct err err = { 0 };
    enum spool_found found;
    while ((found = spool_reader_next(&reader, &record, &err)) == SPOOL_FOUND || found == SPOOL_BAD) {
        if (found == SPOOL_FOUND && (!scan->first_known || is_in_place(scan->segment, &record)))
            take_record(scan, &record);
        else
            note_hole(scan, record.offset, record.bytes);
    }
    spool_reader_fini(&reader);
    if (found == SPOOL_READ_ERROR)
        note_unreadable(scan, &err);
}

static bool read_head(struct fs *fs, struct fs_file *file, struct spool_file_head *head, struct err *err)
{
    char bytes[SPOOL_FILE_HEAD_BYTES];
    size_t got = 0;
    return fs_read_at(fs, file, 0, bytes, sizeof bytes, &got, err) &&
           (spool_file_head_parse(str_make(bytes, got), head) ||
            err_set(err, ERR_CORRUPTED_DATA, "this is no head of a segment"));
}

/* It is synced before the file has its name: what is wrong with it is damage. */
static void scan_head(struct scan *scan)
{
    struct spool_file_head head;
    struct err err;
    scan->first_known = read_head(scan->spool->options.fs, scan->file, &head, &err) && head.spool == scan->spool->id;
    if (scan->first_known) {
        scan->segment->first = head.first_sequence;
        return;
    }
    scan->ended = true;
    note_hole(scan, 0, MIN(scan->segment->bytes, (uint64_t)SPOOL_FILE_HEAD_BYTES));
}

/* next: as in struct scan. */
static void scan_segment(struct spool *spool, uint64_t number, const struct spool_file_head *next)
{
    struct scan scan = { .spool = spool, .segment = segment_new(number, spool->sequence_next), .next = next };
    struct fs *fs = spool->options.fs;
    struct err err = { 0 };
    segment_path(spool, scan.segment, "", scan.path);
    if (fs_open(fs, scan.path, &scan.file, &err) && fs_size(fs, scan.file, &scan.segment->bytes, &err)) {
        scan_head(&scan);
        if (spool->verify == NULL || !spool->verify->quick) {
            scan_records(&scan);
            meet_next(&scan);
        }
        judge_holes(&scan);
    } else {
        note_unreadable(&scan, &err);
    }
    fs_discard(fs, &scan.file);
    free(scan.holes);
    scan.segment->synced = scan.segment->bytes;
    spool->stats.bytes += scan.segment->bytes;
    spool->sequence_next = MAX(spool->sequence_next, scan.segment->first + scan.segment->count);
    if (scan.segment->unreadable) /* it may hold more: no sequence is to be given out twice */
        spool->sequence_next += UNREAD_SEQUENCES;
    spool->number_next = MAX(spool->number_next, number + 1);
    list_push_back(&spool->segments, &scan.segment->link);
}

/* Left by a crash while a segment was made. */
static void meet_temporary(struct spool *spool, const char *name)
{
    char path[PATH_BYTES];
    struct err err;
    if (!path_join(path, spool->dir, "", name, &err))
        return;
    if (spool->verify != NULL)
        tell(spool, false, path, "temporary, goes at the next start");
    else if (fs_unlink(spool->options.fs, path, &err))
        CRASH_POINT("spool.cleaned");
}

static void meet_stranger(struct spool *spool, const char *name)
{
    char path[PATH_BYTES];
    struct err err;
    if (spool->verify == NULL)
        log_error("file of another spool is left alone: file=%s/%s", spool->dir, name);
    else if (path_join(path, spool->dir, "", name, &err))
        tell(spool, false, path, "not this spool's");
}

/* The head of the segment with the name; NULL: it is none, or nothing can be learnt from it. */
static const struct spool_file_head *head_of(struct spool *spool, const char *name, struct spool_file_head *head)
{
    char path[PATH_BYTES];
    struct fs_file *file = NULL;
    struct err err;
    uint64_t id, number;
    bool ok = segment_name_parse(str_of(name), &id, &number) && id == spool->id &&
              path_join(path, spool->dir, "", name, &err) && fs_open(spool->options.fs, path, &file, &err) &&
              read_head(spool->options.fs, file, head, &err) && head->spool == id;
    fs_discard(spool->options.fs, &file);
    return ok ? head : NULL;
}

static void scan_names(struct spool *spool, const struct fs_names *names)
{
    uint64_t id, number;
    struct spool_file_head next;
    for (size_t i = 0; i < names->count; i++) {
        struct str name = str_of(names->names[i]);
        if (str_starts(name, STR("_tmp_")) ||
            str_is(name, "reserve")) /* of earlier versions; DATA/reserve is there now */
            meet_temporary(spool, names->names[i]);
        else if (segment_name_parse(name, &id, &number) && (spool->id == 0 || id == spool->id)) {
            spool->id = id;
            scan_segment(spool, number, i + 1 < names->count ? head_of(spool, names->names[i + 1], &next) : NULL);
        } else {
            meet_stranger(spool, names->names[i]);
        }
    }
}

/* Numbers of one set that the other has not. */
static struct ranges without(const struct ranges *numbers, const struct ranges *others)
{
    struct ranges left = { 0 };
    for (size_t i = 0; i < numbers->count; i++)
        for (uint64_t n = numbers->items[i].first; n <= numbers->items[i].last; n++)
            if (!ranges_has(others, n))
                ranges_add(&left, n, n);
    return left;
}

/* What no mark calls done by the end of the scan; nobody can bring it back, and so it is. */
static void give_missing_up(struct spool *spool)
{
    struct ranges undone = without(&spool->missing, &spool->done);
    ranges_join(&spool->done, &undone);
    ranges_fini(&spool->missing);
    spool->missing = undone;
}

bool spool_scan(struct spool *spool, struct err *err)
{
    struct fs_names names = { 0 };
    struct err none = { 0 };
    if (fs_list(spool->options.fs, spool->dir, &names, &none)) {
        scan_names(spool, &names);
        fs_names_fini(&names);
    } else if (none.code != ERR_FILE_DOESNT_EXIST) { /* to begin a new one beside it would lose what is there */
        *err = none;
        return err_wrap(err, "recover the spool");
    }
    if (spool->done.count > 0)
        spool->sequence_next = MAX(spool->sequence_next, spool->done.items[spool->done.count - 1].last + 1);
    give_missing_up(spool);
    return true;
}

/* ---- the look without a start ---- */

static bool check_head(struct fs *fs, const char *path, struct err *err)
{
    struct fs_file *file = NULL;
    struct spool_file_head head;
    bool ok = fs_open(fs, path, &file, err) && read_head(fs, file, &head, err);
    fs_discard(fs, &file);
    return ok;
}

bool spool_check(struct fs *fs, const char *data_dir, void (*report)(void *context, const char *path, const char *why),
                 void *context, struct err *err)
{
    char dir[PATH_BYTES], path[PATH_BYTES];
    struct fs_names names = { 0 };
    struct err why = { 0 };
    uint64_t id, number;
    if (!path_join(dir, data_dir, "", "spool", err))
        return false;
    if (!fs_list(fs, dir, &names, err))
        return err->code == ERR_FILE_DOESNT_EXIST;
    for (size_t i = 0; i < names.count; i++) {
        struct str name = str_of(names.names[i]);
        if (!segment_name_parse(name, &id, &number) || !path_join(path, dir, "", names.names[i], &why))
            continue;
        why.code = ERR_OK;
        if (!check_head(fs, path, &why) && why.code != ERR_FILE_DOESNT_EXIST) /* it was done meanwhile */
            report(context, path, why.text);
    }
    fs_names_fini(&names);
    return true;
}

void spool_found_stored(struct spool *spool, const struct ranges *sequences)
{
    ranges_join(&spool->stored, sequences);
}

/* ---- the start ---- */

/* What is done, or stored and soon marked so, does not wait. */
static void count_segment(struct spool *spool, struct segment *segment)
{
    for (uint64_t n = segment->first; n < segment->first + segment->count; n++) {
        bool done = ranges_has(&spool->done, n), stored = ranges_has(&spool->stored, n);
        segment->undone += !done;
        segment->waiting += !done && !stored;
        if (done || stored)
            segment_settle(segment, n);
        if (stored && !done)
            ranges_add(&spool->marks, n, n);
    }
    spool->stats.undone += segment->undone;
    spool->stats.on_disk_only += segment->waiting;
}

static bool waits(struct spool *spool, uint64_t sequence)
{
    const struct segment *segment = segment_of(spool, sequence);
    return segment != NULL && !segment_is_settled(segment, sequence);
}

static void kept_batch_free(struct kept_batch *batch)
{
    list_remove(&batch->link);
    while (!list_empty(&batch->inserts)) {
        struct insert *insert = LIST_ENTRY(batch->inserts.next, struct insert, link);
        list_remove(&insert->link);
        insert_free(insert);
    }
    ranges_fini(&batch->members);
    free(batch);
}

static int compare_members(const void *a, const void *b)
{
    const struct kept_member *x = a, *y = b;
    return (x->range.first > y->range.first) - (x->range.first < y->range.first);
}

/* A batch's ranges do not change until it is complete, and no two batches share a sequence. */
static void index_members(struct spool *spool)
{
    size_t count = 0;
    LIST_EACH (node, &spool->batches)
        count += LIST_ENTRY(node, struct kept_batch, link)->members.count;
    spool->members = mem_alloc(count * sizeof(spool->members[0]));
    LIST_EACH (node, &spool->batches) {
        struct kept_batch *batch = LIST_ENTRY(node, struct kept_batch, link);
        for (size_t i = 0; i < batch->members.count; i++)
            spool->members[spool->members_count++] = (struct kept_member){ batch->members.items[i], batch };
    }
    if (count > 1)
        qsort(spool->members, count, sizeof(spool->members[0]), compare_members);
}

/* The range that has the sequence, or NULL. */
static struct kept_member *member_of(struct spool *spool, uint64_t sequence)
{
    size_t low = 0, high = spool->members_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (spool->members[middle].range.last < sequence)
            low = middle + 1;
        else
            high = middle;
    }
    return low < spool->members_count && spool->members[low].range.first <= sequence ? &spool->members[low] : NULL;
}

/* Of each batch only what is to be brought back. */
static void trim_batches(struct spool *spool)
{
    LIST_EACH_SAFE (node, &spool->batches) {
        struct kept_batch *batch = LIST_ENTRY(node, struct kept_batch, link);
        struct ranges left = { 0 };
        for (size_t i = 0; i < batch->members.count; i++)
            for (uint64_t n = batch->members.items[i].first; n <= batch->members.items[i].last; n++)
                if (waits(spool, n))
                    ranges_add(&left, n, n);
        ranges_fini(&batch->members);
        batch->members = left;
        batch->missing = ranges_total(&left);
        if (batch->missing == 0)
            kept_batch_free(batch);
    }
}

void spool_start(struct spool *spool, struct buffers *buffers)
{
    struct ranges lost = without(&spool->missing, &spool->stored);
    spool->stats.lost = ranges_total(&lost);
    ranges_fini(&lost);
    if (spool->stored.count > 0)
        spool->sequence_next = MAX(spool->sequence_next, spool->stored.items[spool->stored.count - 1].last + 1);
    LIST_EACH (node, &spool->segments)
        count_segment(spool, LIST_ENTRY(node, struct segment, link));
    trim_batches(spool);
    index_members(spool);
    spool->stats.floor = list_empty(&spool->segments) ? spool->sequence_next
                                                      : LIST_ENTRY(spool->segments.next, struct segment, link)->first;
    struct ledger_entry entry = { .lost_reason = damaged_spool };
    ledger_add(&entry, LEDGER_RECOVERED_SPOOL, LEDGER_SPOOL, spool->stats.on_disk_only, 0);
    ledger_add(&entry, LEDGER_RECOVERED_SPOOL, LEDGER_LOST, spool->stats.lost, 0);
    ledger_post(spool->options.ledger, &entry, STR_EMPTY);
    spool->recovered_end = spool->sequence_next;
    if (!list_empty(&spool->segments))
        log_info("spool found: inserts=%llu stored_already=%llu bytes=%llu lost=%llu",
                 (unsigned long long)spool->stats.on_disk_only,
                 (unsigned long long)(spool->stats.undone - spool->stats.on_disk_only),
                 (unsigned long long)spool->stats.bytes, (unsigned long long)spool->stats.lost);
    ranges_fini(&spool->done);
    ranges_fini(&spool->stored);
    ranges_fini(&spool->missing);
    map_fini(&spool->batch_ids);
    spool->buffers = buffers;
    spool->options.wake_writer(spool->options.context);
    spool->options.wake_reader(spool->options.context);
}

/* ---- the reader ---- */

static bool reading_read(void *context, uint64_t offset, void *out, size_t bytes, size_t *got, struct err *err)
{
    struct spool *spool = context;
    return fs_read_at(spool->options.fs, spool->reading_file, offset, out, bytes, got, err);
}

static struct shape *shape_of_key(struct spool *spool, struct str key, struct err *err)
{
    struct shape *shape = map_get(&spool->shapes, key);
    if (shape != NULL)
        return shape;
    if (!shape_parse(key, &shape, err))
        return NULL;
    if (spool->shapes.count >= SHAPES_KEPT) {
        size_t at = 0;
        struct str old_key;
        void *old;
        while (map_next(&spool->shapes, &at, &old_key, &old))
            shape_unref(old);
        map_fini(&spool->shapes);
    }
    (void)map_put(&spool->shapes, key, shape);
    return shape;
}

static struct insert *insert_of_record(struct spool *spool, const struct spool_record *record, uint64_t now_ns,
                                       struct err *err)
{
    struct spool_insert from;
    if (!spool_insert_parse(record->payload, &from)) {
        err_set(err, ERR_CORRUPTED_DATA, "the record of an insert is malformed");
        return NULL;
    }
    struct shape *shape = shape_of_key(spool, from.shape, err);
    if (shape == NULL)
        return NULL;
    char *body = mem_alloc(from.body.len + 1);
    memcpy(body, from.body.data, from.body.len);
    body[from.body.len] = '\0';
    struct insert *insert = insert_new(shape, body, from.body.len);
    memcpy(insert->query_id, from.query_id.data, from.query_id.len);
    memcpy(insert->peer, from.peer.data, from.peer.len);
    insert->token = mem_zalloc(from.token.len + 1);
    memcpy(insert->token, from.token.data, from.token.len);
    insert->token_given = from.token_given;
    insert->arrival_ns = now_ns;
    insert->arrival_wall_ns = from.arrival_wall_ns;
    insert->spool_sequence = record->sequence;
    insert_count_rows(insert);
    insert->account = LEDGER_SPOOL;
    return insert;
}

static struct kept_batch *batch_of(struct spool *spool, uint64_t sequence)
{
    const struct kept_member *member = member_of(spool, sequence);
    return member == NULL ? NULL : member->batch;
}

static void batch_came(struct spool *spool, struct kept_batch *batch, uint64_t now_ns)
{
    if (--batch->missing > 0)
        return;
    for (size_t i = 0; i < batch->members.count; i++)
        member_of(spool, batch->members.items[i].first)->batch = NULL;
    if (!list_empty(&batch->inserts))
        buffers_put_batch(spool->buffers, batch->id, &batch->inserts, &batch->members, now_ns);
    kept_batch_free(batch);
}

static void now_settled(struct spool *spool, struct segment *segment, uint64_t sequence)
{
    mutex_lock(&spool->lock);
    segment_settle(segment, sequence);
    segment->waiting--;
    mutex_unlock(&spool->lock);
}

/* After the buffers have it, as who waits for that flushes them then. */
static void now_back(struct spool *spool)
{
    mutex_lock(&spool->lock);
    spool->stats.on_disk_only--;
    spool->stats.brought_back++;
    cond_broadcast(&spool->changed);
    mutex_unlock(&spool->lock);
}

static bool is_waiting(struct spool *spool, const struct segment *segment, uint64_t sequence)
{
    mutex_lock(&spool->lock);
    bool waiting = sequence >= segment->first && !segment_is_settled(segment, sequence);
    mutex_unlock(&spool->lock);
    return waiting;
}

/* Nobody knew them while it was on disk alone. */
static void book_rows(struct spool *spool, const struct insert *insert)
{
    mutex_lock(&spool->lock);
    bool booked = ranges_has(&spool->kept_before, insert->spool_sequence);
    mutex_unlock(&spool->lock);
    if (!booked)
        ledger_move(spool->options.ledger,
                    insert->spool_sequence < spool->recovered_end ? LEDGER_RECOVERED_SPOOL : LEDGER_ACCEPTED,
                    LEDGER_SPOOL, 0, insert->rows_framed, insert->shape->full_name);
}

/* It cannot be brought back: whoever waits for it does so no longer. */
static void give_insert_up(struct spool *spool, struct segment *segment, uint64_t sequence, uint64_t now_ns)
{
    struct kept_batch *batch = batch_of(spool, sequence);
    now_settled(spool, segment, sequence);
    if (batch != NULL)
        batch_came(spool, batch, now_ns);
    now_back(spool);
}

/* False: there is no room for it yet. An insert of which nobody can make sense (of a later version, say) stays in its
 * segment, and that on disk. */
static bool bring_back(struct spool *spool, struct segment *segment, const struct spool_record *record, uint64_t now_ns)
{
    struct err err = { 0 };
    struct insert *insert = insert_of_record(spool, record, now_ns, &err);
    if (insert == NULL) {
        log_error("insert stays in its segment of the spool: sequence=%llu code=%d error=%s",
                  (unsigned long long)record->sequence, (int)err.code, err.text);
        give_insert_up(spool, segment, record->sequence, now_ns);
        return true;
    }
    struct kept_batch *batch = batch_of(spool, record->sequence);
    if (batch == NULL && !buffers_reserve(spool->buffers, insert, &err)) {
        insert_free(insert);
        return false;
    }
    book_rows(spool, insert); /* first, as the next: the flusher may be done with it at once */
    now_settled(spool, segment, record->sequence);
    if (batch == NULL) {
        buffers_put_reserved(spool->buffers, insert, now_ns);
    } else {
        list_push_back(&batch->inserts, &insert->link);
        batch_came(spool, batch, now_ns);
    }
    now_back(spool);
    return true;
}

static void stop_reading(struct spool *spool)
{
    fs_discard(spool->options.fs, &spool->reading_file);
    strbuf_fini(&spool->reader.window); /* it may have held a large one */
    mutex_lock(&spool->lock);
    bool was = spool->reading != NULL;
    spool->reading = NULL;
    mutex_unlock(&spool->lock);
    if (was)
        spool->options.wake_writer(spool->options.context); /* it may remove the segment now */
}

/* The segment was read to its end, and these were not in it: it has been damaged since it was scanned or written. */
static void lose_rest(struct spool *spool, struct segment *segment, uint64_t now_ns)
{
    struct ranges lost = { 0 };
    for (uint64_t n = segment->first; segment->waiting > 0; n++) {
        if (!is_waiting(spool, segment, n))
            continue;
        ranges_add(&lost, n, n);
        give_insert_up(spool, segment, n, now_ns);
    }
    uint64_t count = ranges_total(&lost);
    log_error("spool damaged, inserts that were there cannot be read: segment=%llu inserts=%llu",
              (unsigned long long)segment->number, (unsigned long long)count);
    mutex_lock(&spool->lock);
    segment->unreadable = true;
    spool->stats.lost += count;
    mutex_unlock(&spool->lock);
    struct ledger_entry entry = { .lost_reason = damaged_spool };
    ledger_add(&entry, LEDGER_SPOOL, LEDGER_LOST, count, 0);
    ledger_post(spool->options.ledger, &entry, STR_EMPTY);
    spool_done(spool, &lost);
    ranges_fini(&lost);
}

/* Under the lock: those that were neither stored nor kept elsewhere are read again. */
static void try_kept_again(struct spool *spool, uint64_t now_ns)
{
    if (spool->kept.count == 0 || now_ns < spool->kept_again_ns)
        return;
    for (size_t i = 0; i < spool->kept.count; i++)
        for (uint64_t n = spool->kept.items[i].first; n <= spool->kept.items[i].last; n++) {
            struct segment *segment = segment_of(spool, n);
            segment_unsettle(segment, n);
            segment->waiting++;
            segment->read_at = SPOOL_FILE_HEAD_BYTES;
            spool->stats.on_disk_only++;
        }
    ranges_join(&spool->kept_before, &spool->kept);
    ranges_fini(&spool->kept);
}

/* The first segment with something to bring back. */
static struct segment *pick(struct spool *spool, uint64_t now_ns, uint64_t *again_ns)
{
    struct segment *picked = NULL;
    mutex_lock(&spool->lock);
    try_kept_again(spool, now_ns);
    LIST_EACH (node, &spool->segments) {
        struct segment *segment = LIST_ENTRY(node, struct segment, link);
        if (segment->waiting > 0) {
            picked = segment;
            break;
        }
    }
    if (picked != NULL)
        spool->reader.size = picked->synced;
    *again_ns = spool->kept.count > 0 ? spool->kept_again_ns : UINT64_MAX;
    bool other = picked != spool->reading;
    mutex_unlock(&spool->lock);
    if (!other)
        return picked;
    stop_reading(spool);
    mutex_lock(&spool->lock);
    spool->reading = picked; /* what waits is not done, so it is still there */
    mutex_unlock(&spool->lock);
    return picked;
}

static bool open_reading(struct spool *spool, const struct segment *segment, struct err *err)
{
    char path[PATH_BYTES];
    spool->reader.read = reading_read;
    spool->reader.context = spool;
    spool->reader.spool = spool->id;
    spool->reader.at = segment->read_at;
    if (spool->reading_file != NULL)
        return true;
    segment_path(spool, segment, "", path);
    return fs_open(spool->options.fs, path, &spool->reading_file, err);
}

enum refill { REFILL_MORE, REFILL_FULL, REFILL_END, REFILL_UNREADABLE };

static enum refill refill_some(struct spool *spool, struct segment *segment, uint64_t now_ns)
{
    struct spool_record record;
    struct err err = { 0 };
    uint64_t stop_at = spool->reader.at + STEP_BYTES;
    for (size_t i = 0; i < STEP_RECORDS && spool->reader.at < stop_at; i++) {
        enum spool_found found = spool_reader_next(&spool->reader, &record, &err);
        if (found == SPOOL_READ_ERROR) {
            log_error("spool segment cannot be read: segment=%llu code=%d error=%s",
                      (unsigned long long)segment->number, (int)err.code, err.text);
            return REFILL_UNREADABLE;
        }
        if (found == SPOOL_NO_MORE)
            return REFILL_END;
        if (found == SPOOL_FOUND && record.kind == SPOOL_INSERT && is_waiting(spool, segment, record.sequence) &&
            !bring_back(spool, segment, &record, now_ns)) {
            spool->reader.at = record.offset;
            return REFILL_FULL;
        }
    }
    return REFILL_MORE;
}

uint64_t spool_refill_step(struct spool *spool, uint64_t now_ns)
{
    struct buffers_stats buffers;
    struct err err = { 0 };
    uint64_t again_ns;
    struct segment *segment = pick(spool, now_ns, &again_ns);
    if (segment == NULL)
        return again_ns;
    buffers_get_stats(spool->buffers, &buffers);
    if (buffers.bytes > spool->options.refill_bytes_max)
        return now_ns + FULL_AGAIN_NS;
    if (!open_reading(spool, segment, &err)) {
        log_error("spool segment cannot be opened: code=%d error=%s", (int)err.code, err.text);
        return now_ns + UNREAD_AGAIN_NS;
    }
    enum refill result = refill_some(spool, segment, now_ns);
    mutex_lock(&spool->lock);
    segment->read_at = spool->reader.at;
    bool all = segment->waiting == 0, grown = segment->synced > spool->reader.size;
    mutex_unlock(&spool->lock);
    if (result == REFILL_END && !all && !grown)
        lose_rest(spool, segment, now_ns);
    if (result == REFILL_FULL)
        return now_ns + FULL_AGAIN_NS;
    return result == REFILL_UNREADABLE ? now_ns + UNREAD_AGAIN_NS : now_ns;
}

void spool_reader_close(struct spool *spool)
{
    size_t at = 0;
    struct str key;
    void *shape;
    fs_discard(spool->options.fs, &spool->reading_file);
    spool_reader_fini(&spool->reader);
    while (map_next(&spool->shapes, &at, &key, &shape))
        shape_unref(shape);
    map_fini(&spool->shapes);
    LIST_EACH_SAFE (node, &spool->batches)
        kept_batch_free(LIST_ENTRY(node, struct kept_batch, link));
    free(spool->members);
}
