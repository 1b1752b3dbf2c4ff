/* test_delta.c: tables that are published: what their log says after each change, what a reader of it finds, and what
 * happens to a log that somebody else wrote to. */
#include <jansson.h>

#include "format/text_value.h"
#include "sim/fs_sim.h"
#include "storage/delta_checkpoint.h"
#include "storage/table_impl.h"
#include "tests/support/cmocka_all.h"
#include "tests/unit/storage/sim_fixture.h"

static const char published[] = "CREATE TABLE t (p Int32, k UInt64, s String) PARTITION BY p ORDER BY (k, s) "
                                "SETTINGS publish = 'delta', publish_checkpoint_interval = 1000";
static const char log_dir[] = "/data/tables/default/t/_delta_log";

static void publish(struct fixture *f)
{
    store_publish_step(f->store, f->clock.mono, true);
}

static char *read_commit(struct fixture *f, int version)
{
    char path[PATH_BYTES];
    struct strbuf bytes = { 0 };
    struct err err = { 0 };
    snprintf(path, sizeof path, "%s/%020d.json", log_dir, version);
    if (!fs_read_file(f->fs, path, 1 << 20, &bytes, &err))
        return NULL;
    return strbuf_take(&bytes);
}

/* "OPERATION +FIRST-LAST* -FIRST-LAST": the files of a version, a star where dataChange is true. NULL: no such version.
 */
static char *version_text(struct fixture *f, int version)
{
    char *bytes = read_commit(f, version);
    if (bytes == NULL)
        return NULL;
    struct strbuf out = { 0 };
    struct str rest = str_of(bytes), line;
    while (str_cut(&rest, '\n', &line)) {
        json_t *json = json_loadb(line.data, line.len, JSON_REJECT_DUPLICATES, NULL);
        assert_non_null(json);
        json_t *info = json_object_get(json, "commitInfo"), *add = json_object_get(json, "add");
        json_t *file = add != NULL ? add : json_object_get(json, "remove");
        if (info != NULL)
            strbuf_add_text(&out, json_string_value(json_object_get(info, "operation")));
        if (file != NULL) {
            struct part_name name;
            struct str path = str_of(json_string_value(json_object_get(file, "path")));
            assert_true(part_name_parse(str_from(path, (size_t)str_find_char(path, '/') + 1), &name));
            strbuf_addf(&out, " %c%llu-%llu%s", add != NULL ? '+' : '-', (unsigned long long)name.first,
                        (unsigned long long)name.last, json_is_true(json_object_get(file, "dataChange")) ? "*" : "");
        }
        json_decref(json);
    }
    free(bytes);
    return strbuf_take(&out);
}

#define assert_version(f, version, expected)                                                                           \
    do {                                                                                                               \
        char *text_ = version_text(f, version);                                                                        \
        assert_non_null(text_);                                                                                        \
        assert_string_equal(text_, expected);                                                                          \
        free(text_);                                                                                                   \
    } while (0)

static bool has_version(struct fixture *f, int version)
{
    char *text = version_text(f, version);
    free(text);
    return text != NULL;
}

static struct table *table_with(struct fixture *f, const char *sql)
{
    ddl(f, sql);
    return find_table(f, "t");
}

static void put(struct table *t, int32_t p, uint64_t k)
{
    insert(t, (struct row[]){ { p, k, "x" } }, 1, "");
}

static void optimize(struct fixture *f)
{
    ddl(f, "OPTIMIZE TABLE t FINAL");
}

/* The log as a reader finds it, and that all of it and nothing else is what is live, under its size. */
static void check_log(struct fixture *f, struct table *t)
{
    struct delta_log *log = NULL;
    struct err err = { 0 };
    struct strbuf dir = table_path(t, "", "");
    strbuf_truncate(&dir, dir.len - 1);
    if (!delta_log_open(f->fs, strbuf_cstr(&dir), table_def(t)->uuid, false, &log, &err))
        stop("replay", &err);
    struct part_set *set = table_snapshot(t);
    assert_int_equal(log->state.live_count, set->count);
    for (size_t i = 0; i < set->count; i++) {
        struct strbuf path = { 0 };
        delta_path_add(&path, set->parts[i]);
        const struct delta_file *file = delta_state_live(&log->state, strbuf_view(&path));
        assert_non_null(file);
        assert_int_equal(file->size, set->parts[i]->bytes);
        assert_int_equal(file->rows, set->parts[i]->rows);
        strbuf_fini(&path);
    }
    part_set_unref(set);
    delta_log_free(log);
    strbuf_fini(&dir);
}

/* ---- what the log says ---- */

static void an_empty_table_is_published(void **state)
{
    struct fixture *f = *state;
    struct table *t = table_with(f, published);
    publish(f);
    assert_version(f, 0, "CREATE TABLE");
    publish(f);
    assert_false(has_version(f, 1));
    check_log(f, t);
    table_unref(t);
}

static void what_changed_since_is_one_version(void **state)
{
    struct fixture *f = *state;
    struct table *t = table_with(f, published);
    publish(f);
    put(t, 1, 1);
    put(t, 2, 2);
    publish(f);
    assert_version(f, 1, "WRITE +1-1* +2-2*");
    check_log(f, t);
    table_unref(t);
}

