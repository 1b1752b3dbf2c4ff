/* What only the keeper on disk can get wrong: starts, crashes, damage, caps, age. */
#include <lmdb.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "dlq/letter.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/dlq/letters.h"

struct fixture {
    struct dlq *dlq;
    struct arena *arena;
    struct clock_manual clock;
    struct dlq_options options;
    char dir[PATH_BYTES], dlq_dir[PATH_BYTES], damaged_dir[PATH_BYTES];
};

static const int64_t WALL = 1764518400000000000;

static int setup(void **state)
{
    struct fixture *f = NEW(struct fixture);
    struct err err = { 0 };
    f->arena = arena_new(4096);
    clock_manual_init(&f->clock, 1000, WALL);
    temp_dir_make(f->dir);
    assert_true(path_join(f->dlq_dir, f->dir, "", "dlq", &err) &&
                path_join(f->damaged_dir, f->dir, "", "damaged", &err));
    f->options = (struct dlq_options){ .fs = fs_posix(),
                                       .clock = &f->clock.clock,
                                       .dir = f->dlq_dir,
                                       .damaged_dir = f->damaged_dir,
                                       .bytes_max = 1 << 30,
                                       .letters_max = 1000000 };
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    dlq_close(f->dlq);
    temp_dir_remove(f->dir);
    arena_free(f->arena);
    free(f);
    return 0;
}

static void open_again(struct fixture *f)
{
    struct err err = { 0 };
    dlq_close(f->dlq);
    f->dlq = NULL;
    if (!dlq_lmdb_open(&f->options, &f->dlq, &err))
        fail_msg("%s", err.text);
}

static uint64_t add(struct fixture *f, struct letter letter)
{
    struct err err = { 0 };
    if (!dlq_add(f->dlq, &letter, &err))
        fail_msg("%s", err.text);
    return letter.id;
}

static void check_letter(struct fixture *f, uint64_t id, struct letter wanted)
{
    struct letter got;
    struct err err = { 0 };
    if (!dlq_get(f->dlq, id, f->arena, &got, &err))
        fail_msg("%s", err.text);
    assert_letter(&got, &wanted, true);
}

static size_t files_in(const char *dir, const char *suffix)
{
    struct fs_names names = { 0 };
    struct err err = { 0 };
    size_t count = 0;
    assert_true(fs_list(fs_posix(), dir, &names, &err));
    for (size_t i = 0; i < names.count; i++)
        count += str_ends(str_of(names.names[i]), str_of(suffix));
    fs_names_fini(&names);
    return count;
}

static struct dlq_stats stats_of(struct fixture *f)
{
    struct dlq_stats stats;
    dlq_get_stats(f->dlq, &stats);
    return stats;
}

static void letters_are_there_after_a_restart(void **state)
{
    struct fixture *f = *state;
    struct err err = { 0 };
    struct str body = noise(50000, 1);
    open_again(f);
    uint64_t small = add(f, sample_letter(STR("s"))), large = add(f, sample_letter(body)),
             last = add(f, sample_letter(body));
    assert_true(dlq_drop(f->dlq, last, NULL, &err));
    struct dlq_stats before = stats_of(f);
    open_again(f);
    struct dlq_stats after = stats_of(f);
    assert_int_equal(after.letters, before.letters);
    assert_int_equal(after.bytes, before.bytes);
    assert_int_equal(after.oldest_wall_ns, before.oldest_wall_ns);
    check_letter(f, small, sample_letter(STR("s")));
    check_letter(f, large, sample_letter(body));
    assert_int_equal(files_in(f->dlq_dir, ".letter"), 1);
    assert_true(add(f, sample_letter(STR("n"))) > last); /* also the id of a dropped letter is not given again */
    free((void *)(uintptr_t)body.data);
}

static void a_second_open_is_refused(void **state)
{
    struct fixture *f = *state;
    struct dlq *second = NULL;
    struct err err = { 0 };
    open_again(f);
    assert_false(dlq_lmdb_open(&f->options, &second, &err));
    assert_int_equal(err.code, ERR_CANNOT_OPEN_FILE);
    assert_non_null(strstr(err.text, "already"));
    uint64_t id = add(f, sample_letter(STR("x")));
    check_letter(f, id, sample_letter(STR("x")));
}

