/* Configuration: what is taken, what is refused and with which words. */
#include "support/cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/fs.h"
#include "config/config.h"
#include "config/engine_settings.h"
#include "support/temp_dir.h"

struct outcome {
    bool ok;
    struct config *config;
    struct config_arguments arguments;
    struct strbuf problems;
};

static struct outcome load(const char *yaml, char *const *environment, int argc, char *const *argv)
{
    struct outcome o = { 0 };
    char *all[32] = { NULL };
    char path[PATH_BYTES + 16];
    struct err err;
    char dir[PATH_BYTES];
    temp_dir_make(dir);
    int count = 0;
    if (yaml != NULL) {
        snprintf(path, sizeof(path), "%s/c.yaml", dir);
        assert_true(fs_write_durably(fs_posix(), dir, "c.yaml", str_of(yaml), false, &err));
        all[count++] = (char *)"--config";
        all[count++] = path;
    }
    for (int i = 0; i < argc; i++)
        all[count++] = argv[i];
    o.ok = config_load(count, all, environment, &o.config, &o.arguments, &o.problems);
    temp_dir_remove(dir);
    return o;
}

/* Files of a directory: the first one is --config's. */
struct file {
    const char *dir, *name, *text; /* dir: "" or below the directory */
};

static struct outcome load_files(const struct file *files, size_t count)
{
    struct outcome o = { 0 };
    char dir[PATH_BYTES], path[PATH_BYTES + 300], secrets[PATH_BYTES + 300];
    struct err err;
    temp_dir_make(dir);
    for (size_t i = 0; i < count; i++) {
        snprintf(path, sizeof(path), "%s/%s", dir, files[i].dir);
        assert_true(fs_make_dirs(fs_posix(), path, &err));
        assert_true(fs_write_durably(fs_posix(), path, files[i].name, str_of(files[i].text), false, &err));
    }
    snprintf(path, sizeof(path), "%s/%s", dir, files[0].name);
    snprintf(secrets, sizeof(secrets), "CREDENTIALS_DIRECTORY=%s/secrets", dir);
    char *argv[] = { (char *)"--config", path }, *environment[] = { secrets, NULL };
    o.ok = config_load(2, argv, environment, &o.config, &o.arguments, &o.problems);
    temp_dir_remove(dir);
    return o;
}

static void done(struct outcome *o)
{
    if (o->ok)
        config_free(o->config);
    strbuf_fini(&o->problems);
}

static void defaults_need_nothing(void **state)
{
    (void)state;
    struct outcome o = load(NULL, NULL, 0, NULL);
    assert_true(o.ok);
    assert_true(str_is(o.config->listen, "127.0.0.1:8124"));
    assert_true(o.config->async_insert_max_data_size == 10485760);
    assert_true(o.config->async_insert_busy_timeout_max_ms == 200000000);
    assert_true(o.config->wait_for_async_insert);
    done(&o);
}

static void nested_and_dotted_names_are_the_same(void **state)
{
    (void)state;
    struct outcome o = load("memory:\n  max: 64MiB\nhttp.threads: 3\nlog: {level: warn}\n", NULL, 0, NULL);
    if (!o.ok)
        fail_msg("%s", strbuf_cstr(&o.problems));
    assert_true(o.config->memory_max == 64u << 20);
    assert_true(o.config->http_threads == 3);
    assert_true(o.config->log_level == 2);
    done(&o);
}

static void flags_beat_environment_beats_file(void **state)
{
    (void)state;
    char *environment[] = { (char *)"PATH=/bin", (char *)"SLUICE__MEMORY__MAX=2MiB", (char *)"SLUICE__FLUSH__THREADS=5",
                            NULL };
    char *argv[] = { (char *)"--set", (char *)"flush.threads=7", (char *)"--data-dir=/d" };
    struct outcome o = load("memory.max: 1MiB\nflush.threads: 3\nmerge.threads: 2\n", environment, 3, argv);
    assert_true(o.ok);
    assert_true(o.config->memory_max == 2u << 20);
    assert_true(o.config->flush_threads == 7);
    assert_true(o.config->merge_threads == 2);
    assert_true(str_is(o.config->data_dir, "/d"));
    done(&o);
}