static void a_merge_of_published_parts_changes_no_data(void **state)
{
    struct fixture *f = *state;
    struct table *t = table_with(f, published);
    put(t, 1, 1);
    put(t, 1, 2);
    publish(f);
    optimize(f);
    publish(f);
    assert_version(f, 2, "OPTIMIZE -1-1 -2-2 +1-2");
    check_log(f, t);
    table_unref(t);
}

static void a_merge_of_unpublished_parts_is_an_insert(void **state)
{
    struct fixture *f = *state;
    struct table *t = table_with(f, published);
    put(t, 1, 1);
    put(t, 1, 2);
    optimize(f);
    publish(f);
    assert_version(f, 1, "WRITE +1-2*");
    check_log(f, t);
    table_unref(t);
}

static void a_mixed_merge_has_its_sources_published_first(void **state)
{
    struct fixture *f = *state;
    struct table *t = table_with(f, published);
    put(t, 1, 1);
    publish(f);
    put(t, 1, 2);
    put(t, 1, 3);
    optimize(f);
    publish(f);
    assert_version(f, 2, "WRITE +2-2* +3-3*");
    assert_version(f, 3, "OPTIMIZE -1-1 -2-2 -3-3 +1-3");
    check_log(f, t);
    table_unref(t);
}

/* 1-2 is published, having been 1 and 2; then 3 and 4 come to it, one merge each, before the next publication. */
static void mixed_merges_of_merges_have_their_sources_published(void **state)
{
    struct fixture *f = *state;
    struct table *t = table_with(f, published);
    put(t, 1, 1);
    put(t, 1, 2);
    optimize(f);
    publish(f);
    put(t, 1, 3);
    optimize(f);
    put(t, 1, 4);
    optimize(f);
    publish(f);
    assert_version(f, 2, "WRITE +3-3* +4-4*");
    assert_version(f, 3, "OPTIMIZE -1-2 -3-3 -4-4 +1-4");
    check_log(f, t);
    table_unref(t);
}

static void a_mixed_merge_without_its_sources_is_a_change(void **state)
{
    struct fixture *f = *state;
    struct table *t = table_with(f, published);
    put(t, 1, 1);
    publish(f);
    put(t, 1, 2);
    optimize(f);
    clock_manual_advance(&f->clock, 500 * NS_PER_S);
    store_clean_step(f->store, f->clock.mono); /* takes 2, which nobody published */
    publish(f);
    assert_version(f, 2, "WRITE -1-1* +1-2*");
    check_log(f, t);
    table_unref(t);
}

static void rows_that_a_rule_takes_are_a_change(void **state)
{
    struct fixture *f = *state;
    struct table *t = table_with(f, "CREATE TABLE t (p Int32, k UInt64, s String) ENGINE = ReplacingMergeTree "
                                    "ORDER BY k SETTINGS publish = 'delta'");
    put(t, 1, 1);
    put(t, 2, 1);
    publish(f);
    optimize(f);
    publish(f);
    assert_version(f, 2, "WRITE -1-1* -2-2* +1-2*");
    check_log(f, t);
    table_unref(t);
}

static void cuts_are_deletes(void **state)
{
    struct fixture *f = *state;
    struct table *t = table_with(f, published);
    put(t, 1, 1);
    put(t, 2, 2);
    publish(f);
    ddl(f, "ALTER TABLE t DROP PARTITION 1");
    publish(f);
    assert_version(f, 2, "DELETE -1-1*");
    ddl(f, "TRUNCATE TABLE t");
    publish(f);
    assert_version(f, 3, "TRUNCATE -2-2*");
    check_log(f, t);
    table_unref(t);
}

static void a_new_column_and_a_comment_are_versions(void **state)
{
    struct fixture *f = *state;
    struct table *t = table_with(f, published);
    publish(f);
    put(t, 1, 1);
    ddl(f, "ALTER TABLE t ADD COLUMN x Int32 DEFAULT 5");
    publish(f);
    ddl(f, "ALTER TABLE t COMMENT COLUMN x 'five'");
    publish(f);
    assert_version(f, 1, "ADD COLUMNS");
    assert_version(f, 2, "WRITE +1-1*");
    assert_version(f, 3, "CHANGE COLUMN");
    char *text = read_commit(f, 3);
    assert_non_null(strstr(text, "{\\\"name\\\":\\\"x\\\",\\\"type\\\":\\\"integer\\\",\\\"nullable\\\":true,"
                                 "\\\"metadata\\\":{\\\"comment\\\":\\\"five\\\"}}"));
    assert_non_null(strstr(text, "{\\\"name\\\":\\\"p\\\",\\\"type\\\":\\\"integer\\\",\\\"nullable\\\":false,"));
    free(text);
    table_unref(t);
}

static void a_renamed_table_goes_on_with_its_log(void **state)
{
    struct fixture *f = *state;
    struct table *t = table_with(f, published);
    put(t, 1, 1);
    publish(f);
    table_unref(t);
    ddl(f, "RENAME TABLE t TO u");
    publish(f);
    ddl(f, "RENAME TABLE u TO t");
    t = find_table(f, "t");
    put(t, 1, 2);
    publish(f);
    assert_version(f, 2, "CHANGE COLUMN");
    assert_version(f, 3, "CHANGE COLUMN");
    assert_version(f, 4, "WRITE +2-2*");
    check_log(f, t);
    table_unref(t);
}

