/* config.c: defaults, then the files, then the environment, then the flags. */
#include "config/config.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/fs.h"
#include "base/text.h"
#include "config/config_internal.h"

static const char default_file[] = "/etc/sluice/sluice.yaml";

static struct config *config_new(void)
{
    struct config *config = NEW(struct config);
    struct strbuf problem = { 0 };
    config->arena = arena_new(4096);
    for (size_t i = 0; i < config_table_count; i++)
        if (!config_assign(config, i, str_of(config_table[i].default_text), "default", &problem))
            must(!"every default is valid");
    return config;
}

void config_free(struct config *config)
{
    if (config == NULL)
        return;
    arena_free(config->arena);
    free(config);
}

static void add_problem(struct strbuf *problems, const char *where, struct str message)
{
    strbuf_addf(problems, "%s: " STR_FMT "\n", where, STR_ARG(message));
}

/* SLUICE__MEMORY__MAX=1GiB: two underscores are a dot, letters are lowered. */
static bool read_environment(struct config *config, char *const *environ_, struct strbuf *problems)
{
    bool ok = true;
    for (; environ_ != NULL && *environ_ != NULL; environ_++) {
        struct str value = str_of(*environ_), variable;
        if (!str_starts(value, STR("SLUICE__")) || !str_cut(&value, '=', &variable))
            continue;
        struct strbuf name = { 0 }, problem = { 0 };
        struct str rest = str_from(variable, strlen("SLUICE__"));
        while (rest.len != 0) {
            if (str_starts(rest, STR("__"))) {
                strbuf_add_char(&name, '.');
                rest = str_from(rest, 2);
                continue;
            }
            char c = rest.data[0];
            strbuf_add_char(&name, c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c);
            rest = str_from(rest, 1);
        }
        int index = config_find(strbuf_view(&name));
        bool set = index >= 0 && config_assign(config, (size_t)index, value, "environment", &problem);
        if (!set) {
            if (index < 0)
                config_unknown(strbuf_view(&name), &problem);
            char where[300];
            snprintf(where, sizeof(where), "environment " STR_FMT, STR_ARG(str_sub(variable, 0, 200)));
            add_problem(problems, where, strbuf_view(&problem));
            ok = false;
        }
        strbuf_fini(&name);
        strbuf_fini(&problem);
    }
    return ok;
}

/* Flags that set something: --data-dir, --listen, --admin-listen and --set NAME=VALUE, kept for the end. */
struct flag {
    const char *flag, *setting;
};
static const struct flag setting_flags[] = {
    { "--data-dir", "data_dir" },
    { "--listen", "listen" },
    { "--admin-listen", "admin_listen" },
};

struct walk {
    int argc;
    char *const *argv;
    int at;
};

/* "--flag VALUE" or "--flag=VALUE". */
static bool take_value(struct walk *walk, const char *flag, struct str *value, bool *missing)
{
    struct str argument = str_of(walk->argv[walk->at]), name = str_of(flag);
    if (str_eq(argument, name)) {
        *missing = walk->at + 1 >= walk->argc;
        *value = *missing ? STR_EMPTY : str_of(walk->argv[++walk->at]);
        return true;
    }
    if (str_starts(argument, name) && argument.data[name.len] == '=') {
        *value = str_from(argument, name.len + 1);
        *missing = false;
        return true;
    }
    return false;
}

static bool set_flag(struct config *config, const char *flag, struct str name, struct str value,
                     struct strbuf *problems)
{
    struct strbuf problem = { 0 };
    int index = config_find(name);
    bool ok = index >= 0 && config_assign(config, (size_t)index, value, "flag", &problem);
    if (!ok) {
        if (index < 0)
            config_unknown(name, &problem);
        add_problem(problems, flag, strbuf_view(&problem));
    }
    strbuf_fini(&problem);
    return ok;
}

/* One argument. With config NULL only what stands in struct config_arguments is taken; else only settings are. */
static bool read_argument(struct walk *walk, struct config *config, struct config_arguments *arguments,
                          struct strbuf *problems)
{
    struct str value, name;
    bool missing = false;
    const char *flag = walk->argv[walk->at];
    if (strcmp(flag, "--check-config") == 0)
        return arguments->check = true;
    if (strcmp(flag, "--version") == 0)
        return arguments->version = true;
    if (strcmp(flag, "--help") == 0 || strcmp(flag, "-h") == 0)
        return arguments->help = true;
    if (take_value(walk, "--config", &value, &missing)) {
        arguments->file = value.data;
    } else if (take_value(walk, "--port-file", &value, &missing)) {
        arguments->port_file = value.data;
    } else if (take_value(walk, "--set", &value, &missing)) {
        if (config != NULL && !missing) {
            if (str_find_char(value, '=') == STR_NONE)
                missing = true;
            else if (str_cut(&value, '=', &name) && !set_flag(config, "--set", name, value, problems))
                return false;
        }
    } else {
        size_t i = 0;
        while (i < ARRAY_COUNT(setting_flags) && !take_value(walk, setting_flags[i].flag, &value, &missing))
            i++;
        if (i == ARRAY_COUNT(setting_flags)) {
            if (config == NULL) {
                add_problem(problems, flag, STR("unknown argument; see sluiced --help"));
                arguments->usage = true;
            }
            return false;
        }
        if (config != NULL && !missing &&
            !set_flag(config, setting_flags[i].flag, str_of(setting_flags[i].setting), value, problems))
            return false;
    }
    if (missing && config == NULL) {
        add_problem(problems, flag, STR("needs a value; see sluiced --help"));
        arguments->usage = true;
    } else if (missing) {
        add_problem(problems, flag, STR("needs NAME=VALUE"));
        arguments->usage = true;
    }
    return !missing;
}