static void problems_name_place_and_remedy(void **state)
{
    (void)state;
    static const struct {
        const char *yaml, *says;
    } cases[] = {
        { "memory.max: 12\n", "c.yaml:1:13: memory.max: '12' is not a size with a unit" },
        { "\nmemory.mx: 1GiB\n", "c.yaml:2:1: unknown setting memory.mx (did you mean memory.max?)" },
        { "flush.threads: 0\n", "flush.threads: 0 is outside 1 to 64" },
        { "log.level: loud\n", "'loud' is not one of debug|info|warn|error" },
        { "async_insert: maybe\n", "'maybe' is not true or false" },
        { "memory.max: 1GiB\nmemory: {max: 2GiB}\n", "c.yaml:2:10: this setting is here twice" },
        { "a: &x 1\n", "anchors, aliases and tags are not accepted" },
        { "memory.max: !!str 1\n", "anchors, aliases and tags are not accepted" },
        { "<<: 1\n", "no setting's name" },
        { "memory: [1]\n", "takes no list" },
        { "- 1\n", "a list is not expected here" },
        { "a: {b\n", "c.yaml:" },
        { "users: {a: {password: plain}}\n", "plain text is not accepted" },
        { "users: {a: {grants: [root]}}\n", "'root' is not one of insert, read, admin" },
        { "users: {a: {colour: red}}\n", "unknown field colour" },
        { "users: {a: {settings: [colour=red]}}\n", "'colour=red' is not a known setting" },
        { "users: {a: {settings: [sluice_ack]}}\n", "'sluice_ack' is not a known setting" },
        { "users: {a: {}, a: {}}\n", "twice" },
        { "users: {a: {password: $1$abcdefgh$0123456789012345678901234567890123456789}}\n", "plain text is not" },
        { "users: {a: {password_file: /no/such/file}}\n", "c.yaml:1:28: users.a.password_file: " },
        { "users: {a: {tables: [clicks]}}\n", "users.a.tables: 'clicks' is not a pattern" },
        { "users: {a: {max: [sluice_ack=high]}}\n", "'sluice_ack=high' is not a known setting with a number" },
        { "users: {a: {readonly: [colour]}}\n", "'colour' is not a known setting" },
        { "users: {a: {bytes_per_minute: 100}}\n", "'100' is not a size with a unit" },
        { "users: {a: {inserts_per_minute: 0}}\n", "'0' is not a whole number greater than 0" },
        { "users: {a: {buffers: many}}\n", "'many' is not a whole number greater than 0" },
        { "users:\n  a: {profile: fast}\n", "c.yaml:2: users.a.profile: there is no profile fast" },
        { "profiles: {a: {grants: [insert]}}\n", "profiles.a: unknown field grants (settings, min," },
        { "async_insert_busy_timeout_min_ms: 500\n", "is greater than async_insert_busy_timeout_max_ms" },
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct outcome o = load(cases[i].yaml, NULL, 0, NULL);
        if (o.ok)
            fail_msg("accepted: %s", cases[i].yaml);
        if (strstr(strbuf_cstr(&o.problems), cases[i].says) == NULL)
            fail_msg("%s: says %s", cases[i].yaml, strbuf_cstr(&o.problems));
        done(&o);
    }
}

static void one_run_names_every_problem(void **state)
{
    (void)state;
    struct outcome o = load("a: 1\nb: 2\nmemory.max: 3\n", NULL, 0, NULL);
    assert_false(o.ok);
    assert_non_null(strstr(strbuf_cstr(&o.problems), ":1:1:"));
    assert_non_null(strstr(strbuf_cstr(&o.problems), ":2:1:"));
    assert_non_null(strstr(strbuf_cstr(&o.problems), ":3:13:"));
    done(&o);
}

static void unknown_variables_and_flags_are_errors(void **state)
{
    (void)state;
    char *environment[] = { (char *)"SLUICE__MEMORY_MAX=1GiB", NULL };
    struct outcome o = load(NULL, environment, 0, NULL);
    assert_false(o.ok);
    assert_false(o.arguments.usage);
    assert_non_null(
        strstr(strbuf_cstr(&o.problems), "SLUICE__MEMORY_MAX: unknown setting memory_max (did you mean memory.max?)"));
    done(&o);
    static char *const bad[] = { (char *)"--no-such", (char *)"--set", (char *)"--config" };
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        o = load(NULL, NULL, 1, &bad[i]);
        assert_false(o.ok);
        assert_true(o.arguments.usage);
        done(&o);
    }
}

static void users_are_read(void **state)
{
    (void)state;
    const char *yaml = "users:\n  agent:\n    password: \"sha256:"
                       "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\"\n"
                       "    grants: [insert, read]\n    tables: [\"m.*\", \"d.t\"]\n"
                       "    settings: [sluice_ack=spooled, max_query_size=99]\n  root: {grants: admin}\n";
    struct outcome o = load(yaml, NULL, 0, NULL);
    if (!o.ok)
        fail_msg("%s", strbuf_cstr(&o.problems));
    assert_true(o.config->users_count == 2);
    assert_true(str_is(o.config->users[0].name, "agent"));
    assert_true(o.config->users[0].grants == (GRANT_INSERT | GRANT_READ));
    assert_true(o.config->users[0].tables.count == 2 && str_is(o.config->users[0].tables.items[1], "d.t"));
    assert_true(o.config->users[0].settings.count == 2 &&
                str_is(o.config->users[0].settings.items[1], "max_query_size=99"));
    assert_true(o.config->users[1].settings.count == 0);
    assert_true(o.config->users[1].grants == GRANT_ADMIN && o.config->users[1].tables.count == 0);
    done(&o);
}