static void the_interval_and_many_changes_decide_when(void **state)
{
    struct fixture *f = *state;
    struct table *t = table_with(f, published);
    store_publish_step(f->store, f->clock.mono, false);
    assert_true(has_version(f, 0));
    put(t, 1, 1);
    clock_manual_advance(&f->clock, 9 * NS_PER_S);
    store_publish_step(f->store, f->clock.mono, false);
    assert_false(has_version(f, 1));
    clock_manual_advance(&f->clock, NS_PER_S);
    store_publish_step(f->store, f->clock.mono, false);
    assert_true(has_version(f, 1));
    for (uint64_t k = 0; k < 64; k++)
        put(t, 1, k);
    store_publish_step(f->store, f->clock.mono, false);
    assert_true(has_version(f, 2));
    table_unref(t);
}

static void merges_do_not_mix_what_is_published(void **state)
{
    struct fixture *f = *state;
    struct table *t = table_with(f, published);
    for (uint64_t k = 0; k < 10; k++)
        put(t, 1, k);
    publish(f);
    for (uint64_t k = 0; k < 10; k++)
        put(t, 1, k);
    clock_manual_advance(&f->clock, 100 * NS_PER_S);
    while (store_merge_step(f->store, f->clock.mono) <= f->clock.mono)
        continue;
    struct part_set *set = table_snapshot(t);
    assert_true(set->count < 20);
    for (size_t i = 0; i < set->count; i++)
        assert_true(set->parts[i]->name.last <= 10 || set->parts[i]->name.first > 10);
    part_set_unref(set);
    table_unref(t);
}

/* ---- statistics ---- */

/* One row a line, its values separated by blanks. */
static void put_texts(struct table *t, const char *lines)
{
    struct schema *schema = schema_ref(table_def(t)->schema);
    struct block block;
    struct table_member member = { 0 };
    struct str rest = str_of(lines), line, value;
    struct err err = { 0 };
    block_start(&block, schema);
    while (str_cut(&rest, '\n', &line)) {
        for (size_t i = 0; i < schema->columns_count; i++) {
            assert_true(str_cut(&line, ' ', &value));
            if (!text_value_parse(value, TEXT_ESCAPED, format_settings_default(), &block.columns[i], &err))
                stop("value", &err);
        }
        block.rows++;
    }
    member.rows = block.rows;
    if (!table_insert(t, schema, &block, &member, 1, &no_options, &err))
        stop("insert", &err);
    block_fini(&block);
    schema_unref(schema);
}

/* Of a table of one column c with these values: "MIN MAX NULLS", or "- - NULLS" without bounds. */
static void assert_stats(struct fixture *f, const char *type, const char *values, const char *expected)
{
    struct strbuf sql = { 0 }, found = { 0 };
    strbuf_addf(&sql, "CREATE TABLE t (c %s) ORDER BY tuple() SETTINGS publish = 'delta'", type);
    struct table *t = table_with(f, strbuf_cstr(&sql));
    put_texts(t, values);
    publish(f);
    const struct delta_state *state = &t->publication.log->state;
    size_t count = 0;
    struct delta_file **files = delta_state_files(state, &count);
    assert_int_equal(count, 1);
    struct str rest = str_of(files[0]->stats), piece;
    static const char *const heads[] = { "\"minValues\":{", "\"maxValues\":{", "\"nullCount\":{" };
    for (size_t i = 0; i < ARRAY_COUNT(heads); i++) {
        rest = str_from(rest, (size_t)str_find(rest, str_of(heads[i])) + strlen(heads[i]));
        assert_true(str_cut(&rest, '}', &piece));
        strbuf_addf(&found, "%s" STR_FMT, i == 0 ? "" : " ", STR_ARG(piece.len == 0 ? STR("-") : str_from(piece, 4)));
    }
    if (strcmp(strbuf_cstr(&found), expected) != 0)
        fail_msg("%s of %s: %s, not %s", type, values, strbuf_cstr(&found), expected);
    free(files);
    table_unref(t);
    ddl(f, "DROP TABLE t");
    strbuf_fini(&sql);
    strbuf_fini(&found);
}

