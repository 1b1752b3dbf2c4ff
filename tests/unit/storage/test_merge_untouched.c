/* test_merge_untouched.c: row groups that no other source's rows come between pass a merge as they are. */
#include "format/parquet_file.h"
#include "storage/table_impl.h"
#include "storage/verify.h"
#include "tests/support/cmocka_all.h"
#include "tests/unit/storage/sim_fixture.h"

enum { LARGE = 66000 }; /* rows that are a row group of their own: above half of 131,072 */

static const char create[] =
    "CREATE TABLE t (p Int32, k UInt64, s String, x Nullable(Float64), m Map(String, UInt64) DEFAULT "
    "map(s, k), INDEX i s TYPE bloom_filter) ORDER BY k";

enum { TEXT_BYTES = 17 };

/* Of many digits and in no order, so that a Bloom filter pays. */
static void print_text(uint64_t k, char text[TEXT_BYTES])
{
    snprintf(text, TEXT_BYTES, "%016llx", (unsigned long long)(k * UINT64_C(0x9E3779B97F4A7C15)));
}

/* One part of rows with k = first, first + 1, ... */
static void insert_span(struct table *t, uint64_t first, size_t count)
{
    struct row *rows = mem_alloc(count * sizeof *rows);
    char(*texts)[TEXT_BYTES] = mem_alloc(count * sizeof *texts);
    for (size_t i = 0; i < count; i++) {
        print_text(first + i, texts[i]);
        rows[i] = (struct row){ (int32_t)(i % 7), first + i, texts[i] };
    }
    insert(t, rows, count, "");
    free(rows);
    free(texts);
}

static struct part *only_part(struct table *t)
{
    struct part_set *set = table_snapshot(t);
    assert_int_equal(set->count, 1);
    struct part *part = part_ref(set->parts[0]);
    part_set_unref(set);
    return part;
}

/* In order, within its bounds, in its partition, and the sums of each row group are those of its rows. */
static void assert_sound(struct table *t, const struct part *part)
{
    static const int never;
    struct err err = { 0 };
    if (!part_verify((struct part *)(uintptr_t)part, table_def(t), &never, &err))
        stop("verify", &err);
}

/* "ROWS ROWS ..." of the row groups of the only part, which is sound. */
static char *groups_of(struct table *t)
{
    struct part *part = only_part(t);
    struct strbuf text = { 0 };
    assert_sound(t, part);
    for (size_t i = 0; i < part->row_groups; i++)
        strbuf_addf(&text, "%s%llu", i == 0 ? "" : " ", (unsigned long long)parquet_row_group(part->file, i).rows);
    part_unref(part);
    return strbuf_take(&text);
}

#define assert_groups(table, expected)                                                                                 \
    do {                                                                                                               \
        char *groups_ = groups_of(table);                                                                              \
        assert_string_equal(groups_, expected);                                                                        \
        free(groups_);                                                                                                 \
    } while (0)

/* The row with k is where the Bloom filters say, its column has an index of pages, and their checksums hold. */
static void assert_found(struct table *t, uint64_t k, size_t group)
{
    struct part *part = only_part(t);
    struct column cell;
    struct err err = { 0 };
    char text[TEXT_BYTES];
    print_text(k, text);
    column_init(&cell, type_of_kind(TYPE_STRING));
    column_push_str(&cell, str_of(text));
    for (size_t i = 0; i < part->row_groups; i++) {
        enum parquet_proof proof;
        struct parquet_chunk *chunk = parquet_chunk_open(part->file, i, 2);
        assert_true(parquet_chunk_lacks(chunk, 0, &cell, &proof, &err));
        struct parquet_pages pages;
        assert_true(parquet_chunk_pages(chunk, &pages, &err));
        assert_true(pages.count > 0);
        assert_int_equal(proof, i == group ? PARQUET_NO_PROOF : PARQUET_BLOOM);
        parquet_chunk_close(chunk);
    }
    assert_false(part->file->damage_told);
    column_fini(&cell);
    part_unref(part);
}

