/* test_verify.c: what was written verifies, and nothing else does. SLUICE_FLIPS=n flips n bits (300). */
#include "sim/fs_sim.h"
#include "storage/verify.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/random_block.h"
#include "tests/unit/storage/sim_fixture.h"

struct found {
    size_t count;
    struct strbuf text;
};

static void note(void *context, const struct verify_finding *finding)
{
    struct found *found = context;
    found->count++;
    strbuf_addf(&found->text, "%s %s: %s\n", finding->kind == VERIFY_DAMAGE ? "damage" : "leftover", finding->path,
                finding->why);
}

static struct verify_totals verify(struct fixture *f, bool quick, struct found *found)
{
    struct verify_options options = { .fs = f->fs, .dir = f->dir, .quick = quick, .found = note, .context = found };
    struct verify_totals totals;
    struct err err = { 0 };
    bool locked = true;
    if (!store_verify(&options, &totals, &locked, &err))
        stop("verify", &err);
    assert_false(locked);
    return totals;
}

static void found_fini(struct found *found)
{
    strbuf_fini(&found->text);
}

/* Every kind of file: two databases, parts of one and several partitions, merged, replaced, detached, with tokens; a
 * published table whose log has a checkpoint; a backup. */
static void fill(struct fixture *f)
{
    static const struct row rows[] = { { 1, 1, "a" }, { 2, 2, "b" }, { 1, 3, "c" } };
    ddl(f, "CREATE DATABASE d COMMENT 'the other one'");
    ddl(f,
        "CREATE TABLE t (p Int32, k UInt64, s String, x Nullable(Float64) DEFAULT k / 2, a Array(String) DEFAULT [s], "
        "u UUID DEFAULT generateUUIDv4()) PARTITION BY p ORDER BY k");
    ddl(f, "CREATE TABLE u (p Int32, k UInt64, s String) ENGINE = ReplacingMergeTree ORDER BY (k, s) COMMENT 'x'");
    struct table *t = find_table(f, "t"), *u = find_table(f, "u");
    for (size_t i = 0; i < 3; i++) {
        char token[8];
        snprintf(token, sizeof token, "t%zu", i);
        insert(t, rows, 2 + i % 2, token);
        insert(u, rows, 3, token);
    }
    ddl(f, "ALTER TABLE t ADD COLUMN y String DEFAULT concat(s, '!') AFTER p");
    ddl(f, "OPTIMIZE TABLE u FINAL");
    ddl(f, "OPTIMIZE TABLE t PARTITION 2 FINAL");
    ddl(f, "ALTER TABLE t DETACH PART '1_1_1_0'");
    clock_manual_advance(&f->clock, 500 * NS_PER_S);
    store_clean_step(f->store, f->clock.mono);
    table_unref(t);
    table_unref(u);
    ddl(f, "CREATE TABLE v (p Int32, k UInt64, s String) PARTITION BY p ORDER BY k SETTINGS publish = 'delta', "
           "publish_checkpoint_interval = 2, publish_log_retention = 2147483647");
    struct table *v = find_table(f, "v");
    for (size_t i = 0; i < 4; i++) {
        insert(v, rows, 2, "");
        store_publish_step(f->store, f->clock.mono, true);
    }
    table_unref(v);
    ddl(f, "BACKUP ALL TO File('b')");
}

static int setup(void **state)
{
    (void)fixture_setup(state);
    fill(*state);
    return 0;
}

static void what_was_written_verifies(void **state)
{
    struct fixture *f = *state;
    struct found found = { 0 };
    fixture_close(f);
    struct verify_totals totals = verify(f, false, &found);
    if (found.count > 0)
        fail_msg("%s", strbuf_cstr(&found.text));
    assert_int_equal(totals.databases, 2);
    assert_int_equal(totals.tables, 3);
    assert_int_equal(totals.parts, 4 + 8); /* two of t's partition 1, one of 2, one of u; those of v */
    assert_int_equal(totals.backups, 1);
    assert_int_equal(totals.detached, 1);
    assert_int_equal(totals.damaged + totals.leftovers, 0);
    found_fini(&found);
}

static void a_running_daemon_keeps_others_out(void **state)
{
    struct fixture *f = *state;
    struct found found = { 0 };
    struct verify_options options = { .fs = f->fs, .dir = f->dir, .found = note, .context = &found };
    struct verify_totals totals;
    struct err err = { 0 };
    bool locked = false;
    assert_false(store_verify(&options, &totals, &locked, &err));
    assert_true(locked);
}