static void statistics_are_bounds_that_hold(void **state)
{
    static const struct {
        const char *type, *values, *expected;
    } cases[] = {
        { "UInt64", "18446744073709551615\n3", "3 18446744073709551615 0" },
        { "Int8", "-128\n127", "-128 127 0" },
        { "Nullable(Int32)", "\\N\n5\n\\N", "5 5 2" },
        { "Nullable(Int32)", "\\N", "- - 1" },
        { "Float64", "-1.5\n2e30", "-1.5 2e30 0" },
        { "Float32", "0.1\n0.1", "0.10000000149011612 0.10000000149011612 0" },
        { "Float64", "0\nnan", "- - 0" },
        { "Float64", "0\ninf", "- - 0" },
        { "Float64", "0\n1", "-0 1 0" },
        { "Decimal(9, 2)", "1.5\n-3", "-3.00 1.50 0" },
        { "Decimal(38, 1)", "1.5", "1.5 1.5 0" },
        { "Date", "2025-03-01\n1970-01-01", "\"1970-01-01\" \"2025-03-01\" 0" },
        { "DateTime", "1000000000", "\"2001-09-09T01:46:40.000Z\" \"2001-09-09T01:46:40.000Z\" 0" },
        { "DateTime64(6)", "1000000000.000001", "\"2001-09-09T01:46:40.000Z\" \"2001-09-09T01:46:40.001Z\" 0" },
        { "DateTime64(6)", "1960-01-01T00:00:00.000001",
          "\"1960-01-01T00:00:00.000Z\" \"1960-01-01T00:00:00.001Z\" 0" },
        { "DateTime64(9)", "1000000000.000000001", "1000000000000000001 1000000000000000001 0" },
        { "String", "abc\nabd", "\"abc\" \"abd\" 0" },
        { "String", "01234567890123456789012345678901x",
          "\"01234567890123456789012345678901\" "
          "\"01234567890123456789012345678902\" 0" },
        { "String", "\"\\\\", "\"\\\"\\\\\" \"\\\"\\\\\" 0" },
        { "UUID", "00112233-4455-6677-8899-aabbccddeeff",
          "\"00112233-4455-6677-8899-aabbccddeeff\" "
          "\"00112233-4455-6677-8899-aabbccddeeff\" 0" },
        { "Bool", "true", "- - 0" },
        { "FixedString(3)", "abc", "- - 0" },
        { "Enum8('b' = 1, 'a' = 2)", "b\na", "- - 0" },
        { "IPv4", "9.0.0.1\n10.0.0.1", "- - 0" },
        { "Int128", "9\n10", "- - 0" },
        { "Array(Int32)", "[1]", "- - -" },
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++)
        assert_stats(f, cases[i].type, cases[i].values, cases[i].expected);
}

/* ---- restarts ---- */

static void a_restart_goes_on_where_it_was(void **state)
{
    struct fixture *f = *state;
    struct table *t = table_with(f, published);
    put(t, 1, 1);
    publish(f);
    put(t, 1, 2);
    table_unref(t);
    fixture_reopen(f);
    publish(f);
    assert_version(f, 2, "WRITE +2-2*");
    fixture_reopen(f);
    publish(f);
    assert_false(has_version(f, 3));
    t = find_table(f, "t");
    check_log(f, t);
    table_unref(t);
}

static void a_merge_before_the_restart_is_told_after_it(void **state)
{
    struct fixture *f = *state;
    struct table *t = table_with(f, published);
    put(t, 1, 1);
    publish(f);
    put(t, 1, 2);
    optimize(f);
    table_unref(t);
    fixture_reopen(f);
    publish(f);
    assert_version(f, 2, "WRITE +2-2*");
    assert_version(f, 3, "OPTIMIZE -1-1 -2-2 +1-2");
    t = find_table(f, "t");
    check_log(f, t);
    table_unref(t);
}

/* ---- files that have left the table ---- */

static bool part_is_there(struct fixture *f, const char *prefix)
{
    struct fs_names names = { 0 };
    struct err err = { 0 };
    bool found = false;
    assert_true(fs_list(f->fs, "/data/tables/default/t/p=1", &names, &err));
    for (size_t i = 0; i < names.count; i++)
        found = found || str_starts(str_of(names.names[i]), str_of(prefix));
    fs_names_fini(&names);
    return found;
}

static void clean_after(struct fixture *f, uint64_t seconds)
{
    clock_manual_advance(&f->clock, seconds * NS_PER_S);
    store_clean_step(f->store, f->clock.mono);
}

static void removed_files_stay_for_the_retention(void **state)
{
    struct fixture *f = *state;
    struct table *t = table_with(f, "CREATE TABLE t (p Int32, k UInt64, s String) PARTITION BY p ORDER BY k "
                                    "SETTINGS publish = 'delta', publish_file_retention = 1000");
    put(t, 1, 1);
    put(t, 1, 2);
    publish(f);
    optimize(f);
    clean_after(f, 2000); /* the log still names them */
    assert_true(part_is_there(f, "1_1_0_"));
    publish(f);
    clean_after(f, 999);
    assert_true(part_is_there(f, "1_1_0_"));
    table_unref(t);
    fixture_reopen(f);
    clean_after(f, 500); /* nobody knows yet what the log names */
    assert_true(part_is_there(f, "2_2_0_"));
    publish(f);
    clean_after(f, 0);
    assert_false(part_is_there(f, "1_1_0_"));
    assert_false(part_is_there(f, "2_2_0_"));
    assert_true(part_is_there(f, "1_2_1_"));
}

