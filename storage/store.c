/* store.c: opening the data directory, looking tables up, and the steps of background work. */
#include "storage/store.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/text.h"
#include "storage/store_impl.h"

enum { FORMAT_MAJOR = 1, FORMAT_MINOR = 1, PART_LOG_ROWS = 10000 };
#define MERGE_AGAIN_NS (1 * NS_PER_S)
#define CLEAN_AGAIN_NS (1 * NS_PER_S)
#define PUBLISH_AGAIN_NS (1 * NS_PER_S)

/* ---- FORMAT and LOCK ---- */

static bool write_format(struct store *store, struct err *err)
{
    struct strbuf text = { 0 };
    strbuf_addf(&text, "product=sluice\nmajor=%d\nminor=%d\nseed=%016llx\n", FORMAT_MAJOR, FORMAT_MINOR,
                (unsigned long long)rng_next(store->env.rng));
    strbuf_addf(&text, "crc32c=%08x\n", crc32c(0, strbuf_view(&text)));
    bool ok = fs_write_durably(store->env.fs, store->dir, "FORMAT", strbuf_view(&text), false, err);
    strbuf_fini(&text);
    return ok;
}

/* crc32c, over all before it, is the last line from minor version 1 on. */
static bool format_checks(struct str text, uint64_t minor)
{
    static const char mark[] = "crc32c=";
    ptrdiff_t at = str_find(text, STR("crc32c="));
    char expected[16];
    if (at == STR_NONE)
        return minor == 0;
    snprintf(expected, sizeof expected, "%08x\n", crc32c(0, str_sub(text, 0, (size_t)at)));
    return str_is(str_from(text, (size_t)at + sizeof mark - 1), expected);
}

bool store_check_format(struct str text, struct err *err)
{
    struct str whole = text, line, name;
    bool product = false, major = false;
    uint64_t minor = 0;
    while (str_cut(&text, '\n', &line)) {
        struct str value = line;
        uint64_t number = 0;
        if (!str_cut(&value, '=', &name))
            continue;
        if (str_is(name, "minor") && !str_to_u64(value, &minor))
            minor = UINT64_MAX;
        if (str_is(name, "product"))
            product = str_is(value, "sluice");
        if (str_is(name, "major") && str_to_u64(value, &number)) {
            if (number > FORMAT_MAJOR)
                return err_set(err, ERR_NOT_IMPLEMENTED, "the data is of format %llu, this version knows up to %d",
                               (unsigned long long)number, FORMAT_MAJOR);
            major = number == FORMAT_MAJOR;
        }
    }
    if (!product || !major)
        return err_set(err, ERR_CORRUPTED_DATA, "FORMAT does not say that this is Sluice's data");
    return format_checks(whole, minor) || err_set(err, ERR_CORRUPTED_DATA, "the checksum of FORMAT does not match");
}

/* *fresh: neither FORMAT nor a table is there. */
static bool check_format(struct fs *fs, const char *dir, bool *fresh, enum store_open_failure *why, struct err *err)
{
    char path[PATH_BYTES], tables[PATH_BYTES];
    struct strbuf text = { 0 };
    if (!path_join(path, dir, "", "FORMAT", err) || !path_join(tables, dir, "", "tables", err))
        return false;
    *fresh = !fs_exists(fs, path);
    if (*fresh) {
        if (!fs_exists(fs, tables))
            return true;
        *why = STORE_OPEN_FORMAT;
        return err_set(err, ERR_CORRUPTED_DATA, "%s has tables but no FORMAT", dir);
    }
    bool ok = fs_read_file(fs, path, FORMAT_BYTES_MAX, &text, err);
    if (ok && !store_check_format(strbuf_view(&text), err)) {
        *why = STORE_OPEN_FORMAT;
        ok = err_wrap(err, "%s", path);
    }
    strbuf_fini(&text);
    return ok;
}