/* Behind the keeper's back, which is closed meanwhile: fn may change the value of the letter's record. */
static void change_record(struct fixture *f, uint64_t id, void (*fn)(unsigned char *value, size_t bytes))
{
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi dbi;
    unsigned char raw[LETTER_KEY_BYTES], copy[LETTER_RECORD_MAX];
    MDB_val key = { sizeof(raw), raw }, value;
    dlq_close(f->dlq);
    f->dlq = NULL;
    letter_key(id, raw);
    assert_int_equal(mdb_env_create(&env), 0);
    assert_int_equal(mdb_env_set_mapsize(env, 1 << 30), 0);
    assert_int_equal(mdb_env_open(env, f->dlq_dir, 0, 0600), 0);
    assert_int_equal(mdb_txn_begin(env, NULL, 0, &txn), 0);
    assert_int_equal(mdb_dbi_open(txn, NULL, 0, &dbi), 0);
    assert_int_equal(mdb_get(txn, dbi, &key, &value), 0);
    memcpy(copy, value.mv_data, value.mv_size);
    fn(copy, value.mv_size);
    value.mv_data = copy;
    assert_int_equal(mdb_put(txn, dbi, &key, &value, 0), 0);
    assert_int_equal(mdb_txn_commit(txn), 0);
    mdb_env_close(env);
}

static void flip_a_bit(unsigned char *value, size_t bytes)
{
    value[bytes / 2] ^= 1;
}

static void a_damaged_record_is_set_aside_and_the_others_stay(void **state)
{
    struct fixture *f = *state;
    struct letter *letters;
    struct err err = { 0 };
    size_t count;
    open_again(f);
    uint64_t first = add(f, sample_letter(STR("1"))), second = add(f, sample_letter(STR("2"))),
             third = add(f, sample_letter(STR("3")));
    change_record(f, second, flip_a_bit);
    open_again(f);
    struct dlq_stats stats = stats_of(f);
    assert_int_equal(stats.letters, 2);
    assert_int_equal(stats.damaged, 1);
    assert_true(dlq_list(f->dlq, 0, 10, f->arena, &letters, &count, &err));
    assert_int_equal(count, 2);
    check_letter(f, first, sample_letter(STR("1")));
    check_letter(f, third, sample_letter(STR("3")));
    struct letter got;
    assert_false(dlq_get(f->dlq, second, f->arena, &got, &err));
    assert_int_equal(err.code, ERR_FILE_DOESNT_EXIST);
    char name[64];
    snprintf(name, sizeof(name), "dlq-record-%016llx", (unsigned long long)second);
    assert_int_equal(files_in(f->damaged_dir, name), 1);
    open_again(f);
    stats = stats_of(f);
    assert_int_equal(stats.damaged, 0); /* set aside once */
    assert_int_equal(stats.letters, 2);
}

static void letter_file_path(struct fixture *f, char path[PATH_BYTES])
{
    struct fs_names names = { 0 };
    struct err err = { 0 };
    bool found = false;
    assert_true(fs_list(fs_posix(), f->dlq_dir, &names, &err));
    for (size_t i = 0; i < names.count && !found; i++)
        if (str_ends(str_of(names.names[i]), STR(".letter")))
            found = path_join(path, f->dlq_dir, "", names.names[i], &err);
    fs_names_fini(&names);
    assert_true(found);
}