static void cut_files_stay_for_the_retention_even_after_a_restart(void **state)
{
    struct fixture *f = *state;
    struct table *t = table_with(f, "CREATE TABLE t (p Int32, k UInt64, s String) PARTITION BY p ORDER BY k "
                                    "SETTINGS publish = 'delta', publish_file_retention = 1000");
    put(t, 1, 1);
    publish(f);
    ddl(f, "TRUNCATE TABLE t");
    table_unref(t);
    fixture_reopen(f);
    clean_after(f, 10);
    assert_true(part_is_there(f, "1_1_0_"));
    publish(f);
    assert_version(f, 2, "TRUNCATE -1-1*");
    fixture_reopen(f);
    publish(f);
    clean_after(f, 900);
    assert_true(part_is_there(f, "1_1_0_"));
    t = find_table(f, "t");
    assert_rows(t, "");
    put(t, 1, 2);
    clean_after(f, 200);
    assert_false(part_is_there(f, "1_1_0_"));
    table_unref(t);
}

/* ---- somebody else ---- */

static void write_commit(struct fixture *f, int version, const char *text)
{
    char name[64];
    struct err err = { 0 };
    snprintf(name, sizeof name, "%020d.json", version);
    if (!fs_write_durably(f->fs, log_dir, name, str_of(text), true, &err))
        stop(name, &err);
}

static void assert_stopped(struct fixture *f, bool stopped)
{
    struct table *t = find_table(f, "t");
    struct table_stats stats;
    table_get_stats(t, &stats);
    assert_int_equal(stats.delta_stopped, stopped);
    table_unref(t);
}

static void a_version_of_another_writer_ends_publication(void **state)
{
    static const char other[] = "{\"commitInfo\":{\"operation\":\"VACUUM\",\"engineInfo\":\"other/1\"}}\n";
    struct fixture *f = *state;
    struct table *t = table_with(f, published);
    put(t, 1, 1);
    publish(f);
    assert_stopped(f, false);
    write_commit(f, 2, other);
    put(t, 1, 2);
    publish(f);
    assert_stopped(f, true);
    char *text = read_commit(f, 2);
    assert_string_equal(text, other);
    free(text);
    optimize(f); /* the table itself goes on, and what is published stays */
    clean_after(f, 1000000);
    assert_true(part_is_there(f, "1_1_0_"));
    table_unref(t);
    fixture_reopen(f);
    publish(f);
    assert_stopped(f, true);
    assert_false(has_version(f, 3));
}

static void a_damaged_log_ends_publication(void **state)
{
    static const char *const texts[] = {
        "",
        "{\"commitInfo\":",
        "[]\n",
        "{}\n",
        "{\"add\":{}}\n",
        "{\"commitInfo\":{},\"add\":{}}\n",
        "{\"commitInfo\":null}\n",
        "\n\n",
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
        struct table *t = table_with(f, published);
        publish(f);
        put(t, 1, 1);
        publish(f);
        table_unref(t);
        write_commit(f, 1, texts[i]);
        fixture_reopen(f);
        publish(f);
        assert_stopped(f, true);
        ddl(f, "DROP TABLE t");
    }
}

/* Each line of a good commit, with one thing in it changed, is refused. */
static void a_changed_commit_is_refused(void **state)
{
    static const char *const changes[][2] = {
        { "\"sluiceCommit\":\"", "\"sluiceCommit\":\"x" },
        { "\"minReaderVersion\":1", "\"minReaderVersion\":3" },
        { "\"minWriterVersion\":2", "\"minWriterVersion\":7" },
        { "\"metaData\":{\"id\":\"", "\"metaData\":{\"id\":\"x" },
        { "{\"protocol\"", "{\"domainMetadata\"" },
    };
    struct fixture *f = *state;
    struct table *t = table_with(f, published);
    publish(f);
    char *good = read_commit(f, 0);
    for (size_t i = 0; i < ARRAY_COUNT(changes); i++) {
        struct delta_state s;
        struct err err = { 0 };
        struct strbuf text = { 0 };
        char *at = strstr(good, changes[i][0]);
        assert_non_null(at);
        strbuf_add_bytes(&text, good, (size_t)(at - good));
        strbuf_addf(&text, "%s%s", changes[i][1], at + strlen(changes[i][0]));
        delta_state_init(&s, table_def(t)->uuid);
        assert_false(delta_state_apply(&s, strbuf_view(&text), &err));
        assert_int_equal(err.code, ERR_CORRUPTED_DATA);
        delta_state_fini(&s);
        strbuf_fini(&text);
    }
    free(good);
    table_unref(t);
}

static void a_gap_ends_publication(void **state)
{
    struct fixture *f = *state;
    char path[PATH_BYTES];
    struct err err = { 0 };
    struct table *t = table_with(f, published);
    for (uint64_t k = 0; k < 3; k++) {
        put(t, 1, k);
        publish(f);
    }
    snprintf(path, sizeof path, "%s/%020d.json", log_dir, 2);
    assert_true(fs_unlink(f->fs, path, &err));
    table_unref(t);
    fixture_reopen(f);
    publish(f);
    assert_stopped(f, true);
}

/* ---- checkpoints ---- */

static const char with_checkpoints[] = "CREATE TABLE t (p Int32, k UInt64, s String) PARTITION BY p ORDER BY k "
                                       "SETTINGS publish = 'delta', publish_checkpoint_interval = 4, "
                                       "publish_log_retention = %d, publish_file_retention = 100000";

static struct table *table_with_checkpoints(struct fixture *f, int log_retention)
{
    char sql[512];
    snprintf(sql, sizeof sql, with_checkpoints, log_retention);
    return table_with(f, sql);
}