static void a_directory_that_is_none_of_ours_is_left_alone(void **state)
{
    struct fixture *f = *state;
    struct verify_options options = { .fs = f->fs, .dir = "/nothing", .found = note };
    struct verify_totals totals;
    struct err err = { 0 };
    bool locked = true;
    assert_false(store_verify(&options, &totals, &locked, &err));
    assert_false(locked);
    assert_false(fs_exists(f->fs, "/nothing/LOCK"));
}

static void leftovers_are_no_damage(void **state)
{
    struct fixture *f = *state;
    struct found found = { 0 };
    struct err err = { 0 };
    fixture_close(f);
    assert_true(fs_write_durably(f->fs, "/data/tables/default/t/p=1", "x", STR("?"), false, &err));
    assert_true(fs_make_dirs(f->fs, "/data/tables/default/_tmp_drop_1", &err));
    struct verify_totals totals = verify(f, false, &found);
    assert_int_equal(totals.damaged, 0);
    assert_int_equal(totals.leftovers, 2);
    found_fini(&found);
}

static void a_part_of_another_table_or_partition_is_found(void **state)
{
    struct fixture *f = *state;
    struct found found = { 0 };
    struct err err = { 0 };
    char from[PATH_BYTES], to[PATH_BYTES];
    struct table *u = find_table(f, "u");
    struct part_set *set = table_snapshot(u);
    snprintf(from, sizeof from, "%s", set->parts[0]->path);
    part_set_unref(set);
    table_unref(u);
    fixture_close(f);
    assert_true(fs_make_dirs(f->fs, "/data/tables/default/t/all", &err));
    snprintf(to, sizeof to, "/data/tables/default/t/all/%s", strrchr(from, '/') + 1);
    assert_true(fs_link(f->fs, from, to, &err));
    snprintf(to, sizeof to, "/data/tables/default/t/p=1/%s", strrchr(from, '/') + 1);
    assert_true(fs_link(f->fs, from, to, &err));
    assert_int_equal(verify(f, false, &found).damaged, 2);
    found_fini(&found);
}

static void a_tail_of_the_log_that_is_torn_is_told_from_a_bad_record(void **state)
{
    struct fixture *f = *state;
    static const char log[] = "/data/tables/default/u/_sluice/tokens.log";
    struct found found = { 0 };
    struct err err = { 0 };
    struct fs_file *file = NULL;
    uint64_t bytes = 0;
    fixture_close(f);
    assert_true(fs_append_to(f->fs, log, &file, &err) && fs_append(f->fs, file, STR("half a record"), &err) &&
                fs_size(f->fs, file, &bytes, &err));
    assert_true(fs_finish(f->fs, &file, true, &err));
    struct verify_totals totals = verify(f, false, &found);
    assert_int_equal(totals.damaged, 0);
    assert_int_equal(totals.leftovers, 1);
    fs_sim_flip(f->fs, log, bytes - 13 - 20, 1); /* the last whole record */
    assert_int_equal(verify(f, true, &found).damaged, 1);
    found_fini(&found);
}

static const char delta_log[] = "/data/tables/default/v/_delta_log";

static void replace_text(struct fixture *f, const char *dir, const char *name, const char *old, const char *new)
{
    char path[PATH_BYTES];
    struct strbuf bytes = { 0 }, changed = { 0 };
    struct err err = { 0 };
    snprintf(path, sizeof path, "%s/%s", dir, name);
    assert_true(fs_read_file(f->fs, path, 1 << 20, &bytes, &err));
    char *at = strstr(strbuf_cstr(&bytes), old);
    assert_non_null(at);
    strbuf_add_bytes(&changed, bytes.data, (size_t)(at - bytes.data));
    strbuf_add_text(&changed, new);
    strbuf_add_text(&changed, at + strlen(old));
    assert_true(fs_write_durably(f->fs, dir, name, strbuf_view(&changed), true, &err));
    strbuf_fini(&bytes);
    strbuf_fini(&changed);
}

static void assert_finds(struct fixture *f, uint64_t damaged, const char *text)
{
    struct found found = { 0 };
    struct verify_totals totals = verify(f, false, &found);
    if (totals.damaged != damaged || strstr(strbuf_cstr(&found.text), text) == NULL)
        fail_msg("%llu damaged, wanted %llu with %s: %s", (unsigned long long)totals.damaged,
                 (unsigned long long)damaged, text, strbuf_cstr(&found.text));
    found_fini(&found);
}