static void a_damaged_body_is_an_error_and_set_aside(void **state)
{
    struct fixture *f = *state;
    struct str body = noise(50000, 2);
    struct strbuf content = { 0 };
    struct letter *letters, got;
    struct err err = { 0 };
    size_t count;
    char path[PATH_BYTES];
    open_again(f);
    uint64_t id = add(f, sample_letter(body));
    letter_file_path(f, path);
    assert_true(fs_read_file(fs_posix(), path, 1 << 20, &content, &err));
    content.data[40000] ^= 1;
    assert_true(fs_write_durably(fs_posix(), f->dlq_dir, strrchr(path, '/') + 1, strbuf_view(&content), true, &err));
    assert_false(dlq_get(f->dlq, id, f->arena, &got, &err));
    assert_int_equal(err.code, ERR_CORRUPTED_DATA);
    struct dlq_stats stats = stats_of(f);
    assert_int_equal(stats.damaged, 1);
    assert_int_equal(stats.letters, 1);
    assert_int_equal(files_in(f->damaged_dir, ".letter"), 1);
    assert_false(dlq_get(f->dlq, id, f->arena, &got, &err)); /* missing now */
    assert_int_equal(err.code, ERR_CORRUPTED_DATA);
    assert_true(dlq_list(f->dlq, 0, 10, f->arena, &letters, &count, &err)); /* what is known is still told */
    assert_int_equal(count, 1);
    assert_str(letters[0].table, STR("t a\"b"));
    assert_true(dlq_drop(f->dlq, id, NULL, &err));
    assert_int_equal(stats_of(f).letters, 0);
    strbuf_fini(&content);
    free((void *)(uintptr_t)body.data);
}

static void a_missing_body_is_counted_at_the_start(void **state)
{
    struct fixture *f = *state;
    struct str body = noise(50000, 3);
    struct err err = { 0 };
    char path[PATH_BYTES];
    open_again(f);
    add(f, sample_letter(body));
    letter_file_path(f, path);
    assert_true(fs_unlink(fs_posix(), path, &err));
    open_again(f);
    assert_int_equal(stats_of(f).damaged, 1);
    assert_int_equal(stats_of(f).letters, 1);
    free((void *)(uintptr_t)body.data);
}

static void what_a_crash_left_over_is_swept(void **state)
{
    struct fixture *f = *state;
    struct err err = { 0 };
    open_again(f);
    assert_true(
        fs_write_durably(fs_posix(), f->dlq_dir, "00112233445566778899aabbccddeeff.letter", STR("x"), false, &err));
    assert_true(fs_write_durably(fs_posix(), f->dlq_dir, "_tmp_half.letter", STR("x"), false, &err));
    open_again(f);
    assert_int_equal(files_in(f->dlq_dir, ".letter"), 0);
    assert_int_equal(stats_of(f).damaged, 0);
}

static void write_over(struct fixture *f, struct str bytes)
{
    struct err err = { 0 };
    dlq_close(f->dlq);
    f->dlq = NULL;
    assert_true(fs_write_durably(fs_posix(), f->dlq_dir, "data.mdb", bytes, true, &err));
}

static void check_replaced(struct fixture *f)
{
    open_again(f);
    assert_int_equal(stats_of(f).letters, 0);
    assert_int_equal(stats_of(f).damaged, 1);
    struct fs_names names = { 0 };
    struct err err = { 0 };
    assert_true(fs_list(fs_posix(), f->damaged_dir, &names, &err));
    assert_int_equal(names.count, 1);
    fs_names_fini(&names);
    uint64_t id = add(f, sample_letter(STR("new")));
    open_again(f);
    check_letter(f, id, sample_letter(STR("new")));
}

static void an_environment_that_does_not_open_is_set_aside(void **state)
{
    struct fixture *f = *state;
    struct str garbage = noise(65536, 4);
    open_again(f);
    add(f, sample_letter(STR("1")));
    write_over(f, garbage);
    check_replaced(f);
    free((void *)(uintptr_t)garbage.data);
}

static void an_environment_that_is_cut_off_is_set_aside(void **state)
{
    struct fixture *f = *state;
    struct strbuf content = { 0 };
    struct err err = { 0 };
    char path[PATH_BYTES];
    open_again(f);
    for (int i = 0; i < 100; i++)
        add(f, sample_letter(STR("some text")));
    assert_true(path_join(path, f->dlq_dir, "", "data.mdb", &err));
    dlq_close(f->dlq);
    f->dlq = NULL;
    assert_true(fs_read_file(fs_posix(), path, 1 << 28, &content, &err));
    strbuf_truncate(&content, 3 * 4096);
    write_over(f, strbuf_view(&content));
    check_replaced(f);
    strbuf_fini(&content);
}