static void publish_one_by_one(struct fixture *f, struct table *t, uint64_t from, uint64_t to)
{
    for (uint64_t k = from; k < to; k++) {
        put(t, (int32_t)(k % 2), k);
        publish(f);
        if (k % 5 == 4) {
            optimize(f);
            publish(f);
        }
    }
}

static void a_state_comes_back_from_its_checkpoint(void **state)
{
    struct fixture *f = *state;
    struct table *t = table_with_checkpoints(f, INT32_MAX);
    publish_one_by_one(f, t, 0, 17);
    ddl(f, "ALTER TABLE t ADD COLUMN n Nullable(String) COMMENT 'new'");
    publish(f);
    const struct delta_state *before = &t->publication.log->state;
    struct delta_state after;
    struct strbuf bytes = { 0 };
    struct err err = { 0 };
    uint64_t rows = 0;
    assert_true(delta_checkpoint_write(before, 77, &bytes, &rows, &err));
    delta_state_init(&after, before->uuid);
    if (!delta_checkpoint_read(strbuf_view(&bytes), before->version, &after, &err))
        stop("checkpoint", &err);
    assert_int_equal(after.version, before->version);
    assert_int_equal(after.txn_version, before->txn_version);
    assert_int_equal(after.live_count, before->live_count);
    assert_true(json_equal(after.meta_data, before->meta_data));
    size_t count = 0, again = 0;
    struct delta_file **x = delta_state_files(before, &count), **y = delta_state_files(&after, &again);
    assert_int_equal(count, again);
    assert_true(count > before->live_count); /* some were removed */
    assert_int_equal(rows, count + 3);
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(x[i]->path, y[i]->path);
        assert_string_equal(x[i]->dir, y[i]->dir);
        assert_string_equal(x[i]->partition, y[i]->partition);
        assert_int_equal(x[i]->size, y[i]->size);
        assert_int_equal(x[i]->removed_ms, y[i]->removed_ms);
        if (x[i]->removed_ms != 0)
            continue;
        assert_string_equal(x[i]->stats, y[i]->stats);
        assert_int_equal(x[i]->rows, y[i]->rows);
        assert_int_equal(x[i]->modified_ms, y[i]->modified_ms);
    }
    free(x);
    free(y);
    delta_state_fini(&after);
    strbuf_fini(&bytes);
    table_unref(t);
}

static bool log_has(struct fixture *f, const char *name)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s", log_dir, name);
    return fs_exists(f->fs, path);
}

static void a_restart_reads_the_newest_checkpoint(void **state)
{
    struct fixture *f = *state;
    struct table *t = table_with_checkpoints(f, INT32_MAX);
    publish_one_by_one(f, t, 0, 6);
    int64_t version = t->publication.version;
    assert_true(log_has(f, "00000000000000000004.checkpoint.parquet"));
    assert_true(log_has(f, "_last_checkpoint"));
    for (int i = 0; i < 4; i++) { /* not needed any more */
        char path[PATH_BYTES];
        struct err err = { 0 };
        snprintf(path, sizeof path, "%s/%020d.json", log_dir, i);
        assert_true(fs_unlink(f->fs, path, &err));
    }
    table_unref(t);
    fixture_reopen(f);
    publish(f);
    t = find_table(f, "t");
    assert_stopped(f, false);
    assert_int_equal(t->publication.version, version);
    check_log(f, t);
    table_unref(t);
}

static void a_damaged_checkpoint_is_passed_over(void **state)
{
    struct fixture *f = *state;
    struct table *t = table_with_checkpoints(f, INT32_MAX);
    publish_one_by_one(f, t, 0, 10);
    int64_t version = t->publication.version;
    fs_sim_flip(f->fs, "/data/tables/default/t/_delta_log/00000000000000000008.checkpoint.parquet", 100, 0x10);
    table_unref(t);
    fixture_reopen(f);
    publish(f);
    t = find_table(f, "t");
    assert_int_equal(t->publication.version, version);
    check_log(f, t);
    table_unref(t);
}

static void any_damage_to_a_checkpoint_is_found(void **state)
{
    struct fixture *f = *state;
    struct table *t = table_with_checkpoints(f, INT32_MAX);
    publish_one_by_one(f, t, 0, 3);
    const struct delta_state *before = &t->publication.log->state;
    struct strbuf bytes = { 0 };
    struct err err = { 0 };
    uint64_t rows = 0;
    size_t undetected = 0;
    assert_true(delta_checkpoint_write(before, 77, &bytes, &rows, &err));
    for (size_t i = 0; i < bytes.len; i++) {
        struct delta_state after;
        delta_state_init(&after, before->uuid);
        bytes.data[i] = (char)(bytes.data[i] ^ 0x20);
        undetected +=
            delta_checkpoint_read(strbuf_view(&bytes), 1, &after, &err) && after.live_count != before->live_count;
        bytes.data[i] = (char)(bytes.data[i] ^ 0x20);
        delta_state_fini(&after);
    }
    assert_int_equal(undetected, 0);
    strbuf_fini(&bytes);
    table_unref(t);
}