static void a_version_that_is_not_ours_or_missing_is_found(void **state)
{
    struct fixture *f = *state;
    struct err err = { 0 };
    fixture_close(f);
    replace_text(f, delta_log, "00000000000000000004.json", "\"sluiceCommit\":\"", "\"sluiceCommit\":\"0");
    assert_finds(f, 1, "somebody else wrote this version");
    assert_true(fs_unlink(f->fs, "/data/tables/default/v/_delta_log/00000000000000000003.json", &err));
    assert_finds(f, 1, "the version is missing");
}

static void a_checkpoint_that_differs_from_its_versions_is_found(void **state)
{
    struct fixture *f = *state;
    struct strbuf bytes = { 0 };
    struct err err = { 0 };
    fixture_close(f);
    assert_true(fs_read_file(f->fs, "/data/tables/default/v/_delta_log/00000000000000000002.checkpoint.parquet",
                             1 << 20, &bytes, &err));
    assert_true(
        fs_write_durably(f->fs, delta_log, "00000000000000000004.checkpoint.parquet", strbuf_view(&bytes), true, &err));
    assert_finds(f, 1, "it does not say what the versions up to it say");
    assert_true(fs_write_durably(f->fs, delta_log, "_last_checkpoint", STR("{\"version\":3}"), true, &err));
    assert_finds(f, 2, "names no checkpoint that is there");
    strbuf_fini(&bytes);
}

static void a_log_that_begins_with_a_checkpoint_is_read_from_there(void **state)
{
    struct fixture *f = *state;
    struct found found = { 0 };
    struct err err = { 0 };
    char path[PATH_BYTES];
    fixture_close(f);
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%020d.json", delta_log, i);
        assert_true(fs_unlink(f->fs, path, &err));
    }
    assert_int_equal(verify(f, false, &found).damaged, 0);
    found_fini(&found);
    snprintf(path, sizeof path, "%s/%020d.checkpoint.parquet", delta_log, 2);
    fs_sim_flip(f->fs, path, 100, 1);
    assert_finds(f, 1, "00000000000000000002.checkpoint.parquet");
}

static void a_log_that_names_other_parts_than_there_are_is_found(void **state)
{
    struct fixture *f = *state;
    struct err err = { 0 };
    struct table *v = find_table(f, "v");
    struct part_set *set = table_snapshot(v);
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s", set->parts[0]->path);
    part_set_unref(set);
    table_unref(v);
    fixture_close(f);
    replace_text(f, delta_log, "00000000000000000003.json", "numRecords\\\":1,", "numRecords\\\":2,");
    assert_finds(f, 2, "the Delta log tells of another length or number of rows"); /* and the checkpoint after it */
    assert_true(fs_unlink(f->fs, path, &err));
    assert_finds(f, 3, strrchr(path, '/') + 1);
}

static void a_backup_is_checked_against_its_list(void **state)
{
    struct fixture *f = *state;
    struct err err = { 0 };
    fixture_close(f);
    assert_true(fs_unlink(f->fs, "/data/backups/b/tables/default/u/_sluice/table.sql", &err));
    fs_sim_flip(f->fs, "/data/backups/b/tables/default/t/_sluice/table.sql", 10, 1);
    assert_finds(f, 2, "b/tables/default/t/_sluice/table.sql: its checksum does not match");
    fs_sim_flip(f->fs, "/data/backups/b/MANIFEST", 20, 1);
    assert_finds(f, 1, "the checksum of /data/backups/b/MANIFEST does not match");
}

static void a_start_removes_a_backup_that_was_not_finished(void **state)
{
    struct fixture *f = *state;
    struct err err = { 0 };
    fixture_close(f);
    assert_true(fs_make_dirs(f->fs, "/data/backups/_tmp_c/tables", &err));
    assert_finds(f, 0, "leftover /data/backups/_tmp_c: temporary");
    fixture_open(f);
    assert_false(fs_exists(f->fs, "/data/backups/_tmp_c"));
    assert_true(fs_exists(f->fs, "/data/backups/b/MANIFEST"));
}