static void large_row_groups_between_the_rows_of_others_pass(void **state)
{
    struct fixture *f = *state;
    ddl(f, create);
    struct table *t = find_table(f, "t");
    insert_span(t, 1000000, LARGE);
    insert_span(t, 0, LARGE);
    insert_span(t, 1000500, 100); /* among those of the first */
    insert_span(t, 500000, 100);  /* too few for a row group of their own, but between two */
    ddl(f, "OPTIMIZE TABLE t FINAL");
    assert_groups(t, "66000 66200");
    assert_found(t, 65999, 0);
    assert_found(t, 1000599, 1);
    insert_span(t, 2000000, 10);
    ddl(f, "OPTIMIZE TABLE t FINAL"); /* compressed more, so all anew */
    assert_groups(t, "131072 1138");
    insert_span(t, 3000000, 10);
    ddl(f, "OPTIMIZE TABLE t FINAL");
    assert_groups(t, "131072 1148");
    assert_found(t, 17, 0);
    assert_found(t, 3000009, 1);
    table_unref(t);
    fixture_reopen(f);
    t = find_table(f, "t");
    assert_groups(t, "131072 1148");
    table_unref(t);
}

/* Equal keys of two parts keep the order of the parts: their row groups are merged. */
static void row_groups_that_share_one_key_are_merged(void **state)
{
    struct fixture *f = *state;
    ddl(f, "CREATE TABLE t (p Int32, k UInt64, s String) ORDER BY k");
    struct table *t = find_table(f, "t");
    insert_span(t, LARGE - 1, LARGE);
    insert_span(t, 0, LARGE);
    ddl(f, "OPTIMIZE TABLE t FINAL");
    assert_groups(t, "131072 928");
    table_unref(t);
}

/* What a table asks of new parts holds for those of merges too. */
static void a_row_group_without_the_tables_filter_is_written_anew(void **state)
{
    struct fixture *f = *state;
    ddl(f, "CREATE TABLE t (p Int32, k UInt64, s String) ORDER BY k");
    struct table *t = find_table(f, "t");
    insert_span(t, 0, LARGE);
    insert_span(t, 1000000, LARGE);
    ddl(f, "ALTER TABLE t ADD INDEX i s TYPE bloom_filter");
    ddl(f, "OPTIMIZE TABLE t FINAL");
    assert_groups(t, "131072 928");
    assert_found(t, 1065999, 1);
    table_unref(t);
}

/* Copied bytes are looked at: a bit that flipped anywhere in a source ends the merge. */
static void damage_does_not_pass(void **state)
{
    struct fixture *f = *state;
    ddl(f, create);
    struct table *t = find_table(f, "t");
    insert_span(t, 0, LARGE);
    insert_span(t, 1000000, LARGE);
    struct part_set *set = table_snapshot(t);
    struct part *part = set->parts[0];
    uint64_t footer_from = part->bytes - 6000; /* the footer, the indexes before it, and pages */
    for (uint64_t i = 0; i < 40; i++) {
        uint64_t offset = i < 20 ? 4 + i * (footer_from / 20) : footer_from + (i - 20) * 100;
        fs_sim_flip(f->fs, part->path, offset, 1 << (i % 8));
        if (parquet_verify_bytes(part->file, &(struct err){ 0 })) { /* behind what is read */
            fs_sim_flip(f->fs, part->path, offset, 1 << (i % 8));
            continue;
        }
        enum err_code code = ddl_code(f, "OPTIMIZE TABLE t FINAL");
        assert_true(code == ERR_CORRUPTED_DATA || code == ERR_CHECKSUM_DOESNT_MATCH);
        fs_sim_flip(f->fs, part->path, offset, 1 << (i % 8));
    }
    ddl(f, "OPTIMIZE TABLE t FINAL");
    assert_groups(t, "66000 66000");
    part_set_unref(set);
    table_unref(t);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        T(large_row_groups_between_the_rows_of_others_pass),
        T(row_groups_that_share_one_key_are_merged),
        T(a_row_group_without_the_tables_filter_is_written_anew),
        T(damage_does_not_pass),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