static void old_versions_go_without_a_gap(void **state)
{
    struct fixture *f = *state;
    struct table *t = table_with_checkpoints(f, 0);
    publish_one_by_one(f, t, 0, 20);
    struct fs_names names = { 0 };
    struct err err = { 0 };
    size_t commits = 0, checkpoints = 0;
    assert_true(fs_list(f->fs, log_dir, &names, &err));
    for (size_t i = 0; i < names.count; i++) {
        commits += str_ends(str_of(names.names[i]), STR(".json"));
        checkpoints += str_ends(str_of(names.names[i]), STR(".parquet"));
    }
    assert_int_equal(checkpoints, 1);
    assert_in_range(commits, 1, 5);
    assert_true(str_starts(str_of(names.names[0]), str_sub(str_of(names.names[1]), 0, 20))); /* its own commit stays */
    fs_names_fini(&names);
    check_log(f, t);
    table_unref(t);
    fixture_reopen(f);
    publish(f);
    t = find_table(f, "t");
    check_log(f, t);
    table_unref(t);
}

/* ---- what a table has to be ---- */

static void what_has_no_delta_form_is_refused(void **state)
{
    static const struct {
        const char *columns, *settings;
        enum err_code code;
    } cases[] = {
        { "a UInt64", "", ERR_OK },
        { "a UUID, b IPv6, c Int256, d Decimal(76, 2), e FixedString(3), f DateTime64(9)", "", ERR_OK },
        { "a UUID", ", profile = 'native'", ERR_NOT_IMPLEMENTED },
        { "a IPv4", ", profile = 'native'", ERR_NOT_IMPLEMENTED },
        { "a Array(Tuple(x FixedString(3)))", ", profile = 'native'", ERR_NOT_IMPLEMENTED },
        { "a DateTime64(9)", ", profile = 'native'", ERR_NOT_IMPLEMENTED },
        { "a UInt8, b DateTime64(3)", ", profile = 'native'", ERR_OK },
        { "a Int8, A Int8", "", ERR_BAD_ARGUMENTS },
        { "a Tuple(x Int8, X Int8)", "", ERR_BAD_ARGUMENTS },
        { "`a\xff` Int8", "", ERR_BAD_ARGUMENTS },
        { "a Int8", ", publish_interval = 0", ERR_CANNOT_PARSE_INPUT_ASSERTION_FAILED },
        { "a Int8", ", invalid_utf8 = 'drop'", ERR_BAD_ARGUMENTS },
        { "a Int8", ", publish = 'iceberg'", ERR_BAD_ARGUMENTS },
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        char sql[512];
        snprintf(sql, sizeof sql, "CREATE TABLE t (%s) ORDER BY tuple() SETTINGS publish = 'delta'%s", cases[i].columns,
                 cases[i].settings);
        enum err_code code = ddl_code(f, sql);
        if (code != cases[i].code)
            fail_msg("%s: %d", sql, (int)code);
        if (code == ERR_OK)
            ddl(f, "DROP TABLE t");
    }
}

static void an_alter_cannot_make_published_files_wrong(void **state)
{
    struct fixture *f = *state;
    ddl(f, published);
    assert_int_equal(ddl_code(f, "ALTER TABLE t MODIFY SETTING invalid_utf8 = 'keep'"), ERR_NOT_IMPLEMENTED);
    assert_int_equal(ddl_code(f, "ALTER TABLE t MODIFY SETTING profile = 'native'"), ERR_NOT_IMPLEMENTED);
    assert_int_equal(ddl_code(f, "ALTER TABLE t ADD COLUMN K UInt8"), ERR_BAD_ARGUMENTS);
    assert_int_equal(ddl_code(f, "ALTER TABLE t ADD COLUMN x UInt8"), ERR_OK);
    assert_int_equal(ddl_code(f, "ALTER TABLE t DROP COLUMN x"), ERR_NOT_IMPLEMENTED);
    assert_int_equal(ddl_code(f, "ALTER TABLE t RENAME COLUMN x TO y"), ERR_NOT_IMPLEMENTED);
    assert_int_equal(ddl_code(f, "ALTER TABLE t MODIFY SETTING invalid_utf8 = 'reject', publish_interval = 5"), ERR_OK);
}

static const char plain[] = "CREATE TABLE t (p Int32, k UInt64, s String) PARTITION BY p ORDER BY k";

static void publication_begins_and_ends_by_alter(void **state)
{
    struct fixture *f = *state;
    struct table *t = table_with(f, plain);
    put(t, 1, 1);
    put(t, 1, 2);
    publish(f);
    assert_false(has_version(f, 0));
    ddl(f, "ALTER TABLE t MODIFY SETTING publish = 'delta', publish_interval = 3");
    publish(f);
    assert_version(f, 0, "CREATE TABLE");
    assert_version(f, 1, "WRITE +1-1* +2-2*");
    ddl(f, "ALTER TABLE t RESET SETTING publish");
    put(t, 1, 3);
    optimize(f);
    clean_after(f, 1000);
    publish(f);
    assert_false(has_version(f, 2));
    assert_int_equal(ddl_code(f, "ALTER TABLE t DROP COLUMN s"), ERR_NOT_IMPLEMENTED); /* the log still names it */
    table_unref(t);
    fixture_reopen(f);
    ddl(f, "ALTER TABLE t MODIFY SETTING publish = 'delta'");
    publish(f);
    assert_version(f, 2, "WRITE -1-1* -2-2* +1-3*"); /* not all of it was published */
    t = find_table(f, "t");
    check_log(f, t);
    put(t, 1, 4);
    publish(f);
    assert_version(f, 3, "WRITE +4-4*");
    table_unref(t);
}

