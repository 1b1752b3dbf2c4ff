/* verbs_config.c: what is configured, and hashes for it. */
#include <crypt.h>
#include <gnutls/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <termios.h>
#include <unistd.h>

#include "cli/cli.h"
#include "config/config.h"

extern char **environ;

/* ---- user hash ---- */

enum { TOKEN_BYTES = 32, TOKEN_MAX = 4096 };

/* A line from standard input, which a terminal does not show. */
static bool read_secret(char line[TOKEN_MAX])
{
    struct termios shown, hidden;
    bool terminal = isatty(STDIN_FILENO) && tcgetattr(STDIN_FILENO, &shown) == 0;
    if (terminal) {
        fputs("Token or password: ", stderr);
        hidden = shown;
        hidden.c_lflag &= ~(tcflag_t)ECHO;
        (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &hidden);
    }
    bool ok = fgets(line, TOKEN_MAX, stdin) != NULL;
    if (terminal) {
        (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &shown);
        fputc('\n', stderr);
    }
    if (ok)
        line[strcspn(line, "\r\n")] = '\0';
    return ok && line[0] != '\0';
}

static void make_token(char line[TOKEN_MAX])
{
    unsigned char random[TOKEN_BYTES];
    must(getrandom(random, sizeof random, 0) == (ssize_t)sizeof random);
    for (size_t i = 0; i < sizeof random; i++)
        snprintf(line + 2 * i, 3, "%02x", random[i]);
}

/* Quick to check, so only for what cannot be guessed. */
static void hash_token(const char *token, struct strbuf *out)
{
    unsigned char digest[32];
    must(gnutls_hash_fast(GNUTLS_DIG_SHA256, token, strlen(token), digest) == 0);
    strbuf_add_text(out, "sha256:");
    for (size_t i = 0; i < sizeof digest; i++)
        strbuf_addf(out, "%02x", digest[i]);
}

/* Slow to check, and so to guess. */
static bool hash_password(const char *password, struct strbuf *out)
{
    char setting[CRYPT_GENSALT_OUTPUT_SIZE];
    struct crypt_data *work = NEW(struct crypt_data);
    bool ok = crypt_gensalt_rn("$y$", 0, NULL, 0, setting, sizeof setting) != NULL;
    const char *hash = ok ? crypt_r(password, setting, work) : NULL;
    ok = hash != NULL && hash[0] == '$';
    if (ok)
        strbuf_add_text(out, hash);
    free(work);
    return ok;
}

int verb_user_hash(struct cli *cli)
{
    char secret[TOKEN_MAX];
    struct strbuf hash = { 0 };
    bool generate = cli_take_flag(cli, "--generate"), slow = cli_take_flag(cli, "--password");
    if (!cli_arguments_ok(cli, 0, 0))
        return EXIT_USAGE;
    if (generate && slow)
        return cli_usage("--generate makes a token, which needs no --password");
    if (generate)
        make_token(secret);
    else if (!read_secret(secret))
        return cli_fail("no token on standard input; --generate makes one");
    if (!slow)
        hash_token(secret, &hash);
    else if (!hash_password(secret, &hash))
        return cli_fail("crypt(3) makes no $y$ hash of this password: at most %d bytes", CRYPT_MAX_PASSPHRASE_SIZE - 1);
    if (cli->json)
        printf(generate ? "{\"password\":\"%s\",\"token\":\"%s\"}\n" : "{\"password\":\"%s\"}\n", strbuf_cstr(&hash),
               secret);
    else if (generate)
        printf("token:    %s\npassword: %s\n", secret, strbuf_cstr(&hash));
    else
        puts(strbuf_cstr(&hash));
    strbuf_fini(&hash);
    return EXIT_DONE;
}

/* ---- config show ---- */

static bool is_daemons(struct str name)
{
    for (size_t i = 0; i < config_settings_count(); i++)
        if (str_is(name, config_setting_info(i).name))
            return true;
    return false;
}

static json_t *text_of(struct str text)
{
    return json_stringn(text.data, text.len);
}

/* As the daemon has them in force. NULL: the error has been printed. */
static json_t *settings_in_force(struct cli *cli)
{
    json_t *answer = cli_rows(cli, STR("SELECT name, value, origin AS source FROM system.settings")), *row;
    size_t i;
    if (answer == NULL)
        return NULL;
    json_t *out = json_array();
    json_array_foreach(json_object_get(answer, "data"), i,
                       row) if (is_daemons(str_of(json_string_value(json_object_get(row, "name")))))
        json_array_append(out, row);
    json_decref(answer);
    return out;
}