/* Some cuts take only what LMDB keeps for itself, the list of free pages, and leave every letter readable. */
static void an_environment_that_is_cut_off_anywhere_ends_no_start(void **state)
{
    struct fixture *f = *state;
    struct strbuf content = { 0 };
    struct err err = { 0 };
    char path[PATH_BYTES];
    open_again(f);
    for (int i = 0; i < 20; i++)
        add(f, sample_letter(STR("some text")));
    assert_true(path_join(path, f->dlq_dir, "", "data.mdb", &err));
    dlq_close(f->dlq);
    f->dlq = NULL;
    assert_true(fs_read_file(fs_posix(), path, 1 << 28, &content, &err));
    for (size_t bytes = content.len; bytes > 0; bytes -= MIN(bytes, (size_t)1500)) {
        write_over(f, str_make(content.data, bytes));
        clock_manual_advance(&f->clock, 1);
        open_again(f);
        add(f, sample_letter(STR("after it")));
    }
    strbuf_fini(&content);
}

/* Nor does one with a page of which the disk made something else, whatever LMDB takes it for. */
static void a_filled_page_ends_no_start(void **state)
{
    struct fixture *f = *state;
    struct strbuf content = { 0 }, damaged = { 0 };
    struct err err = { 0 };
    char path[PATH_BYTES];
    enum { PAGE_BYTES = 4096 };
    open_again(f);
    for (int i = 0; i < 40; i++)
        add(f, sample_letter(STR("some text")));
    assert_true(path_join(path, f->dlq_dir, "", "data.mdb", &err));
    dlq_close(f->dlq);
    f->dlq = NULL;
    assert_true(fs_read_file(fs_posix(), path, 1 << 28, &content, &err));
    for (size_t page = 0; page < 2 * content.len / PAGE_BYTES; page++) {
        strbuf_clear(&damaged);
        strbuf_add(&damaged, strbuf_view(&content));
        memset(damaged.data + page / 2 * PAGE_BYTES, page % 2 == 0 ? 0xFF : 0x41, PAGE_BYTES);
        write_over(f, strbuf_view(&damaged));
        clock_manual_advance(&f->clock, 1);
        open_again(f);
        add(f, sample_letter(STR("after it")));
    }
    strbuf_fini(&damaged);
    strbuf_fini(&content);
}

static void the_oldest_go_where_that_is_wanted(void **state)
{
    struct fixture *f = *state;
    struct str body = noise(30000, 5);
    struct letter *letters;
    struct err err = { 0 };
    size_t count;
    f->options.bytes_max = 100000;
    f->options.drop_oldest = true;
    open_again(f);
    uint64_t ids[6];
    for (size_t i = 0; i < ARRAY_COUNT(ids); i++)
        ids[i] = add(f, sample_letter(body));
    assert_true(dlq_list(f->dlq, 0, 10, f->arena, &letters, &count, &err));
    assert_int_equal(count, 3);
    assert_int_equal(letters[0].id, ids[3]);
    assert_int_equal(files_in(f->dlq_dir, ".letter"), 3);
    struct str huge = noise(200000, 6);
    struct letter letter = sample_letter(huge); /* alone larger than all the room: nothing is dropped for it */
    assert_false(dlq_add(f->dlq, &letter, &err));
    assert_int_equal(err.code, ERR_NOT_ENOUGH_SPACE);
    assert_int_equal(stats_of(f).letters, 3);
    assert_int_equal(files_in(f->dlq_dir, ".letter"), 3);
    free((void *)(uintptr_t)body.data);
    free((void *)(uintptr_t)huge.data);
}

static void take_body(void *context, struct letter *letter)
{
    letter->body = *(struct str *)context;
}

static void an_edited_letter_needs_room_for_what_it_grew_by(void **state)
{
    struct fixture *f = *state;
    struct str small = noise(90000, 5), large = noise(200000, 6);
    struct letter got;
    struct err err = { 0 };
    f->options.bytes_max = 100000;
    open_again(f);
    uint64_t id = add(f, sample_letter(small));
    assert_false(dlq_change(f->dlq, id, take_body, &large, &err));
    assert_int_equal(err.code, ERR_NOT_ENOUGH_SPACE);
    assert_true(dlq_get(f->dlq, id, f->arena, &got, &err));
    assert_true(str_eq(got.body, small));
    struct str other = str_from(small, 1);
    assert_true(dlq_change(f->dlq, id, take_body, &other, &err)); /* two of its size would not fit */
    assert_int_equal(files_in(f->dlq_dir, ".letter"), 1);
    free((void *)(uintptr_t)small.data);
    free((void *)(uintptr_t)large.data);
}

