/* sink_store.c: see sink_store.h. A batch becomes one block: each insert is parsed into it against the table's schema
 * of this moment; one that does not parse leaves no row and is refused alone. Where the table refuses the block, halves
 * of the batch are tried until the guilty insert is alone too. */
#include "gateway/sink_store.h"

#include <stdlib.h>
#include <time.h>

#include "format/column_utf8.h"
#include "format/parquet.h"
#include "format/rows.h"
#include "storage/store.h"

struct sink_store {
    struct sink sink;
    struct store *store;
    struct clock *clock;
    struct rng *rng;
    const atomic_bool *hurry;
    uint64_t block_bytes_max;
};

/* What one write works on. */
struct work {
    struct insert **taken; /* of the batch */
    size_t taken_count;
    const struct shape *shape;
    bool check_only;
    struct table *table;
    const struct table_def *def; /* of this moment */
    struct schema *schema;
    size_t *columns, columns_count;
    struct block block;
    size_t block_bytes;
    struct rows_memory *memory;
    struct table_member *members;
    struct insert **inserts; /* of members */
    size_t members_count;
};

static void refuse(struct insert *insert, const struct err *err, const struct rows_report *report)
{
    insert->outcome = INSERT_REJECTED;
    insert->err = *err;
    if (report == NULL)
        return;
    insert->error_row = report->error_row;
    memcpy(insert->error_column, report->error_column, sizeof(insert->error_column));
}

static void reset(const struct work *work)
{
    for (size_t i = 0; i < work->taken_count; i++) {
        struct insert *insert = work->taken[i];
        insert->outcome = INSERT_PENDING;
        insert->rows = insert->rows_bytes = insert->fields_skipped = insert->error_row = 0;
        insert->error_column[0] = '\0';
    }
}

static bool refuse_all(const struct work *work, const struct err *err)
{
    for (size_t i = 0; i < work->taken_count; i++)
        refuse(work->taken[i], err, NULL);
    return true;
}

static void block_start(struct work *work)
{
    const struct schema *schema = work->schema;
    block_init(&work->block, schema->columns_count);
    for (size_t i = 0; i < schema->columns_count; i++) {
        column_init(&work->block.columns[i], schema->columns[i].type);
        work->block.names[i] = schema->columns[i].name;
    }
}

/* Without a token the values are the identity of an insert whose rows have a time of their own, or of any where the
 * table's creator set the window: two bare events without a time are two events. What would not give the same rows
 * again (now(), ...) is never the same. */
static bool content_counts(const struct table_def *def, const struct rows_report *report)
{
    return def->settings.non_replicated_deduplication_window > 0 && !report->used_volatile &&
           (report->own_time || def->settings.deduplication_window_given);
}

static void add_member(struct work *work, struct insert *insert, size_t row_first, const struct rows_report *report)
{
    struct table_member *member = &work->members[work->members_count];
    *member = (struct table_member){ .row_first = row_first,
                                     .rows = (size_t)report->rows,
                                     .spool_sequence = insert->spool_sequence,
                                     .differs = report->used_volatile };
    work->inserts[work->members_count++] = insert;
    if (!work->shape->deduplicate)
        return;
    const struct table_def *def = work->def;
    if (insert->token_given) {
        member->token = str_of(insert->token);
    } else if (content_counts(def, report)) {
        member->content_known = true;
        member->content =
            block_content_hash(&work->block, def->stored_columns, def->stored->columns_count, row_first, member->rows);
    }
}

/* A small body can hold many rows (Parquet), so what a batch grows to does not follow from its bytes. One that finds no
 * room is to come again. */
static bool has_room(const struct sink_store *store, const struct work *work, struct err *err)
{
    return work->block_bytes <= store->block_bytes_max ||
           err_set(err, ERR_MEMORY_LIMIT_EXCEEDED,
                   "Memory limit (for the rows of one batch) exceeded: the inserts before this one take %zu bytes, the "
                   "maximum is %llu",
                   work->block_bytes, (unsigned long long)store->block_bytes_max);
}

