/* test_part.c: names of parts say what they say and nothing else does; a footer fits its file. */
#include <stdlib.h>

#include "base/log.h"
#include "base/metric.h"
#include "format/parquet_file.h"
#include "sim/fs_sim.h"
#include "storage/part.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/guarded.h"
#include "tests/unit/storage/store_fixture.h"

static void names_read_back(void **state)
{
    (void)state;
    static const struct part_name names[] = { { 1, 1, 0, 0 },
                                              { 12, 345, 6, 0x0123456789abcdef },
                                              { UINT64_MAX - 1, UINT64_MAX, UINT32_MAX, UINT64_MAX } };
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        char text[PART_NAME_BYTES];
        struct part_name back;
        part_name_print(&names[i], text);
        assert_true(part_name_parse(guarded(text), &back));
        assert_true(back.first == names[i].first && back.last == names[i].last && back.level == names[i].level &&
                    back.random == names[i].random);
    }
}

static void other_names_are_refused(void **state)
{
    static const char *const bad[] = {
        "",
        ".parquet",
        "1_1_0_0123456789abcdef",
        "1_1_0_0123456789abcdef.parque",
        "_1_1_0_0123456789abcdef.parquet",
        "0_1_0_0123456789abcdef.parquet",
        "2_1_0_0123456789abcdef.parquet",
        "01_1_0_0123456789abcdef.parquet",
        "1_1_0_0123456789ABCDEF.parquet",
        "1_1_0_0123456789abcde.parquet",
        "1_1_0_0123456789abcdef0.parquet",
        "1_1_4294967296_0123456789abcdef.parquet",
        "1_18446744073709551616_0_0123456789abcdef.parquet",
        "1__0_0123456789abcdef.parquet",
        "+1_1_0_0123456789abcdef.parquet",
        "1_1_0_0123456789abcdef_1.parquet",
        "1 _1_0_0123456789abcdef.parquet",
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        struct part_name name;
        if (part_name_parse(guarded(bad[i]), &name))
            fail_msg("%s", bad[i]);
    }
}

static struct part_meta sample(void)
{
    struct part_meta meta = { .table_uuid = "61f0c404-5cb3-11e7-907b-a6006ad3dba0",
                              .name = { 9, 9, 0, 77 },
                              .rows = 5,
                              .row_hash_sum = { 1, 2 },
                              .created_wall_ns = -3,
                              .schema_version = 4,
                              .flush_id = { 6, 7 },
                              .flush_index = 2,
                              .flush_count = 3,
                              .tokens_count = 2,
                              .spool_id = 0xfedcba9876543210 };
    ranges_add(&meta.spooled, 5, 9);
    ranges_add(&meta.spooled, 20, 20);
    meta.partition = (struct partition_key){ .id = "id",
                                             .text = mem_strdup("quote\" \\ \n tab\t \xff"),
                                             .dir = mem_strdup("a=b%20c") };
    meta.tokens = mem_zalloc(2 * sizeof *meta.tokens);
    meta.tokens[0] = (struct part_token){ .identity = { 10, 11 }, .wall_ns = -3, .kind = DEDUP_TOKEN };
    meta.tokens[1] = (struct part_token){ .identity = { 12, 13 }, .wall_ns = -3, .kind = DEDUP_CONTENT };
    return meta;
}