static bool read_arguments(int argc, char *const *argv, struct config *config, struct config_arguments *arguments,
                           struct strbuf *problems)
{
    bool ok = true;
    for (struct walk walk = { argc, argv, 0 }; walk.at < argc; walk.at++)
        ok &= read_argument(&walk, config, arguments, problems);
    return ok;
}

/* Facts about several settings at once. */
static bool check_whole(const struct config *config, struct strbuf *problems)
{
    if (config->async_insert_busy_timeout_min_ms > config->async_insert_busy_timeout_max_ms)
        add_problem(problems, "async_insert_busy_timeout_min_ms",
                    STR("is greater than async_insert_busy_timeout_max_ms"));
    else if (config->flush_retry_min > config->flush_retry_max)
        add_problem(problems, "flush.retry_min", STR("is greater than flush.retry_max"));
    else if (config->metrics_self.len > 0 && str_find_char(config->metrics_self, '.') <= 0)
        add_problem(problems, "sluice_metrics_self", STR("is not DATABASE.TABLE"));
    else
        return true;
    return false;
}

/* All of the directory of that name that stands beside the file. */
static bool read_directory(struct config *config, struct config_users *users, const char *file, const char *name,
                           bool users_only, struct strbuf *problems)
{
    const char *slash = strrchr(file, '/');
    struct strbuf dir = { 0 };
    struct fs_names names = { 0 };
    struct err err;
    bool ok = true;
    strbuf_addf(&dir, "%.*s%s", slash == NULL ? 0 : (int)(slash - file + 1), file, name);
    if (!fs_list(fs_posix(), strbuf_cstr(&dir), &names, &err)) {
        ok = err.code == ERR_FILE_DOESNT_EXIST;
        if (!ok)
            add_problem(problems, strbuf_cstr(&dir), str_of(err.text));
    }
    for (size_t i = 0; i < names.count; i++) {
        struct str one = str_of(names.names[i]);
        if (one.data[0] == '.' || !str_ends(one, STR(".yaml")))
            continue;
        struct strbuf path = { 0 };
        strbuf_addf(&path, "%s/%s", strbuf_cstr(&dir), names.names[i]);
        ok &= config_read_yaml(config, users, strbuf_cstr(&path), users_only, problems);
        strbuf_fini(&path);
    }
    fs_names_fini(&names);
    strbuf_fini(&dir);
    return ok;
}

/* The default one need not be there. And what stands beside it. */
static bool read_files(struct config *config, const char *file, const char *secrets_dir, struct strbuf *problems)
{
    struct config_users *users = config_users_new(config, secrets_dir);
    bool ok = (file == default_file && !fs_exists(fs_posix(), file)) ||
              config_read_yaml(config, users, file, false, problems);
    ok &= read_directory(config, users, file, "conf.d", false, problems);
    ok &= read_directory(config, users, file, "users.d", true, problems);
    ok &= config_users_finish(users, problems);
    return ok;
}

static const char *variable_of(char *const *environ_, const char *name)
{
    size_t len = strlen(name);
    for (; environ_ != NULL && *environ_ != NULL; environ_++)
        if (strncmp(*environ_, name, len) == 0 && (*environ_)[len] == '=')
            return *environ_ + len + 1;
    return NULL;
}

bool config_load(int argc, char *const *argv, char *const *environ_, struct config **config,
                 struct config_arguments *arguments, struct strbuf *problems)
{
    memset(arguments, 0, sizeof(*arguments));
    if (!read_arguments(argc, argv, NULL, arguments, problems))
        return false;
    if (arguments->file == NULL)
        arguments->file = default_file;
    struct config *c = config_new();
    bool ok = read_files(c, arguments->file, variable_of(environ_, "CREDENTIALS_DIRECTORY"), problems);
    ok &= read_environment(c, environ_, problems);
    ok &= read_arguments(argc, argv, c, arguments, problems);
    ok = ok && check_whole(c, problems);
    if (!ok) {
        config_free(c);
        return false;
    }
    *config = c;
    return true;
}