static bool take_format(struct store *store, enum store_open_failure *why, struct err *err)
{
    bool fresh;
    return check_format(store->env.fs, store->dir, &fresh, why, err) && (!fresh || write_format(store, err));
}

bool store_check(struct fs *fs, const char *dir, enum store_open_failure *why, struct err *err)
{
    bool fresh;
    *why = STORE_OPEN_ERROR;
    return check_format(fs, dir, &fresh, why, err);
}

bool store_take_lock(struct fs *fs, const char *dir, struct fs_file **lock, bool *locked, struct err *err)
{
    char path[PATH_BYTES];
    *locked = false;
    if (!path_join(path, dir, "", "LOCK", err) || !fs_append_to(fs, path, lock, err))
        return false;
    *locked = !fs_lock(fs, *lock, err);
    return !*locked || err_wrap(err, "another process uses %s", dir);
}

static bool take_lock(struct store *store, enum store_open_failure *why, struct err *err)
{
    bool locked, ok = store_take_lock(store->env.fs, store->dir, &store->lock_file, &locked, err);
    if (locked)
        *why = STORE_OPEN_LOCKED;
    return ok;
}

bool store_count_damaged(struct fs *fs, const char *dir, uint64_t *count, struct err *err)
{
    struct fs_names names = { 0 };
    struct err why = { 0 };
    char path[PATH_BYTES];
    *count = 0;
    if (!path_join(path, dir, "", "damaged", err))
        return false;
    if (!fs_list(fs, path, &names, &why) && why.code != ERR_FILE_DOESNT_EXIST) {
        *err = why;
        return false;
    }
    for (size_t i = 0; i < names.count; i++)
        *count += !str_ends(str_of(names.names[i]), STR(".txt")) && names.names[i][0] != '_';
    fs_names_fini(&names);
    return true;
}

/* ---- opening and closing ---- */

/* 0 for what there is not, or comes from the future. */
static double age_s(int64_t now_wall_ns, int64_t wall_ns)
{
    return wall_ns == 0 || wall_ns > now_wall_ns ? 0 : (double)(now_wall_ns - wall_ns) / (double)NS_PER_S;
}

static void collect_table(struct table *table, int64_t now_wall_ns)
{
    struct table_stats stats;
    struct str name = table_full_name(table);
    table_get_stats(table, &stats);
    metric_series_set(metric_series(METRIC_PARTS, (struct str[]){ name, STR("active") }), (double)stats.parts_active);
    metric_series_set(metric_series(METRIC_PARTS, (struct str[]){ name, STR("old") }), (double)stats.parts_old);
    metric_series_set(metric_series1(METRIC_PARTS_PARTITION_MAX, name), (double)stats.parts_partition_max);
    metric_series_set(metric_series1(METRIC_TABLE_ROWS, name), (double)stats.rows);
    metric_series_set(metric_series1(METRIC_TABLE_BYTES, name), (double)stats.bytes);
    metric_series_set(metric_series1(METRIC_DEDUP_TOKENS, name), (double)stats.tokens);
    metric_series_set(metric_series1(METRIC_DEDUP_OLDEST_AGE, name), age_s(now_wall_ns, stats.oldest_token_wall_ns));
    if (!table_def(table)->settings.publish)
        return;
    metric_series_set(metric_series1(METRIC_DELTA_VERSION, name), (double)stats.delta_version);
    metric_series_set(metric_series1(METRIC_DELTA_UNPUBLISHED, name), (double)stats.parts_unpublished);
    metric_series_set(metric_series1(METRIC_PUBLISH_LAG, name), age_s(now_wall_ns, stats.unpublished_wall_ns));
    metric_series_set(metric_series1(METRIC_DELTA_STOPPED, name), stats.delta_stopped);
}

