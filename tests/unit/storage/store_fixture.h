/* store_fixture.h: a store on any disk with a clock and a die of its own, and tables of (p Int32, k UInt64, s String)
 * in it, for the tests of storage/. Calls that have to work stop the process with a text when they do not. */
#ifndef SLUICE_TESTS_UNIT_STORAGE_STORE_FIXTURE_H
#define SLUICE_TESTS_UNIT_STORAGE_STORE_FIXTURE_H
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/rng.h"
#include "storage/store.h"

struct fixture {
    struct fs *fs;
    struct clock_manual clock;
    struct rng_seeded rng;
    struct store *store;
    char dir[PATH_BYTES];
};

struct row {
    int32_t p;
    uint64_t k;
    const char *s;
};

#define FIXTURE_START_NS INT64_C(1793873472000000000) /* 2026-11-05 10:11:12 */

static inline void stop(const char *what, const struct err *err)
{
    fprintf(stderr, "%s: %d %s\n", what, (int)err->code, err->text);
    abort();
}

static inline bool fixture_try_open(struct fixture *f, struct err *err)
{
    enum store_open_failure why;
    struct store_options options = {
        .fs = f->fs, .clock = &f->clock.clock, .rng = &f->rng.rng, .dir = f->dir, .merge_threads = 1
    };
    return store_open(&options, &f->store, &why, err);
}

static inline void fixture_init(struct fixture *f, struct fs *fs, const char *dir, uint64_t seed)
{
    *f = (struct fixture){ .fs = fs };
    snprintf(f->dir, sizeof f->dir, "%s", dir);
    clock_manual_init(&f->clock, 1000 * NS_PER_S, FIXTURE_START_NS);
    rng_seeded_init(&f->rng, seed);
}

static inline void fixture_open(struct fixture *f)
{
    struct err err = { 0 };
    if (!fixture_try_open(f, &err))
        stop("open", &err);
}

static inline void fixture_close(struct fixture *f)
{
    store_close(f->store);
    f->store = NULL;
}

static inline void fixture_reopen(struct fixture *f)
{
    fixture_close(f);
    fixture_open(f);
}

static inline enum err_code ddl_code(struct fixture *f, const char *sql)
{
    struct err err = { 0 };
    bool mine = false;
    if (store_ddl(f->store, str_of(sql), STR("default"), &mine, &err))
        return mine ? ERR_OK : ERR_UNKNOWN_TYPE_OF_QUERY;
    return err.code;
}

static inline void ddl(struct fixture *f, const char *sql)
{
    struct err err = { 0 };
    bool mine = false;
    if (!store_ddl(f->store, str_of(sql), STR("default"), &mine, &err) || !mine)
        stop(sql, &err);
}

static inline struct table *find_table(struct fixture *f, const char *name)
{
    struct err err = { 0 };
    struct table *table = NULL;
    if (!store_table(f->store, STR("default"), str_of(name), &table, &err))
        stop(name, &err);
    return table;
}

/* ---- rows ---- */

static inline void block_start(struct block *b, const struct schema *schema)
{
    block_init(b, schema->columns_count);
    for (size_t i = 0; i < schema->columns_count; i++) {
        column_init(&b->columns[i], schema->columns[i].type);
        b->names[i] = schema->columns[i].name;
    }
}

static inline void push_row(struct block *b, const struct schema *schema, const struct row *row)
{
    for (size_t i = 0; i < schema->columns_count; i++) {
        struct str name = schema->columns[i].name;
        if (str_is(name, "p"))
            column_push_fixed(&b->columns[i], &row->p);
        else if (str_is(name, "k"))
            column_push_fixed(&b->columns[i], &row->k);
        else if (str_is(name, "s"))
            column_push_str(&b->columns[i], str_of(row->s));
        else
            column_push_default(&b->columns[i]);
    }
    b->rows++;
}

static const struct table_insert_options no_options;