static void metadata_reads_back(void **state)
{
    (void)state;
    struct part_meta meta = sample(), back;
    struct part_meta_text text;
    struct err err = { 0 };
    part_meta_print(&meta, &text);
    if (!part_meta_parse(guarded_str(strbuf_view(&text.part)), guarded_str(strbuf_view(&text.flush)),
                         guarded_str(strbuf_view(&text.tokens)), guarded_str(strbuf_view(&text.contents)),
                         guarded_str(strbuf_view(&text.spool)), &back, &err))
        fail_msg("%s: %s", err.text, strbuf_cstr(&text.part));
    assert_string_equal(back.partition.text, meta.partition.text);
    assert_string_equal(back.partition.dir, meta.partition.dir);
    assert_string_equal(back.table_uuid, meta.table_uuid);
    assert_true(hash128_eq(back.row_hash_sum, meta.row_hash_sum) && hash128_eq(back.flush_id, meta.flush_id));
    assert_int_equal(back.created_wall_ns, -3);
    assert_int_equal(back.flush_index, 2);
    assert_int_equal(back.tokens_count, 2);
    assert_int_equal(back.tokens[1].kind, DEDUP_CONTENT);
    assert_int_equal(back.tokens[1].identity.hi, 13);
    assert_true(back.spool_id == meta.spool_id && back.spooled.count == 2);
    assert_memory_equal(back.spooled.items, meta.spooled.items, 2 * sizeof(struct range));
    part_meta_fini(&back);
    for (size_t len = 0; len < text.part.len; len++) /* no prefix passes for the whole */
        assert_false(part_meta_parse(guarded_str(str_make(text.part.data, len)), STR_EMPTY, STR_EMPTY, STR_EMPTY,
                                     STR_EMPTY, &back, &err));
    for (size_t len = 1; len < text.spool.len; len++)
        assert_false(part_meta_parse(guarded_str(strbuf_view(&text.part)), STR_EMPTY, STR_EMPTY, STR_EMPTY,
                                     guarded_str(str_make(text.spool.data, len)), &back, &err));
    part_meta_text_fini(&text);
    part_meta_fini(&meta);
}

/* ---- files ---- */

struct files {
    struct fixture f;
    char path[PATH_BYTES], name[256];
    const char *dir;
};

static int setup(void **state)
{
    struct files *files = NEW(struct files);
    struct fixture *f = &files->f;
    fixture_init(f, fs_sim_new(), "/data", 1);
    fixture_open(f);
    ddl(f, "CREATE TABLE t (p Int32, k UInt64, s String) ORDER BY k");
    struct table *t = find_table(f, "t");
    insert(t, (struct row[]){ { 1, 1, "a" }, { 1, 2, "b" } }, 2, "tok");
    struct part_set *set = table_snapshot(t);
    snprintf(files->path, sizeof files->path, "%s", set->parts[0]->path);
    snprintf(files->name, sizeof files->name, "%s", strrchr(files->path, '/') + 1);
    files->dir = "/data/tables/default/t/all";
    part_set_unref(set);
    table_unref(t);
    *state = files;
    return 0;
}

static int teardown(void **state)
{
    struct files *files = *state;
    fixture_close(&files->f);
    fs_sim_free(files->f.fs);
    free(files);
    return 0;
}

static void a_part_tells_what_it_holds(void **state)
{
    struct files *files = *state;
    struct part *part = NULL;
    struct err err = { 0 };
    assert_true(part_open(files->f.fs, files->dir, str_of(files->name), NULL, &part, &err));
    assert_int_equal(part->rows, 2);
    assert_int_equal(part->tokens_count, 1);
    assert_string_equal(part->partition.id, "all");
    assert_int_equal(part->flush_count, 1);
    assert_true(parquet_verify(part->file, &err));
    assert_true(part_memory_bytes(part) > 0);
    assert_true(part_pin(part, &err));
    assert_true(fs_unlink(files->f.fs, files->path, &err)); /* its readers go on */
    struct column k;
    column_init(&k, parquet_schema(part->file)->columns[1].type);
    assert_true(parquet_read_column(part->file, 0, 1, &k, &err));
    assert_int_equal(k.rows, 2);
    column_fini(&k);
    part_unref(part);
}