static uint64_t data_bytes(struct fixture *f)
{
    struct fs_stat data;
    struct err err = { 0 };
    char path[PATH_BYTES];
    assert_true(path_join(path, f->dlq_dir, "", "data.mdb", &err) && fs_get_stat(fs_posix(), path, &data, &err));
    return data.bytes;
}

static void asked_to_it_gives_back_the_room_of_what_is_gone(void **state)
{
    struct fixture *f = *state;
    struct str body = noise(1500, 9);
    struct letter got;
    struct err err = { 0 };
    open_again(f);
    uint64_t kept = add(f, sample_letter(body));
    for (int i = 0; i < 100; i++)
        assert_true(dlq_drop(f->dlq, add(f, sample_letter(body)), NULL, &err));
    for (int i = 0; i < 50; i++)
        (void)add(f, sample_letter(body));
    for (int i = 0; i < 50; i++)
        assert_true(dlq_drop(f->dlq, kept + 101 + (uint64_t)i, NULL, &err));
    open_again(f);
    uint64_t before = data_bytes(f);
    f->options.compact = true;
    open_again(f);
    assert_true(data_bytes(f) < before / 2);
    assert_true(dlq_get(f->dlq, kept, f->arena, &got, &err));
    assert_true(str_eq(got.body, body));
    assert_int_equal(files_in(f->dlq_dir, "_tmp_compact"), 0);
    assert_true(add(f, sample_letter(body)) > kept + 150); /* no id is given again */
    free((void *)(uintptr_t)body.data);
}

static void the_number_of_letters_is_capped(void **state)
{
    struct fixture *f = *state;
    struct letter letter = sample_letter(STR("x"));
    struct err err = { 0 };
    f->options.letters_max = 2;
    open_again(f);
    uint64_t first = add(f, letter);
    add(f, letter);
    assert_false(dlq_add(f->dlq, &letter, &err));
    assert_int_equal(err.code, ERR_NOT_ENOUGH_SPACE);
    struct letter outcome = { .reason = STR("again") };
    assert_true(dlq_note_attempt(f->dlq, first, &outcome, &err)); /* needs no room of its own */
    open_again(f);
    assert_false(dlq_add(f->dlq, &letter, &err));
    assert_true(dlq_drop(f->dlq, first, NULL, &err));
    add(f, letter);
}

static void old_letters_go_and_young_ones_stay(void **state)
{
    struct fixture *f = *state;
    struct letter letter = sample_letter(STR("x")), old[300];
    struct err err = { 0 };
    f->options.age_ns_max = 3600 * NS_PER_S;
    open_again(f);
    letter.first_wall_ns = WALL;
    for (size_t i = 0; i < ARRAY_COUNT(old); i++)
        old[i] = letter;
    assert_int_equal(dlq_add_many(f->dlq, old, ARRAY_COUNT(old), &err), ARRAY_COUNT(old));
    letter.first_wall_ns = WALL + (int64_t)(1800 * NS_PER_S);
    uint64_t young = add(f, letter);
    assert_true(dlq_step(f->dlq, f->clock.mono) > f->clock.mono);
    assert_int_equal(stats_of(f).letters, 301);
    clock_manual_advance(&f->clock, 3601 * NS_PER_S);
    assert_true(dlq_step(f->dlq, f->clock.mono) <= f->clock.mono); /* a piece at a time */
    assert_true(dlq_step(f->dlq, f->clock.mono) > f->clock.mono);
    assert_int_equal(stats_of(f).letters, 1);
    assert_int_equal(stats_of(f).oldest_wall_ns, letter.first_wall_ns);
    check_letter(f, young, letter);
}