/* What the table says of texts that are not UTF-8 (invalid_utf8). */
static bool take_text(struct work *work, size_t row_first, struct err *err)
{
    const struct table_def *def = work->def;
    for (size_t i = 0; i < def->stored->columns_count && def->settings.invalid_utf8 != INVALID_UTF8_KEEP; i++) {
        struct column *column = &work->block.columns[def->stored_columns[i]];
        if (column_is_utf8(column, row_first, work->block.rows))
            continue;
        if (def->settings.invalid_utf8 == INVALID_UTF8_REJECT)
            return err_set(err, ERR_CANNOT_PARSE_TEXT,
                           "a value of column " STR_FMT " is not UTF-8, and the table has invalid_utf8 = 'reject'",
                           STR_ARG(def->stored->columns[i].name));
        column_make_utf8(column, row_first);
    }
    return true;
}

static void parse_insert(struct sink_store *store, struct work *work, struct insert *insert)
{
    const struct shape *shape = work->shape;
    struct rows_target target = { .schema = work->schema,
                                  .columns = work->columns,
                                  .columns_count = work->columns_count,
                                  .settings = &shape->format_settings,
                                  .wall_ns = insert->arrival_wall_ns,
                                  .rng = store->rng,
                                  .memory = work->memory };
    struct rows_report report = { 0 };
    struct err err = { 0 };
    size_t row_first = work->block.rows, bytes_before = work->block_bytes;
    if (!has_room(store, work, &err) ||
        !rows_parse(shape->format, str_make(insert->body, insert->body_bytes), &target, &work->block, &report, &err)) {
        refuse(insert, &err, &report);
        return;
    }
    if (!parquet_times_fit(&work->block, row_first, work->def->settings.profile, &err) ||
        !take_text(work, row_first, &err)) {
        block_truncate(&work->block, row_first);
        refuse(insert, &err, NULL);
        return;
    }
    insert->fields_skipped = report.fields_skipped;
    work->block_bytes = block_bytes(&work->block);
    insert->rows_bytes = work->block_bytes - bytes_before;
    if (report.rows == 0) {
        insert->outcome = INSERT_STORED; /* nothing to store is stored at once */
        return;
    }
    add_member(work, insert, row_first, &report);
}

static void delay(struct sink_store *store, uint64_t delay_ns)
{
    uint64_t until_ns = clock_mono_ns(store->clock) + delay_ns;
    while (!atomic_load_explicit(store->hurry, memory_order_relaxed) && clock_mono_ns(store->clock) < until_ns) {
        struct timespec pause = { 0, 10 * (long)NS_PER_MS };
        nanosleep(&pause, NULL);
    }
}

static void verdicts(const struct work *work)
{
    for (size_t i = 0; i < work->members_count; i++) {
        const struct table_member *member = &work->members[i];
        struct insert *insert = work->inserts[i];
        if (member->failed) {
            refuse(insert, &member->err, NULL);
            continue;
        }
        insert->outcome = member->duplicate ? INSERT_DUPLICATE : INSERT_STORED;
        insert->rows = member->rows; /* a duplicate's rows count as written, as the engine has it */
    }
}

static bool store_members(struct sink_store *store, struct work *work, struct err *err)
{
    const struct shape_storing *storing = &work->shape->storing;
    struct table_insert_options options = { .keep_all_rows = storing->keep_all_rows,
                                            .any_partitions = storing->any_partitions,
                                            .partitions_given = storing->partitions_given,
                                            .partitions_max = storing->partitions_max,
                                            .parts_to_delay = storing->parts_to_delay,
                                            .parts_to_throw = storing->parts_to_throw,
                                            .block_rows = storing->block_rows,
                                            .join_rows = storing->join_rows,
                                            .join_bytes = storing->join_bytes,
                                            .check_only = work->check_only };
    uint64_t delay_ns = 0;
    if (work->members_count == 0)
        return true;
    if (!table_check_parts(work->table, &options, &delay_ns, err))
        return false;
    if (delay_ns > 0 && !work->check_only)
        delay(store, delay_ns);
    if (!table_insert(work->table, work->schema, &work->block, work->members, work->members_count, &options, err))
        return false;
    verdicts(work);
    return true;
}