/* Repeated text takes little on disk and all of its bytes in memory: merges have to know. */
static void a_part_tells_what_it_takes_in_memory(void **state)
{
    enum { ROWS = 1000, TEXT = 1000 };
    struct files *files = *state;
    struct row *rows = mem_zalloc(ROWS * sizeof *rows);
    char *text = mem_zalloc(TEXT + 1);
    memset(text, 'x', TEXT);
    for (int i = 0; i < ROWS; i++)
        rows[i] = (struct row){ 1, (uint64_t)i, text };
    ddl(&files->f, "CREATE TABLE repeated (p Int32, k UInt64, s String) ORDER BY k");
    struct table *t = find_table(&files->f, "repeated");
    insert(t, rows, ROWS, "tok");
    struct part_set *set = table_snapshot(t);
    assert_true(set->parts[0]->bytes < 100000);
    assert_true(part_memory_bytes(set->parts[0]) >= ROWS * TEXT);
    assert_true(part_memory_bytes(set->parts[0]) < 2 * ROWS * TEXT);
    part_set_unref(set);
    table_unref(t);
    free(text);
    free(rows);
}

static void a_part_under_another_name_is_corrupt(void **state)
{
    struct files *files = *state;
    struct part *part = NULL;
    struct err err = { 0 };
    char other[PATH_BYTES];
    static const char name[] = "2_2_0_0123456789abcdef.parquet";
    snprintf(other, sizeof other, "%s/%s", files->dir, name);
    assert_true(fs_rename(files->f.fs, files->path, other, &err));
    assert_false(part_open(files->f.fs, files->dir, str_of(name), NULL, &part, &err));
    assert_int_equal(err.code, ERR_CORRUPTED_DATA);
    snprintf(other, sizeof other, "%s/%s", "/data/tables/default/t", files->name);
    snprintf(files->path, sizeof files->path, "%s/%s", files->dir, name);
    assert_true(fs_rename(files->f.fs, files->path, other, &err));
    assert_false(part_open(files->f.fs, "/data/tables/default/t", str_of(files->name), NULL, &part, &err));
    assert_int_equal(err.code, ERR_CORRUPTED_DATA);
}

static void every_flipped_byte_is_found_or_does_no_harm(void **state)
{
    struct files *files = *state;
    struct fs_stat stat;
    struct err err = { 0 };
    assert_true(fs_get_stat(files->f.fs, files->path, &stat, &err));
    for (uint64_t at = 0; at < stat.bytes; at++) {
        struct part *part = NULL;
        fs_sim_flip(files->f.fs, files->path, at, 16);
        if (part_open(files->f.fs, files->dir, str_of(files->name), NULL, &part, &err)) {
            if (parquet_verify(part->file, &err))
                fail_msg("byte %d", (int)at);
            part_unref(part);
        }
        assert_true(err.code == ERR_CORRUPTED_DATA || err.code == ERR_NOT_IMPLEMENTED); /* as another codec */
        fs_sim_flip(files->f.fs, files->path, at, 16);
    }
}

static void a_damaged_index_is_told_once_a_part(void **state)
{
    enum { ROWS = 20000 };
    struct files *files = *state;
    struct fs *fs = files->f.fs;
    struct row *rows = mem_zalloc(ROWS * sizeof *rows);
    for (int i = 0; i < ROWS; i++)
        rows[i] = (struct row){ i, (uint64_t)i, "" };
    ddl(&files->f, "CREATE TABLE indexed (p Int32, k UInt64, s String) ORDER BY (k, p)");
    struct table *t = find_table(&files->f, "indexed");
    insert(t, rows, ROWS, "tok");
    struct part_set *set = table_snapshot(t);
    const struct part *part = set->parts[0];
    struct metric_series *found = metric_series1(METRIC_SCRUB_PARTS, STR("index"));
    double found_before = metric_series_value(found);
    uint64_t warned_before = log_lines(LOG_WARN);
    for (size_t column = 0; column < 2; column++) {
        uint64_t at = (uint64_t)part->file->meta.groups[0].chunks[column].column_index_offset;
        for (int damaged = 0; damaged <= 1; damaged++) {
            struct parquet_chunk *chunk = parquet_chunk_open(part->file, 0, column);
            struct parquet_pages pages;
            struct err err;
            if (damaged == 1)
                fs_sim_flip(fs, part->path, at, 0x55);
            assert_true(parquet_chunk_pages(chunk, &pages, &err));
            assert_int_equal(pages.count > 1 && pages.stats[0].known, damaged == 0);
            assert_int_equal(log_lines(LOG_WARN) - warned_before, column > 0 || damaged == 1);
            assert_true(metric_series_value(found) - found_before == (column > 0 || damaged == 1 ? 1 : 0));
            parquet_chunk_close(chunk);
        }
    }
    part_set_unref(set);
    table_unref(t);
    free(rows);
}