/* The child reports each letter after dlq_add said it is durable, and is killed at some moment. */
static void adder_child(struct fixture *f, int report)
{
    struct err err = { 0 };
    struct str body = noise(4000, 7);
    if (!dlq_lmdb_open(&f->options, &f->dlq, &err)) {
        fprintf(stderr, "child: %s\n", err.text);
        _exit(1);
    }
    for (uint64_t i = 0;; i++) {
        struct letter letter = sample_letter(i % 3 == 0 ? body : STR("small"));
        letter.row = i;
        if (!dlq_add(f->dlq, &letter, &err) || write(report, &letter.id, sizeof(letter.id)) != sizeof(letter.id)) {
            fprintf(stderr, "child: %s\n", err.text);
            _exit(1);
        }
    }
}

static void what_was_acknowledged_survives_kill_9(void **state)
{
    struct fixture *f = *state;
    uint64_t acknowledged = 0, id = 0;
    for (int round = 0; round < 5; round++) {
        int ends[2];
        unsigned char skipped[65536]; /* a fork copies the generator: not the same file names in each child */
        rng_fill(rng_real(), skipped, sizeof(skipped));
        assert_int_equal(pipe(ends), 0);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            adder_child(f, ends[1]);
        close(ends[1]);
        for (int i = 0; i < 20 + 7 * round; i++)
            assert_int_equal(read(ends[0], &id, sizeof(id)), sizeof(id));
        assert_int_equal(kill(child, SIGKILL), 0);
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
        while (read(ends[0], &id, sizeof(id)) == (ssize_t)sizeof(id))
            acknowledged++;
        acknowledged += (uint64_t)(20 + 7 * round);
        close(ends[0]);
        open_again(f);
        struct dlq_stats stats = stats_of(f);
        assert_true(stats.letters >= acknowledged && stats.letters <= acknowledged + (uint64_t)round + 1);
        acknowledged = stats.letters; /* at most one more a round: written, and killed before it was told */
        assert_int_equal(stats.damaged, 0);
        struct letter got;
        struct err err = { 0 };
        assert_true(dlq_get(f->dlq, id, f->arena, &got, &err));
        size_t files = files_in(f->dlq_dir, ".letter");
        struct letter *letters;
        size_t count, large = 0;
        assert_true(dlq_list(f->dlq, 0, SIZE_MAX, f->arena, &letters, &count, &err));
        assert_int_equal(count, stats.letters);
        for (size_t i = 0; i < count; i++) {
            large += letters[i].body_bytes == 4000;
            if (!dlq_get(f->dlq, letters[i].id, f->arena, &got, &err))
                fail_msg("%s", err.text);
        }
        assert_int_equal(files, large);
        dlq_close(f->dlq);
        f->dlq = NULL;
    }
}