/* One insert of one member. */
static inline bool try_insert(struct table *table, const struct row *rows, size_t count, const char *token,
                              struct table_member *member, struct err *err)
{
    struct schema *schema = schema_ref(table_def(table)->schema);
    struct block block;
    block_start(&block, schema);
    for (size_t i = 0; i < count; i++)
        push_row(&block, schema, &rows[i]);
    *member = (struct table_member){ .rows = count, .token = str_of(token) };
    bool ok = table_insert(table, schema, &block, member, 1, &no_options, err);
    block_fini(&block);
    schema_unref(schema);
    return ok;
}

static inline struct table_member insert(struct table *table, const struct row *rows, size_t count, const char *token)
{
    struct err err = { 0 };
    struct table_member member;
    if (!try_insert(table, rows, count, token, &member, &err))
        stop("insert", &err);
    return member;
}

static inline int compare_texts(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* All rows of the active parts as "p:k:s", in bytewise order, joined by spaces. The caller frees. */
static inline char *rows_of(struct table *table)
{
    struct part_set *set = table_snapshot(table);
    char **texts = mem_alloc((size_t)set->rows * sizeof *texts);
    size_t count = 0;
    for (size_t i = 0; i < set->count; i++) {
        struct parquet_file *file = set->parts[i]->file;
        struct schema *schema = parquet_schema(file);
        for (size_t group = 0; group < parquet_row_groups(file); group++) {
            struct column columns[3];
            static const char *const names[] = { "p", "k", "s" };
            for (size_t c = 0; c < 3; c++) {
                struct err err = { 0 };
                int at = schema_find(schema, str_of(names[c]), false);
                must(at >= 0);
                column_init(&columns[c], schema->columns[at].type);
                if (!parquet_read_column(file, group, (size_t)at, &columns[c], &err))
                    stop("read", &err);
            }
            for (size_t row = 0; row < columns[0].rows; row++) {
                struct strbuf text = { 0 };
                struct str s = column_str(&columns[2], row);
                strbuf_addf(&text, "%d:%llu:" STR_FMT, *(const int32_t *)column_cell(&columns[0], row),
                            (unsigned long long)*(const uint64_t *)column_cell(&columns[1], row), STR_ARG(s));
                must(count < set->rows);
                texts[count++] = strbuf_take(&text);
            }
            for (size_t c = 0; c < 3; c++)
                column_fini(&columns[c]);
        }
    }
    part_set_unref(set);
    if (count > 1)
        qsort(texts, count, sizeof *texts, compare_texts);
    struct strbuf all = { 0 };
    for (size_t i = 0; i < count; i++) {
        strbuf_addf(&all, "%s%s", i == 0 ? "" : " ", texts[i]);
        free(texts[i]);
    }
    free(texts);
    if (all.len == 0)
        strbuf_add_text(&all, "");
    char *out = mem_strdup(strbuf_cstr(&all));
    strbuf_fini(&all);
    return out;
}

/* The active parts as "PARTITION_ID:FIRST-LAST-LEVEL" in order, joined by spaces. */
static inline char *parts_of(struct table *table)
{
    struct part_set *set = table_snapshot(table);
    struct strbuf all = { 0 };
    for (size_t i = 0; i < set->count; i++) {
        const struct part *part = set->parts[i];
        strbuf_addf(&all, "%s%s:%llu-%llu-%u", i == 0 ? "" : " ", part->partition.id,
                    (unsigned long long)part->name.first, (unsigned long long)part->name.last, part->name.level);
    }
    part_set_unref(set);
    char *out = mem_strdup(strbuf_cstr(&all));
    strbuf_fini(&all);
    return out;
}

#define assert_rows(table, expected)                                                                                   \
    do {                                                                                                               \
        char *rows_ = rows_of(table);                                                                                  \
        assert_string_equal(rows_, expected);                                                                          \
        free(rows_);                                                                                                   \
    } while (0)
#define assert_parts(table, expected)                                                                                  \
    do {                                                                                                               \
        char *parts_ = parts_of(table);                                                                                \
        assert_string_equal(parts_, expected);                                                                         \
        free(parts_);                                                                                                  \
    } while (0)
#endif