static void sets_are_ordered_and_find_partitions(void **state)
{
    struct files *files = *state;
    struct fixture *f = &files->f;
    ddl(f, "CREATE TABLE u (p Int32, k UInt64, s String) PARTITION BY p ORDER BY k");
    struct table *t = find_table(f, "u");
    insert(t, (struct row[]){ { 10, 1, "a" }, { 9, 1, "a" }, { 100, 1, "a" } }, 3, "");
    insert(t, (struct row[]){ { 9, 2, "a" } }, 1, "");
    struct part_set *set = table_snapshot(t);
    size_t from, count;
    part_set_partition(set, STR("9"), &from, &count);
    assert_int_equal(from, 2);
    assert_int_equal(count, 2);
    part_set_partition(set, STR("100"), &from, &count);
    assert_int_equal(from, 1);
    assert_int_equal(count, 1);
    part_set_partition(set, STR("11"), &from, &count);
    assert_int_equal(count, 0);
    part_set_unref(set);
    table_unref(t);
}

static void a_set_changes_for_nobody_who_has_it(void **state)
{
    struct files *files = *state;
    struct fixture *f = &files->f;
    ddl(f, "CREATE TABLE u (p Int32, k UInt64, s String) PARTITION BY p ORDER BY k");
    struct table *t = find_table(f, "u");
    insert(t, (struct row[]){ { 1, 1, "a" }, { 2, 1, "a" }, { 3, 1, "a" } }, 3, "");
    struct part_set *set = table_snapshot(t);
    struct part *middle = set->parts[1];
    struct part_set *less = part_set_change(part_set_ref(set), NULL, 0, &middle, 1);
    assert_ptr_not_equal(less, set);
    assert_int_equal(less->count, 2);
    assert_int_equal(less->rows, 2);
    assert_int_equal(less->bytes, set->bytes - middle->bytes);
    assert_int_equal(set->count, 3);
    struct part_set *again = part_set_change(less, &middle, 1, NULL, 0);
    assert_ptr_equal(again, less); /* nobody else has it: no copy */
    assert_int_equal(again->count, 3);
    assert_int_equal(again->rows, 3);
    assert_ptr_equal(again->parts[1], middle);
    part_set_unref(again);
    part_set_unref(set);
    table_unref(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_read_back),
        cmocka_unit_test(other_names_are_refused),
        cmocka_unit_test(metadata_reads_back),
        cmocka_unit_test_setup_teardown(a_part_tells_what_it_holds, setup, teardown),
        cmocka_unit_test_setup_teardown(a_part_tells_what_it_takes_in_memory, setup, teardown),
        cmocka_unit_test_setup_teardown(a_part_under_another_name_is_corrupt, setup, teardown),
        cmocka_unit_test_setup_teardown(every_flipped_byte_is_found_or_does_no_harm, setup, teardown),
        cmocka_unit_test_setup_teardown(a_damaged_index_is_told_once_a_part, setup, teardown),
        cmocka_unit_test_setup_teardown(sets_are_ordered_and_find_partitions, setup, teardown),
        cmocka_unit_test_setup_teardown(a_set_changes_for_nobody_who_has_it, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