static void collect(void *context)
{
    struct store *store = context;
    struct table **tables = NULL;
    size_t count = 0;
    int64_t now_wall_ns = clock_wall_ns(store->env.clock);
    store_tables(store, STR_EMPTY, &tables, &count);
    for (size_t i = 0; i < count; i++) {
        collect_table(tables[i], now_wall_ns);
        table_unref(tables[i]);
    }
    free(tables);
    metric_set(METRIC_DAMAGED_FILES, (double)store_damaged(store));
}

static struct store *store_new(const struct store_options *options)
{
    struct store *store = NEW(struct store);
    struct strbuf path = { 0 };
    store->env = (struct table_env){ .fs = options->fs, .clock = options->clock, .rng = options->rng };
    store->env.merge_memory_left =
        (int64_t)(options->merge_memory == 0 ? MERGE_MEMORY_MAX : MIN(options->merge_memory, MERGE_MEMORY_MAX));
    store->dir = mem_strdup(options->dir);
    strbuf_addf(&path, "%s/tables", options->dir);
    store->tables_dir = strbuf_take(&path);
    strbuf_addf(&path, "%s/damaged", options->dir);
    store->env.damaged_dir = strbuf_take(&path);
    store->merge_threads = options->merge_threads;
    store->bytes_max = options->bytes_max;
    merge_budget_set(&store->env.merge_budget, options->merge_bytes_per_s);
    store->scrub_interval_ns = options->scrub_interval_ns;
    store->scrub_bytes_per_s = options->scrub_bytes_per_s;
    store->env.part_log = part_log_new(PART_LOG_ROWS);
    mutex_init(&store->ddl, LOCK_DDL);
    mutex_init(&store->lock, LOCK_STORE);
    return store;
}

static void store_free(struct store *store)
{
    catalog_close(store);
    fs_discard(store->env.fs, &store->lock_file);
    mutex_fini(&store->ddl);
    mutex_fini(&store->lock);
    part_log_free(store->env.part_log);
    free(store->env.damaged_dir);
    free(store->tables_dir);
    free(store->dir);
    free(store);
}

bool store_open(const struct store_options *options, struct store **out, enum store_open_failure *why, struct err *err)
{
    struct store *store = store_new(options);
    uint64_t began = clock_mono_ns(options->clock);
    *why = STORE_OPEN_ERROR;
    json_object_seed(0); /* else jansson does so when it is first used, by whatever threads there are then */
    bool ok =
        fs_make_dirs(options->fs, options->dir, err) && take_lock(store, why, err) && take_format(store, why, err) &&
        store_count_damaged(options->fs, options->dir, &store->env.damaged, err) &&
        fs_make_dirs(options->fs, store->env.damaged_dir, err) && fs_make_dirs(options->fs, store->tables_dir, err) &&
        store_backup_sweep(store, err) && catalog_open(store, err);
    if (!ok) {
        store_free(store);
        return err_wrap(err, "open %s", options->dir);
    }
    metric_set(METRIC_RECOVERY_SECONDS, (double)(clock_mono_ns(options->clock) - began) / (double)NS_PER_S);
    metric_collector(collect, store);
    *out = store;
    return true;
}

void store_close(struct store *store)
{
    if (store == NULL)
        return;
    store_cancel_merges(store);
    metric_collector_remove(collect, store);
    store_free(store);
}

const char *store_dir(const struct store *store)
{
    return store->dir;
}

struct part_log *store_part_log(struct store *store)
{
    return store->env.part_log;
}

uint64_t store_damaged(const struct store *store)
{
    return __atomic_load_n(&store->env.damaged, __ATOMIC_RELAXED);
}

void store_set_spool(struct store *store, uint64_t id, uint64_t floor)
{
    __atomic_store_n(&store->env.spool_id, id, __ATOMIC_RELAXED);
    __atomic_store_n(&store->env.spool_floor, floor, __ATOMIC_RELAXED);
}