/* The same merge as above, but nothing that was published is merged while it is off. */
static void merges_are_free_again_without_publication(void **state)
{
    struct fixture *f = *state;
    struct table *t = table_with(f, published);
    put(t, 1, 1);
    publish(f);
    put(t, 1, 2);
    ddl(f, "ALTER TABLE t MODIFY SETTING publish = ''");
    struct part_set *set = table_snapshot(t);
    for (size_t i = 0; i < set->count; i++)
        assert_int_equal(set->parts[i]->publication, PART_UNPUBLISHED);
    part_set_unref(set);
    table_unref(t);
}

static void parts_that_others_would_misread_are_not_published(void **state)
{
    static const struct {
        const char *before; /* the ALTER after which there is a part of before */
        const char *settings;
        bool detach;
    } cases[] = {
        { "RENAME COLUMN s TO z", "publish = 'delta'", true },
        { "DROP COLUMN s, ADD COLUMN S UInt8", "publish = 'delta'", true },
        { "MODIFY SETTING profile = 'native'", "publish = 'delta'", true },
        { "COMMENT COLUMN s 'x'", "publish = 'delta', invalid_utf8 = 'keep'", false },
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        char sql[256];
        struct table *t = table_with(f, plain);
        put(t, 1, 1);
        snprintf(sql, sizeof sql, "ALTER TABLE t %s", cases[i].before);
        ddl(f, sql);
        snprintf(sql, sizeof sql, "ALTER TABLE t MODIFY SETTING %s", cases[i].settings);
        assert_int_equal(ddl_code(f, sql), ERR_NOT_IMPLEMENTED);
        assert_false(table_def(t)->settings.publish);
        if (cases[i].detach) {
            ddl(f, "ALTER TABLE t DETACH PARTITION 1");
            ddl(f, "ALTER TABLE t ATTACH PARTITION 1");
            assert_int_equal(ddl_code(f, sql), ERR_OK);
        }
        table_unref(t);
        ddl(f, "DROP TABLE t");
    }
}

static void text_that_is_none_is_not_published_as_text(void **state)
{
    struct fixture *f = *state;
    struct table *t = table_with(f, plain);
    struct err err = { 0 };
    struct table_member member;
    insert(t, (struct row[]){ { 1, 1, "\xff" } }, 1, "");
    put(t, 2, 1);
    assert_int_equal(ddl_code(f, "ALTER TABLE t MODIFY SETTING publish = 'delta'"), ERR_NOT_IMPLEMENTED);
    ddl(f, "ALTER TABLE t DETACH PARTITION 1");
    struct schema *schema = schema_ref(table_def(t)->schema); /* of an insert that is typed already */
    ddl(f, "ALTER TABLE t MODIFY SETTING publish = 'delta'");
    assert_int_equal(ddl_code(f, "ALTER TABLE t ATTACH PARTITION 1"), ERR_NOT_IMPLEMENTED);
    struct block block;
    block_start(&block, schema);
    push_row(&block, schema, &(struct row){ 1, 1, "\xff" });
    member = (struct table_member){ .rows = 1, .token = STR("") };
    assert_false(table_insert(t, schema, &block, &member, 1, &no_options, &err));
    assert_int_equal(err_verdict(err.code), ERR_RETRY);
    block_fini(&block);
    schema_unref(schema);
    table_unref(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_empty_table_is_published, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(what_changed_since_is_one_version, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_merge_of_published_parts_changes_no_data, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_merge_of_unpublished_parts_is_an_insert, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_mixed_merge_has_its_sources_published_first, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(mixed_merges_of_merges_have_their_sources_published, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(a_mixed_merge_without_its_sources_is_a_change, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(rows_that_a_rule_takes_are_a_change, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(cuts_are_deletes, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_new_column_and_a_comment_are_versions, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_renamed_table_goes_on_with_its_log, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(the_interval_and_many_changes_decide_when, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(merges_do_not_mix_what_is_published, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(statistics_are_bounds_that_hold, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_restart_goes_on_where_it_was, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_merge_before_the_restart_is_told_after_it, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(removed_files_stay_for_the_retention, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(cut_files_stay_for_the_retention_even_after_a_restart, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(a_version_of_another_writer_ends_publication, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_damaged_log_ends_publication, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_changed_commit_is_refused, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_gap_ends_publication, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_state_comes_back_from_its_checkpoint, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_restart_reads_the_newest_checkpoint, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_damaged_checkpoint_is_passed_over, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(any_damage_to_a_checkpoint_is_found, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(old_versions_go_without_a_gap, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(what_has_no_delta_form_is_refused, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(an_alter_cannot_make_published_files_wrong, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(publication_begins_and_ends_by_alter, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(merges_are_free_again_without_publication, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(parts_that_others_would_misread_are_not_published, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(text_that_is_none_is_not_published_as_text, fixture_setup, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