static bool has(struct config_list list, const char *item)
{
    for (size_t i = 0; i < list.count; i++)
        if (str_is(list.items[i], item))
            return true;
    return false;
}

static void drop_ins_are_read_in_their_order(void **state)
{
    (void)state;
    static const struct file files[] = {
        { "", "s.yaml",
          "memory.max: 1MiB\nflush.threads: 3\nmerge.threads: 2\nusers: {a: {grants: [insert]}, b: {}}\n" },
        { "conf.d", "10-a.yaml", "flush: {threads: 4}\nmemory.max: 2MiB\n" },
        { "conf.d", "9-b.yaml", "flush.threads: 5\n" },
        { "conf.d", ".hidden.yaml", "nonsense" },
        { "conf.d", "old.yaml.bak", "nonsense" },
        { "users.d", "a.yaml", "users: {a: {grants: [read]}, c: {}}\n" },
    };
    struct outcome o = load_files(files, ARRAY_COUNT(files));
    if (!o.ok)
        fail_msg("%s", strbuf_cstr(&o.problems));
    assert_int_equal(o.config->memory_max, 2 << 20);
    assert_int_equal(o.config->flush_threads, 5); /* "9-b" stands behind "10-a" */
    assert_int_equal(o.config->merge_threads, 2);
    assert_int_equal(o.config->users_count, 3);
    assert_int_equal(o.config->users[0].grants, GRANT_READ); /* whole, not merged */
    assert_true(str_is(o.config->users[2].name, "c"));
    done(&o);
}

static void a_drop_in_names_its_own_place(void **state)
{
    (void)state;
    static const struct file files[] = { { "", "s.yaml", "memory.max: 1MiB\n" },
                                         { "conf.d", "x.yaml", "\nmemory.max: 5\n" },
                                         { "users.d", "y.yaml", "memory.max: 1MiB\n" } };
    struct outcome o = load_files(files, ARRAY_COUNT(files));
    assert_false(o.ok);
    assert_non_null(strstr(strbuf_cstr(&o.problems), "conf.d/x.yaml:2:13: memory.max: '5' is not a size with a unit"));
    assert_non_null(strstr(strbuf_cstr(&o.problems), "users.d/y.yaml:1:1: a file of users.d holds users and profiles"));
    done(&o);
}

static void secrets_come_from_files(void **state)
{
    (void)state;
    static const char hash[] = "$y$j9T$F5Jx5fExrKuPp53xLKQ..1$X3DX6M94c7o.9agCG9G317fhZg9SqC.5i5rd.RhAtQ7";
    const struct file files[] = { { "", "s.yaml", "users: {a: {password_file: a.hash}, b: {password_file: b}}\n" },
                                  { "secrets", "a.hash", hash },
                                  { "secrets", "b", "hunter2-secret\n" } };
    struct outcome o = load_files(files, ARRAY_COUNT(files));
    assert_false(o.ok);
    assert_non_null(strstr(strbuf_cstr(&o.problems), "users.b.password_file: is neither"));
    assert_null(strstr(strbuf_cstr(&o.problems), "hunter2"));
    assert_null(strstr(strbuf_cstr(&o.problems), "users.a"));
    done(&o);
}

static void a_profile_stands_in_front_of_the_user(void **state)
{
    (void)state;
    struct outcome o = load("users:\n  a: {profile: p, settings: [max_query_size=2], inserts_per_minute: 5}\n"
                            "profiles:\n  p:\n    settings: [max_query_size=1, sluice_ack=spooled]\n"
                            "    min: [max_execution_time=1]\n    max: [max_execution_time=60]\n"
                            "    readonly: [sluice_ack]\n    inserts_per_minute: 9\n    bytes_per_minute: 1MiB\n"
                            "    buffers: 7\n",
                            NULL, 0, NULL);
    if (!o.ok)
        fail_msg("%s", strbuf_cstr(&o.problems));
    const struct config_user *a = &o.config->users[0];
    assert_int_equal(o.config->users_count, 1);
    assert_int_equal(a->settings.count, 3);
    assert_true(str_is(a->settings.items[2], "max_query_size=2")); /* the last one counts */
    assert_true(has(a->least, "max_execution_time=1") && has(a->most, "max_execution_time=60"));
    assert_true(has(a->fixed, "sluice_ack"));
    assert_int_equal(a->inserts_per_minute, 5);
    assert_int_equal(a->bytes_per_minute, 1 << 20);
    assert_int_equal(a->buffers, 7);
    done(&o);
}