static void add_stored(struct table *table, uint64_t spool_id, struct ranges *sequences)
{
    struct table_part_info *parts = NULL;
    size_t count = 0;
    table_parts(table, &parts, &count);
    for (size_t i = 0; i < count; i++) {
        if (parts[i].part->spool_id == spool_id)
            ranges_join(sequences, &parts[i].part->spooled);
        part_unref(parts[i].part);
    }
    free(parts);
}

void store_stored_inserts(struct store *store, uint64_t spool_id, struct ranges *sequences)
{
    struct table **tables = NULL;
    size_t count = 0;
    store_tables(store, STR_EMPTY, &tables, &count);
    for (size_t i = 0; i < count; i++) {
        add_stored(tables[i], spool_id, sequences);
        table_unref(tables[i]);
    }
    free(tables);
}

void store_add_damaged(struct store *store, uint64_t files)
{
    __atomic_add_fetch(&store->env.damaged, files, __ATOMIC_RELAXED);
}

/* ---- looking up ---- */

bool store_has_database(struct store *store, struct str database)
{
    mutex_lock(&store->lock);
    bool found = map_get(&store->databases, database) != NULL;
    mutex_unlock(&store->lock);
    return found;
}

/* A name that may have been meant, appended as the engine does. */
static bool unknown_table(struct store *store, struct str database, struct str name, struct err *err)
{
    struct table **tables = NULL;
    size_t count = 0;
    store_tables(store, database, &tables, &count);
    struct str *names = mem_alloc(count * sizeof *names);
    for (size_t i = 0; i < count; i++)
        names[i] = table_def(tables[i])->name;
    struct str near = str_closest(name, names, count);
    err_set(err, ERR_UNKNOWN_TABLE, "Table " STR_FMT "." STR_FMT " does not exist%s" STR_FMT "%s", STR_ARG(database),
            STR_ARG(name), near.len > 0 ? ". Maybe you meant " : "", STR_ARG(near), near.len > 0 ? "?" : "");
    free(names);
    for (size_t i = 0; i < count; i++)
        table_unref(tables[i]);
    free(tables);
    return false;
}

bool store_table(struct store *store, struct str database, struct str name, struct table **table, struct err *err)
{
    mutex_lock(&store->lock);
    struct database *found = map_get(&store->databases, database);
    struct table *t = found == NULL ? NULL : map_get(&found->tables, name);
    if (t != NULL)
        *table = table_ref(t);
    mutex_unlock(&store->lock);
    if (found == NULL)
        return err_set(err, ERR_UNKNOWN_DATABASE, "Database " STR_FMT " does not exist", STR_ARG(database));
    return t != NULL || unknown_table(store, database, name, err);
}

static int compare_tables(const void *a, const void *b)
{
    const struct table_def *x = table_def(*(struct table *const *)a), *y = table_def(*(struct table *const *)b);
    int order = str_cmp(x->database, y->database);
    return order != 0 ? order : str_cmp(x->name, y->name);
}

void store_tables(struct store *store, struct str database, struct table ***tables, size_t *count)
{
    size_t at = 0, cap = 0;
    struct str key;
    void *value;
    *tables = NULL;
    *count = 0;
    mutex_lock(&store->lock);
    while (map_next(&store->databases, &at, &key, &value)) {
        struct database *one = value;
        size_t inner = 0;
        if (database.len > 0 && !str_eq(database, key))
            continue;
        while (map_next(&one->tables, &inner, &key, &value)) {
            if (*count == cap) {
                cap = cap == 0 ? 16 : cap * 2;
                *tables = mem_realloc(*tables, cap * sizeof **tables);
            }
            (*tables)[(*count)++] = table_ref(value);
        }
    }
    mutex_unlock(&store->lock);
    if (*count > 1)
        qsort(*tables, *count, sizeof **tables, compare_tables);
}