/* Bounds of every type are those of its order, for values at its ends too. */
static void parts_of_every_type_verify(void **state)
{
    static const char columns[] =
        "i8 Int8, i16 Int16, i32 Int32, i64 Int64, u8 UInt8, u16 UInt16, u32 UInt32, u64 UInt64, i128 Int128, u256 "
        "UInt256, f32 Float32, f64 Nullable(Float64), b Bool, s String, n Nullable(String), f FixedString(5), d Date, "
        "d32 Date32, t DateTime, t3 DateTime64(3), d9 Decimal(9, 2), d38 Decimal(38, 5), e Enum8('a' = -1, 'b' = 5), u "
        "UUID, i4 IPv4, i6 IPv6, a Array(Nullable(Int32)), m Map(String, UInt8), tu Tuple(x Int8, y String)";
    struct fixture *f = *state;
    for (size_t i = 0; i < 2 * (size_t)RANDOM_SHAPES; i++) {
        struct strbuf sql = { 0 };
        struct found found = { 0 };
        struct err err = { 0 };
        struct block block;
        struct table_member member = { .rows = 300 };
        strbuf_addf(&sql, "CREATE TABLE x (%s) ORDER BY (e, s) SETTINGS profile = '%s'", columns,
                    i % 2 == 0 ? "lake" : "native");
        ddl(f, strbuf_cstr(&sql));
        struct table *t = find_table(f, "x");
        random_block(&block, table_def(t)->schema, member.rows, (enum random_shape)(i / 2), false, &f->rng.rng);
        if (!table_insert(t, table_def(t)->schema, &block, &member, 1, &no_options, &err))
            stop("insert", &err);
        table_unref(t);
        fixture_close(f);
        verify(f, false, &found);
        if (found.count > 0)
            fail_msg("shape %zu: %s", i / 2, strbuf_cstr(&found.text));
        fixture_open(f);
        ddl(f, "DROP TABLE x");
        block_fini(&block);
        found_fini(&found);
        strbuf_fini(&sql);
    }
}

/* ---- bits ---- */

/* The versions of a Delta log and its hint are plain JSON without a checksum. */
static bool has_checksum(const char *path)
{
    return !str_ends(str_of(path), STR(".json")) && !str_ends(str_of(path), STR("_last_checkpoint"));
}

struct file {
    char path[PATH_BYTES];
    uint64_t bytes;
};

static size_t list_files(struct fixture *f, struct file *files, size_t max)
{
    struct strbuf dump = { 0 };
    size_t count = 0;
    fs_sim_dump(f->fs, &dump);
    struct str rest = strbuf_view(&dump), line, path, bytes;
    while (str_cut(&rest, '\n', &line)) {
        if (!str_cut(&line, ' ', &path) || !str_cut(&line, ' ', &bytes))
            continue; /* a directory */
        must(count < max && path.len < sizeof files->path);
        memcpy(files[count].path, path.data, path.len);
        files[count].path[path.len] = 0;
        if (has_checksum(files[count].path) && str_to_u64(bytes, &files[count].bytes) && files[count].bytes > 0)
            count++;
    }
    strbuf_fini(&dump);
    return count;
}

static void no_flipped_bit_goes_unnoticed(void **state)
{
    struct fixture *f = *state;
    struct file files[64];
    uint64_t flips = 300;
    const char *given = getenv("SLUICE_FLIPS");
    if (given != NULL && !str_to_u64(str_of(given), &flips))
        fail_msg("SLUICE_FLIPS=%s", given);
    fixture_close(f);
    size_t count = list_files(f, files, ARRAY_COUNT(files));
    assert_true(count >= 10);
    for (uint64_t i = 0; i < flips; i++) {
        const struct file *file = &files[i % count];
        uint64_t offset = rng_below(&f->rng.rng, file->bytes);
        unsigned char mask = (unsigned char)(1u << rng_below(&f->rng.rng, 8));
        struct found found = { 0 };
        fs_sim_flip(f->fs, file->path, offset, mask);
        if (verify(f, false, &found).damaged == 0)
            fail_msg("%s byte %llu bit mask %u: %s", file->path, (unsigned long long)offset, mask,
                     strbuf_cstr(&found.text));
        fs_sim_flip(f->fs, file->path, offset, mask);
        found_fini(&found);
    }
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        T(what_was_written_verifies),
        T(a_running_daemon_keeps_others_out),
        T(a_directory_that_is_none_of_ours_is_left_alone),
        T(leftovers_are_no_damage),
        T(a_part_of_another_table_or_partition_is_found),
        T(a_tail_of_the_log_that_is_torn_is_told_from_a_bad_record),
        T(a_version_that_is_not_ours_or_missing_is_found),
        T(a_checkpoint_that_differs_from_its_versions_is_found),
        T(a_log_that_begins_with_a_checkpoint_is_read_from_there),
        T(a_log_that_names_other_parts_than_there_are_is_found),
        T(a_backup_is_checked_against_its_list),
        T(a_start_removes_a_backup_that_was_not_finished),
        T(parts_of_every_type_verify),
        T(no_flipped_bit_goes_unnoticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