/* Decides the taken inserts, or none of them. */
static bool write_block(struct sink_store *store, struct work *work, struct err *err)
{
    const struct shape *shape = work->shape;
    struct err problem = { 0 };
    bool ok = false;
    if (!store_table(store->store, shape->database, shape->table, &work->table, &problem))
        return refuse_all(work, &problem);
    work->def = table_def(work->table);
    work->schema = schema_ref(work->def->schema);
    work->columns = mem_alloc((work->schema->columns_count + 1) * sizeof(work->columns[0]));
    work->members = mem_zalloc(work->taken_count * sizeof(work->members[0]));
    work->inserts = mem_zalloc(work->taken_count * sizeof(struct insert *));
    work->memory = rows_memory_new();
    block_start(work);
    if (rows_resolve_columns(work->schema, shape->columns, shape->columns_count,
                             shape->format_settings.insert_allow_materialized_columns, work->columns,
                             &work->columns_count, &problem)) {
        for (size_t i = 0; i < work->taken_count; i++)
            parse_insert(store, work, work->taken[i]);
        ok = store_members(store, work, err);
    } else {
        ok = refuse_all(work, &problem);
    }
    if (!ok)
        reset(work);
    block_fini(&work->block);
    rows_memory_free(work->memory);
    free(work->inserts);
    free(work->members);
    free(work->columns);
    schema_unref(work->schema);
    table_unref(work->table);
    return ok;
}

/* What the table refuses for the sake of one insert is tried again by halves. */
static bool write_inserts(struct sink_store *store, const struct shape *shape, struct insert **inserts, size_t count,
                          bool check_only, struct err *err)
{
    struct work work = { .taken = inserts, .taken_count = count, .shape = shape, .check_only = check_only };
    if (count == 0 || write_block(store, &work, err))
        return true;
    if (err_verdict(err->code) != ERR_REJECT)
        return false;
    if (count == 1)
        return refuse_all(&work, err);
    size_t half = count / 2;
    return write_inserts(store, shape, inserts, half, check_only, err) &&
           write_inserts(store, shape, inserts + half, count - half, check_only, err);
}

static bool sink_store_write(struct sink *sink, struct batch *batch, struct err *err)
{
    struct insert **pending = mem_alloc(batch->inserts_count * sizeof(struct insert *));
    size_t count = 0;
    LIST_EACH (node, &batch->inserts) {
        struct insert *insert = LIST_ENTRY(node, struct insert, link);
        if (insert->outcome == INSERT_PENDING)
            pending[count++] = insert;
    }
    bool ok = write_inserts((struct sink_store *)(void *)sink, batch->shape, pending, count, false, err);
    free(pending);
    return ok;
}

void sink_store_check(struct sink *sink, struct insert *insert)
{
    struct err err = { 0 };
    if (!write_inserts((struct sink_store *)(void *)sink, insert->shape, &insert, 1, true, &err))
        refuse(insert, &err, NULL);
}

struct sink *sink_store_new(struct store *store, struct clock *clock, struct rng *rng, const atomic_bool *hurry,
                            uint64_t block_bytes_max)
{
    struct sink_store *sink = NEW(struct sink_store);
    sink->sink = (struct sink){ .name = "store", .write = sink_store_write };
    sink->store = store;
    sink->clock = clock;
    sink->rng = rng;
    sink->hurry = hurry;
    sink->block_bytes_max = block_bytes_max;
    return &sink->sink;
}

void sink_store_free(struct sink *sink)
{
    free(sink);
}