/* Never more of a password than its kind. */
static const char *kind_of(struct str password)
{
    return password.len == 0 ? "none" : str_starts(password, STR("$")) ? "crypt" : "sha256";
}

static json_t *list_of(struct config_list list)
{
    json_t *out = json_array();
    for (size_t i = 0; i < list.count; i++)
        json_array_append_new(out, text_of(list.items[i]));
    return out;
}

static json_t *users_of(const struct config *config)
{
    static const char *const grants[] = { "insert", "read", "admin" };
    json_t *out = json_array();
    for (size_t i = 0; i < config->users_count; i++) {
        const struct config_user *user = &config->users[i];
        json_t *granted = json_array();
        for (size_t bit = 0; bit < ARRAY_COUNT(grants); bit++)
            if ((user->grants >> bit & 1) != 0)
                json_array_append_new(granted, json_string(grants[bit]));
        json_array_append_new(
            out, json_pack("{s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name", text_of(user->name), "password",
                           kind_of(user->password), "certificates", list_of(user->certificates), "grants", granted,
                           "tables", list_of(user->tables), "settings", list_of(user->settings), "min",
                           list_of(user->least), "max", list_of(user->most), "readonly", list_of(user->fixed)));
    }
    return out;
}

/* As a start with this file and this environment would have them. */
static json_t *settings_of_file(const char *file, json_t **users)
{
    char *argv[] = { (char *)(uintptr_t) "--config", (char *)(uintptr_t)file };
    struct config_arguments arguments;
    struct strbuf problems = { 0 };
    struct config *config = NULL;
    bool ok = config_load(2, argv, environ, &config, &arguments, &problems);
    if (!ok) {
        fputs(strbuf_cstr(&problems), stderr);
        strbuf_fini(&problems);
        return NULL;
    }
    json_t *out = json_array();
    for (size_t i = 0; i < config_settings_count(); i++) {
        struct strbuf value = { 0 };
        config_setting_text(config, i, &value);
        json_array_append_new(out, json_pack("{s:s, s:o, s:s}", "name", config_setting_info(i).name, "value",
                                             text_of(strbuf_view(&value)), "source", config->origins[i]));
        strbuf_fini(&value);
    }
    *users = users_of(config);
    config_free(config);
    return out;
}

static const char *field(json_t *row, const char *name)
{
    return json_string_value(json_object_get(row, name));
}

static void print_settings(json_t *settings, json_t *users)
{
    json_t *row, *value;
    const char *key;
    size_t i;
    json_array_foreach(settings, i, row)
        printf("%s: %s  # %s\n", field(row, "name"), field(row, "value")[0] == '\0' ? "\"\"" : field(row, "value"),
               field(row, "source"));
    if (json_array_size(users) > 0)
        puts("users:");
    json_array_foreach(users, i, row)
    {
        printf("  %s:\n", field(row, "name"));
        json_object_foreach(row, key, value)
        {
            if (strcmp(key, "name") == 0 || (json_is_array(value) && json_array_size(value) == 0))
                continue;
            char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
            printf("    %s: %s\n", key, text);
            free(text);
        }
    }
}

int verb_config_show(struct cli *cli)
{
    bool bad = false;
    const char *file = cli_take_option(cli, "--config", &bad);
    json_t *users = NULL;
    if (bad || !cli_arguments_ok(cli, 0, 0))
        return EXIT_USAGE;
    json_t *settings = file == NULL ? settings_in_force(cli) : settings_of_file(file, &users);
    if (settings != NULL && file == NULL) {
        json_t *answer = cli_rows(cli, STR("SELECT name, auth_type AS password, grants, tables FROM system.users"));
        users = json_incref(json_object_get(answer, "data"));
        json_decref(answer);
    }
    bool ok = settings != NULL && users != NULL;
    if (ok && cli->json) {
        json_t *out = json_pack("{s:O, s:O}", "settings", settings, "users", users);
        json_dumpf(out, stdout, JSON_COMPACT | JSON_PRESERVE_ORDER);
        putchar('\n');
        json_decref(out);
    } else if (ok) {
        print_settings(settings, users);
    }
    json_decref(settings);
    json_decref(users);
    return ok ? EXIT_DONE : EXIT_FAILED;
}
