/* check.c: see check.h. */
#include "gateway/check.h"

#include <errno.h>
#include <grp.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/strbuf.h"
#include "buffer/spool.h"
#include "config/config.h"
#include "gateway/net.h"
#include "gateway/tls.h"
#include "storage/store.h"

bool check_mode(struct str text, unsigned *mode, struct err *err)
{
    bool ok = text.len > 0;
    *mode = 0;
    for (size_t i = 0; ok && i < text.len; i++) {
        ok = text.data[i] >= '0' && text.data[i] <= '7' && *mode <= 0777;
        *mode = *mode * 8 + (unsigned)(text.data[i] - '0');
    }
    return (ok && *mode <= 0777) ||
           err_set(err, ERR_BAD_ARGUMENTS, "\"" STR_FMT "\" is not a mode in octal, as 0660", STR_ARG(text));
}

bool check_group(struct str text, gid_t *group, struct err *err)
{
    uint64_t number;
    *group = (gid_t)-1;
    if (text.len == 0)
        return true;
    if (str_to_u64(text, &number) && number < (gid_t)-1) {
        *group = (gid_t)number;
        return true;
    }
    const struct group *found = getgrnam(text.data);
    if (found == NULL)
        return err_set(err, ERR_BAD_ARGUMENTS, "there is no group \"" STR_FMT "\"", STR_ARG(text));
    *group = found->gr_gid;
    return true;
}

bool check_tls(const struct config *config, const char *credentials_dir, struct err *err)
{
    if (config->tls_listen.len == 0)
        return true;
    if (config->tls_cert.len == 0 || config->tls_key.len == 0)
        return err_set(err, ERR_BAD_ARGUMENTS, "tls.listen needs tls.cert and tls.key");
    struct tls_files files = { credentials_dir, config->tls_cert.data, config->tls_key.data,
                               config->tls_client_ca.data };
    return tls_load(fs_posix(), &files, clock_wall_ns(clock_real()), err);
}

static void say(struct strbuf *said, const char *what, const char *why)
{
    strbuf_addf(said, "%s: %s\n", what, why);
}

static bool check_addresses(const struct config *config, struct strbuf *said)
{
    const struct {
        const char *setting;
        struct str address;
        bool needed;
    } all[] = { { "listen", config->listen, true },
                { "admin_listen", config->admin_listen, true },
                { "tls.listen", config->tls_listen, false } };
    struct err err;
    bool ok = true;
    for (size_t i = 0; i < ARRAY_COUNT(all); i++) {
        if ((all[i].address.len > 0 || all[i].needed) && !net_check(all[i].address, &err)) {
            say(said, all[i].setting, err.text);
            ok = false;
        }
    }
    return ok;
}

static bool check_sockets(const struct config *config, struct strbuf *said)
{
    const struct {
        const char *path_setting, *mode_setting;
        struct str path, mode;
    } all[] = { { "unix.listen", "unix.mode", config->unix_listen, config->unix_mode },
                { "unix.admin_listen", "unix.admin_mode", config->unix_admin_listen, config->unix_admin_mode } };
    struct err err;
    bool ok = true;
    unsigned mode;
    gid_t group;
    for (size_t i = 0; i < ARRAY_COUNT(all); i++) {
        if (all[i].path.len > 0 && all[i].path.data[0] != '/') {
            say(said, all[i].path_setting, "the path has to be absolute");
            ok = false;
        }
        if (!check_mode(all[i].mode, &mode, &err)) {
            say(said, all[i].mode_setting, err.text);
            ok = false;
        }
    }
    if (!check_group(config->unix_group, &group, &err)) {
        say(said, "unix.group", err.text);
        ok = false;
    }
    return ok;
}

/* One that is not there yet is made by the start. */
static enum runtime_exit check_data(const struct config *config, struct strbuf *said)
{
    const char *dir = config->data_dir.data;
    enum store_open_failure why;
    struct fs_stat stat;
    struct err err = { 0 };
    if (!fs_get_stat(fs_posix(), dir, &stat, &err)) {
        if (err.code == ERR_FILE_DOESNT_EXIST)
            return RUNTIME_CLEAN;
        say(said, "data_dir", err.text);
        return RUNTIME_CONFIG;
    }
    if (access(dir, R_OK | W_OK | X_OK) != 0) {
        strbuf_addf(said, "data_dir: %s: %s for user %u\n", dir, strerror(errno), (unsigned)geteuid());
        return RUNTIME_CONFIG;
    }
    if (store_check(fs_posix(), dir, &why, &err))
        return RUNTIME_CLEAN;
    say(said, "data_dir", err.text);
    return why == STORE_OPEN_FORMAT ? RUNTIME_DATA_FORMAT : RUNTIME_CONFIG;
}

static void put_up_with(void *context, const char *path, const char *why)
{
    strbuf_addf(context, "%s: %s (a start leaves it out, or sets it aside)\n", path, why);
}

static bool check_spool(const struct config *config, struct strbuf *said)
{
    struct err err = { 0 };
    uint64_t free_bytes;
    if (!spool_check(fs_posix(), config->data_dir.data, put_up_with, said, &err)) {
        say(said, "spool", err.text);
        return false;
    }
    if (fs_free_bytes(fs_posix(), config->data_dir.data, &free_bytes, &err) && free_bytes < config->spool_free_min)
        strbuf_addf(said, "spool.free_min: %llu bytes are free, fewer than that: inserts would be refused\n",
                    (unsigned long long)free_bytes);
    return true;
}

enum runtime_exit check_world(const struct config *config, const struct runtime_environment *environment,
                              struct strbuf *said)
{
    struct err err = { 0 };
    bool ok = check_addresses(config, said);
    ok &= check_sockets(config, said);
    if (!check_tls(config, environment->credentials_dir, &err)) {
        strbuf_addf(said, "%s\n", err.text);
        ok = false;
    }
    enum runtime_exit data = check_data(config, said);
    ok &= data != RUNTIME_CLEAN || check_spool(config, said);
    if (!ok)
        return RUNTIME_CONFIG;
    return data;
}