static int compare_names(const void *a, const void *b)
{
    return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

void store_databases(struct store *store, struct arena *arena, struct str **names, size_t *count)
{
    size_t at = 0;
    struct str key;
    void *value;
    mutex_lock(&store->lock);
    *names = ARENA_ARRAY(arena, struct str, store->databases.count + 1);
    *count = 0;
    while (map_next(&store->databases, &at, &key, &value))
        (*names)[(*count)++] = arena_dup(arena, key);
    mutex_unlock(&store->lock);
    if (*count > 1)
        qsort(*names, *count, sizeof **names, compare_names);
}

/* ---- background ---- */

static bool take_merge_slot(struct store *store, size_t *turn)
{
    mutex_lock(&store->lock);
    bool ok = store->merges_running < store->merge_threads;
    store->merges_running += ok;
    *turn = store->merge_turn++;
    metric_set(METRIC_MERGES_RUNNING, (double)store->merges_running);
    mutex_unlock(&store->lock);
    return ok;
}

static void give_merge_slot(struct store *store)
{
    mutex_lock(&store->lock);
    store->merges_running--;
    metric_set(METRIC_MERGES_RUNNING, (double)store->merges_running);
    mutex_unlock(&store->lock);
}

uint64_t store_merge_step(struct store *store, uint64_t now_ns)
{
    struct table **tables = NULL;
    size_t count = 0, turn = 0;
    uint64_t again_ns = now_ns + MERGE_AGAIN_NS;
    bool merged = false;
    if (!take_merge_slot(store, &turn))
        return again_ns;
    store_tables(store, STR_EMPTY, &tables, &count);
    for (size_t i = 0; i < count; i++) {
        uint64_t table_again_ns = again_ns;
        struct table *table = tables[(i + turn) % count];
        if (!merged && table_merge_step(table, now_ns, &table_again_ns))
            merged = true;
        again_ns = MIN(again_ns, table_again_ns);
    }
    for (size_t i = 0; i < count; i++)
        table_unref(tables[i]);
    free(tables);
    give_merge_slot(store);
    return merged ? now_ns : again_ns;
}

uint64_t store_clean_step(struct store *store, uint64_t now_ns)
{
    struct table **tables = NULL;
    size_t count = 0;
    uint64_t again_ns = now_ns + CLEAN_AGAIN_NS;
    store_tables(store, STR_EMPTY, &tables, &count);
    for (size_t i = 0; i < count; i++) {
        uint64_t table_again_ns = table_clean_step(tables[i], now_ns);
        uint64_t bytes_max = table_def(tables[i])->settings.max_bytes;
        again_ns = MIN(again_ns, table_again_ns);
        if (bytes_max > 0)
            store_keep_cap(&tables[i], 1, bytes_max);
    }
    if (store->bytes_max > 0)
        store_keep_cap(tables, count, store->bytes_max);
    for (size_t i = 0; i < count; i++)
        table_unref(tables[i]);
    free(tables);
    return again_ns;
}

uint64_t store_publish_step(struct store *store, uint64_t now_ns, bool force)
{
    struct table **tables = NULL;
    size_t count = 0;
    uint64_t again_ns = now_ns + PUBLISH_AGAIN_NS;
    store_tables(store, STR_EMPTY, &tables, &count);
    for (size_t i = 0; i < count; i++) {
        uint64_t table_again_ns = table_publish_step(tables[i], now_ns, force);
        again_ns = MIN(again_ns, table_again_ns);
        table_unref(tables[i]);
    }
    free(tables);
    return again_ns;
}

void store_set_merge_rate(struct store *store, uint64_t bytes_per_s)
{
    merge_budget_set(&store->env.merge_budget, bytes_per_s);
}

void store_cancel_merges(struct store *store)
{
    __atomic_store_n(&store->env.cancel, 1, __ATOMIC_RELAXED);
}

void store_on_merge_wanted(struct store *store, void (*wake)(void *context), void *context)
{
    store->env.wake = (struct table_wake){ wake, context };
}