/* The file may not grow: commits fail as on a broken disk. */
static void limit_file_growth(struct fixture *f, bool limited)
{
    struct rlimit limit;
    struct fs_stat st;
    struct err err = { 0 };
    char path[PATH_BYTES];
    assert_true(path_join(path, f->dlq_dir, "", "data.mdb", &err));
    assert_true(fs_get_stat(fs_posix(), path, &st, &err));
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = limited ? st.bytes : limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* The very first commit after a start fails: it must not be taken for the last one of the run before. */
static void a_failed_first_commit_is_not_taken_for_an_older_one(void **state)
{
    struct fixture *f = *state;
    struct err err = { 0 };
    struct letter letter = sample_letter(STR("x"));
    struct rlimit limit;
    signal(SIGXFSZ, SIG_IGN);
    open_again(f);
    add(f, letter);
    open_again(f);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = 8192; /* no page but the first two */
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    bool added = dlq_add(f->dlq, &letter, &err);
    limit.rlim_cur = limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    assert_false(added);
    assert_int_equal(stats_of(f).letters, 1);
    add(f, letter);
    assert_int_equal(stats_of(f).letters, 2);
}

static void a_mostly_empty_file_is_made_small_at_the_start(void **state)
{
    enum { LETTERS = 40000, AT_ONCE = 250 };
    struct fixture *f = *state;
    struct err err = { 0 };
    struct fs_stat before, after;
    struct letter many[AT_ONCE];
    char path[PATH_BYTES];
    struct str body = noise(1500, 8);
    f->options.age_ns_max = 3600 * NS_PER_S;
    open_again(f);
    for (size_t i = 0; i < AT_ONCE; i++)
        many[i] = sample_letter(body);
    for (size_t i = 0; i < LETTERS; i += AT_ONCE)
        assert_int_equal(dlq_add_many(f->dlq, many, AT_ONCE, &err), AT_ONCE);
    clock_manual_advance(&f->clock, 7200 * NS_PER_S);
    while (dlq_step(f->dlq, f->clock.mono) <= f->clock.mono)
        ;
    assert_int_equal(stats_of(f).letters, 0);
    uint64_t kept = add(f, sample_letter(body));
    assert_true(path_join(path, f->dlq_dir, "", "data.mdb", &err));
    assert_true(fs_get_stat(fs_posix(), path, &before, &err));
    assert_true(before.bytes > 64u << 20);
    open_again(f);
    assert_true(fs_get_stat(fs_posix(), path, &after, &err));
    assert_true(after.bytes < 1u << 20);
    check_letter(f, kept, sample_letter(body));
    assert_true(add(f, sample_letter(body)) > kept);
    free((void *)(uintptr_t)body.data);
}

static bool add_until_it_fails(struct fixture *f, uint64_t *added, struct err *err)
{
    struct letter letter = sample_letter(STR("x"));
    for (int i = 0; i < 1000; i++, ++*added)
        if (!dlq_add(f->dlq, &letter, err))
            return true;
    return false;
}

static void a_failed_commit_is_survived_and_a_second_one_ends_writing(void **state)
{
    struct fixture *f = *state;
    struct err err = { 0 };
    struct letter letter = sample_letter(STR("x"));
    uint64_t added = 0;
    signal(SIGXFSZ, SIG_IGN);
    open_again(f);
    add(f, letter);
    added++;
    limit_file_growth(f, true);
    bool failed = add_until_it_fails(f, &added, &err);
    limit_file_growth(f, false);
    assert_true(failed);
    assert_int_equal(err.code, ERR_CANNOT_WRITE_TO_FILE_DESCRIPTOR);
    assert_false(stats_of(f).read_only);
    assert_int_equal(stats_of(f).letters, added);
    add(f, letter); /* it goes on */
    added++;
    clock_manual_advance(&f->clock, 61 * NS_PER_S);
    limit_file_growth(f, true);
    failed = add_until_it_fails(f, &added, &err);
    limit_file_growth(f, false);
    assert_true(failed);
    assert_false(stats_of(f).read_only); /* more than a minute later */
    clock_manual_advance(&f->clock, 30 * NS_PER_S);
    limit_file_growth(f, true);
    failed = add_until_it_fails(f, &added, &err);
    limit_file_growth(f, false);
    assert_true(failed);
    assert_true(stats_of(f).read_only);
    assert_false(dlq_add(f->dlq, &letter, &err));
    assert_int_equal(err.code, ERR_TABLE_IS_READ_ONLY);
    struct letter *letters;
    size_t count;
    assert_true(dlq_list(f->dlq, 0, SIZE_MAX, f->arena, &letters, &count, &err));
    assert_int_equal(count, added);
    open_again(f);
    assert_int_equal(stats_of(f).letters, added);
    add(f, letter);
}

static void a_list_longer_than_a_page_is_whole(void **state)
{
    struct fixture *f = *state;
    struct err err = { 0 };
    struct letter *letters, many[700];
    size_t count;
    open_again(f);
    for (size_t i = 0; i < ARRAY_COUNT(many); i++)
        many[i] = sample_letter(STR("x"));
    assert_int_equal(dlq_add_many(f->dlq, many, ARRAY_COUNT(many), &err), ARRAY_COUNT(many));
    assert_true(dlq_list(f->dlq, 0, SIZE_MAX, f->arena, &letters, &count, &err));
    assert_int_equal(count, ARRAY_COUNT(many));
    for (size_t i = 0; i < count; i++)
        assert_int_equal(letters[i].id, many[i].id);
}

struct found {
    unsigned damaged, leftovers;
};

static void note(void *context, bool damage, const char *path, const char *why)
{
    struct found *found = context;
    (void)path;
    (void)why;
    found->damaged += damage;
    found->leftovers += !damage;
}

static struct found verify(const char *dir, uint64_t letters_expected)
{
    struct found found = { 0 };
    uint64_t letters = 0;
    struct err err = { 0 };
    if (!dlq_lmdb_verify(fs_posix(), dir, note, &found, &letters, &err))
        fail_msg("%s", err.text);
    assert_int_equal(letters, letters_expected);
    return found;
}

static void letters_and_the_files_beside_them_are_verified(void **state)
{
    struct fixture *f = *state;
    struct err err = { 0 };
    struct str body = noise(50000, 1);
    open_again(f);
    add(f, sample_letter(STR("s")));
    add(f, sample_letter(body));
    dlq_close(f->dlq);
    f->dlq = NULL;
    struct found found = verify(f->dlq_dir, 2);
    assert_int_equal(found.damaged + found.leftovers, 0);
    assert_true(fs_write_durably(fs_posix(), f->dlq_dir, "00000000000000000000000000000000.letter", body, false, &err));
    assert_int_equal(verify(f->dlq_dir, 2).leftovers, 1);
    struct fs_names names = { 0 };
    assert_true(fs_list(fs_posix(), f->dlq_dir, &names, &err));
    for (size_t i = 0; i < names.count; i++)
        if (str_ends(str_of(names.names[i]), STR(".letter")) && strncmp(names.names[i], "00000000", 8) != 0)
            assert_true(fs_write_durably(fs_posix(), f->dlq_dir, names.names[i], body, true, &err));
    fs_names_fini(&names);
    assert_int_equal(verify(f->dlq_dir, 2).damaged, 1);
    free((void *)(uintptr_t)body.data);
}

static void a_backup_has_the_letters_of_its_moment_P_14(void **state)
{
    struct fixture *f = *state;
    struct err err = { 0 };
    struct str body = noise(50000, 1);
    char dir[PATH_BYTES];
    open_again(f);
    uint64_t small = add(f, sample_letter(STR("s"))), large = add(f, sample_letter(body));
    assert_true(path_join(dir, f->dir, "", "backup", &err) && fs_make_dirs(fs_posix(), dir, &err));
    if (!dlq_lmdb_backup(f->dlq, dir, &err))
        fail_msg("%s", err.text);
    assert_true(dlq_drop(f->dlq, small, NULL, &err) && dlq_drop(f->dlq, large, NULL, &err));
    add(f, sample_letter(STR("later")));
    struct found found = verify(dir, 2);
    assert_int_equal(found.damaged + found.leftovers, 0);
    dlq_close(f->dlq);
    f->dlq = NULL;
    f->options.dir = dir;
    open_again(f);
    check_letter(f, small, sample_letter(STR("s")));
    check_letter(f, large, sample_letter(body));
    free((void *)(uintptr_t)body.data);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(letters_are_there_after_a_restart),
        TEST(a_second_open_is_refused),
        TEST(a_damaged_record_is_set_aside_and_the_others_stay),
        TEST(a_damaged_body_is_an_error_and_set_aside),
        TEST(a_missing_body_is_counted_at_the_start),
        TEST(what_a_crash_left_over_is_swept),
        TEST(an_environment_that_does_not_open_is_set_aside),
        TEST(an_environment_that_is_cut_off_is_set_aside),
        TEST(an_environment_that_is_cut_off_anywhere_ends_no_start),
        TEST(a_filled_page_ends_no_start),
        TEST(the_oldest_go_where_that_is_wanted),
        TEST(an_edited_letter_needs_room_for_what_it_grew_by),
        TEST(asked_to_it_gives_back_the_room_of_what_is_gone),
        TEST(the_number_of_letters_is_capped),
        TEST(old_letters_go_and_young_ones_stay),
        TEST(what_was_acknowledged_survives_kill_9),
        TEST(a_failed_commit_is_survived_and_a_second_one_ends_writing),
        TEST(a_failed_first_commit_is_not_taken_for_an_older_one),
        TEST(a_mostly_empty_file_is_made_small_at_the_start),
        TEST(a_list_longer_than_a_page_is_whole),
        TEST(a_backup_has_the_letters_of_its_moment_P_14),
        TEST(letters_and_the_files_beside_them_are_verified),
    };
    log_configure(LOG_ERROR, LOG_LOGFMT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
