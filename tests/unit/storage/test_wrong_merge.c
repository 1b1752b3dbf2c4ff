/* test_wrong_merge.c: a merge that is wrong is caught before it is published.
 *
 * The linker puts the functions here between the merge and the writer of its part (--wrap), so that they lose, repeat
 * and change rows of the very code that ships. */
#include "storage/part_write.h"
#include "storage/table_impl.h"
#include "tests/support/cmocka_all.h"
#include "tests/unit/storage/sim_fixture.h"

enum wrong {
    RIGHT,
    LOSES_THE_LAST_ROW,
    LOSES_A_BLOCK,
    REPEATS_A_ROW,
    REPEATS_A_BLOCK,
    CHANGES_A_VALUE,
    SWAPS_VALUES_OF_TWO_ROWS,
    ONE_ROW_FOR_ANOTHER, /* as many as there were */
    LOSES_A_GROUP,
    REPEATS_A_GROUP,
    WRONGS
};
static enum wrong wrong;

bool __real_part_writer_add(struct part_writer *w, const struct block *block, struct err *err);
bool __wrap_part_writer_add(struct part_writer *w, const struct block *block, struct err *err);
bool __real_part_writer_copy_group(struct part_writer *w, const struct part *part, size_t group, struct hash128 sum,
                                   struct err *err);
bool __wrap_part_writer_copy_group(struct part_writer *w, const struct part *part, size_t group, struct hash128 sum,
                                   struct err *err);

/* Of the rows of a block of t: p, k, s. */
static void make_wrong(struct block *out, const struct block *in)
{
    size_t last = in->rows - 1;
    uint64_t *k = (uint64_t *)(void *)out->columns[1].data;
    switch (wrong) {
    case LOSES_THE_LAST_ROW:
        block_truncate(out, last);
        break;
    case REPEATS_A_ROW:
        block_append(out, in, last, 1);
        break;
    case REPEATS_A_BLOCK:
        block_append(out, in, 0, in->rows);
        break;
    case CHANGES_A_VALUE:
        k[last] ^= 1;
        break;
    case SWAPS_VALUES_OF_TWO_ROWS:
        k[0] = k[0] ^ k[last];
        k[last] ^= k[0];
        k[0] ^= k[last];
        break;
    case ONE_ROW_FOR_ANOTHER:
        block_truncate(out, last);
        block_append(out, in, 0, 1);
        break;
    default:
        break;
    }
}

bool __wrap_part_writer_add(struct part_writer *w, const struct block *block, struct err *err)
{
    struct block other;
    if (wrong == LOSES_A_BLOCK)
        return true;
    block_init(&other, block->columns_count);
    for (size_t i = 0; i < block->columns_count; i++) {
        column_init(&other.columns[i], block->columns[i].type);
        other.names[i] = block->names[i];
    }
    block_append(&other, block, 0, block->rows);
    make_wrong(&other, block);
    bool ok = __real_part_writer_add(w, &other, err);
    block_fini(&other);
    return ok;
}

bool __wrap_part_writer_copy_group(struct part_writer *w, const struct part *part, size_t group, struct hash128 sum,
                                   struct err *err)
{
    if (wrong == LOSES_A_GROUP)
        return true;
    return __real_part_writer_copy_group(w, part, group, sum, err) &&
           (wrong != REPEATS_A_GROUP || __real_part_writer_copy_group(w, part, group, sum, err));
}

/* Each kind of wrong is refused, also after a restart the sources are what is there, and the right merge is not. */
static void assert_caught(struct fixture *f, enum wrong from, enum wrong to)
{
    struct table *t = find_table(f, "t");
    for (enum wrong w = from; w <= to; w++) {
        wrong = w;
        enum err_code code = ddl_code(f, "OPTIMIZE TABLE t FINAL");
        wrong = RIGHT;
        if (code != ERR_LOGICAL_ERROR)
            fail_msg("wrong merge %d: %d", (int)w, (int)code);
        assert_parts(t, "all:1-1-0 all:2-2-0");
    }
    table_unref(t);
    fixture_reopen(f);
    t = find_table(f, "t");
    assert_parts(t, "all:1-1-0 all:2-2-0");
    ddl(f, "OPTIMIZE TABLE t FINAL");
    assert_parts(t, "all:1-2-1");
    table_unref(t);
}

static void a_merge_that_loses_repeats_or_changes_rows_is_not_published_P_12(void **state)
{
    struct fixture *f = *state;
    ddl(f, "CREATE TABLE t (p Int32, k UInt64, s String) ORDER BY p");
    struct table *t = find_table(f, "t");
    insert(t, (struct row[]){ { 1, 10, "a" }, { 3, 30, "c" } }, 2, "");
    insert(t, (struct row[]){ { 2, 20, "b" }, { 4, 40, "a" } }, 2, "");
    table_unref(t);
    assert_caught(f, RIGHT + 1, ONE_ROW_FOR_ANOTHER);
}

static void neither_is_one_by_an_engines_rule_P_12(void **state)
{
    struct fixture *f = *state;
    ddl(f, "CREATE TABLE t (p Int32, k UInt64, s String) ENGINE = ReplacingMergeTree ORDER BY p");
    struct table *t = find_table(f, "t");
    insert(t, (struct row[]){ { 1, 10, "a" }, { 3, 30, "c" } }, 2, "");
    insert(t, (struct row[]){ { 2, 20, "b" }, { 3, 40, "a" } }, 2, "");
    table_unref(t);
    assert_caught(f, RIGHT + 1, ONE_ROW_FOR_ANOTHER);
}

static void insert_large(struct table *t, int32_t first)
{
    enum { LARGE = 66000 }; /* a row group that is copied as it is: above half of 131,072 */
    struct row *rows = mem_alloc(LARGE * sizeof *rows);
    for (int32_t i = 0; i < LARGE; i++)
        rows[i] = (struct row){ first + i, (uint64_t)i, "x" };
    insert(t, rows, LARGE, "");
    free(rows);
}

static void neither_is_one_that_loses_or_repeats_what_it_copies_P_12(void **state)
{
    struct fixture *f = *state;
    ddl(f, "CREATE TABLE t (p Int32, k UInt64, s String) ORDER BY p");
    struct table *t = find_table(f, "t");
    insert_large(t, 0);
    insert_large(t, 1000000);
    table_unref(t);
    assert_caught(f, LOSES_A_GROUP, WRONGS - 1);
}

#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_merge_that_loses_repeats_or_changes_rows_is_not_published_P_12),
        T(neither_is_one_by_an_engines_rule_P_12),
        T(neither_is_one_that_loses_or_repeats_what_it_copies_P_12),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