static void a_reload_keeps_what_needs_a_restart(void **state)
{
    (void)state;
    struct outcome old = load("listen: 127.0.0.1:1\nhttp.body_max: 1MiB\n", NULL, 0, NULL);
    struct outcome next = load("listen: 127.0.0.1:2\nhttp.body_max: 2MiB\nmerge.threads: 1\n", NULL, 0, NULL);
    struct strbuf kept = { 0 };
    assert_true(old.ok && next.ok);
    config_keep_fixed(next.config, old.config, &kept);
    assert_string_equal(strbuf_cstr(&kept), "listen"); /* the same value again is no difference */
    assert_true(str_is(next.config->listen, "127.0.0.1:1"));
    assert_int_equal(next.config->http_body_max, 2 << 20);
    done(&old);
    assert_true(str_is(next.config->listen, "127.0.0.1:1")); /* its own copy */
    strbuf_fini(&kept);
    done(&next);
}

static void the_shipped_file_is_the_table(void **state)
{
    (void)state;
    struct strbuf made = { 0 }, shipped = { 0 };
    struct err err;
    config_default_file(&made);
    if (!fs_read_file(fs_posix(), "config/sluice.yaml", 1 << 20, &shipped, &err))
        fail_msg("%s", err.text);
    if (!str_eq(strbuf_view(&made), strbuf_view(&shipped))) {
        fprintf(stderr, "%s", strbuf_cstr(&made));
        fail_msg("config/sluice.yaml has to be what stands on stderr");
    }
    /* And with every comment sign taken off a setting it still loads. */
    struct strbuf live = { 0 };
    struct str rest = strbuf_view(&made), line;
    while (str_cut(&rest, '\n', &line)) {
        if (str_starts(line, STR("#users")))
            break;
        bool setting = line.len > 1 && line.data[0] == '#' && line.data[1] != ' ';
        strbuf_add(&live, str_from(line, setting ? 1 : 0));
        strbuf_add_char(&live, '\n');
    }
    struct outcome o = load(strbuf_cstr(&live), NULL, 0, NULL);
    if (!o.ok)
        fail_msg("%s", strbuf_cstr(&o.problems));
    done(&o);
    strbuf_fini(&live);
    strbuf_fini(&made);
    strbuf_fini(&shipped);
}

static void the_manual_has_the_table(void **state)
{
    (void)state;
    struct strbuf made = { 0 }, manual = { 0 };
    struct err err;
    config_manual_table(&made);
    if (!fs_read_file(fs_posix(), "docs/CONFIG.md", 1 << 20, &manual, &err))
        fail_msg("%s", err.text);
    if (str_find(strbuf_view(&manual), strbuf_view(&made)) == STR_NONE) {
        fprintf(stderr, "%s", strbuf_cstr(&made));
        fail_msg("docs/CONFIG.md has to contain what stands on stderr");
    }
    strbuf_fini(&made);
    strbuf_fini(&manual);
}

static void engine_settings_are_known(void **state)
{
    (void)state;
    assert_true(engine_settings_count() > 1700);
    for (size_t i = 0; i < engine_settings_count(); i++)
        assert_ptr_equal(engine_setting_find(str_of(engine_setting_at(i)->name)), engine_setting_at(i));
    assert_null(engine_setting_find(STR("no_such_setting")));
    assert_true(str_is(config_closest_setting(STR("max_block_sise")), "max_block_size"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_need_nothing),
        cmocka_unit_test(nested_and_dotted_names_are_the_same),
        cmocka_unit_test(flags_beat_environment_beats_file),
        cmocka_unit_test(problems_name_place_and_remedy),
        cmocka_unit_test(one_run_names_every_problem),
        cmocka_unit_test(unknown_variables_and_flags_are_errors),
        cmocka_unit_test(users_are_read),
        cmocka_unit_test(drop_ins_are_read_in_their_order),
        cmocka_unit_test(a_drop_in_names_its_own_place),
        cmocka_unit_test(secrets_come_from_files),
        cmocka_unit_test(a_profile_stands_in_front_of_the_user),
        cmocka_unit_test(a_reload_keeps_what_needs_a_restart),
        cmocka_unit_test(the_shipped_file_is_the_table),
        cmocka_unit_test(the_manual_has_the_table),
        cmocka_unit_test(engine_settings_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
