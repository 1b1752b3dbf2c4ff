/* config.h: text, environment and arguments become a checked struct config.
 *
 * Order: defaults < file < conf.d/NAME.yaml < users.d/NAME.yaml < environment SLUICE__NAME < flags. The two directories
 * stand beside the file; of each, the names that end in .yaml are read in their order, and what is read later wins.
 * Everything unknown or out of range is an error that names file, line and column (or the variable, or the flag) and
 * what would be right. Only gateway/ and the programs read it. */
#ifndef SLUICE_CONFIG_CONFIG_H
#define SLUICE_CONFIG_CONFIG_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "base/strbuf.h"
#include "config/settings.h"

enum config_grant { GRANT_INSERT = 1, GRANT_READ = 2, GRANT_ADMIN = 4 };

struct config_list {
    struct str *items;
    size_t count;
};

/* What a user is; what his profile says stands in front of what he has himself. */
struct config_user {
    struct str name;
    struct str password;             /* "sha256:HEX", or crypt(3)'s "$..."; empty: none */
    unsigned grants;                 /* enum config_grant, or-ed */
    struct config_list certificates; /* names (CN, or of the SAN) that a client's certificate may have; count 0: none */
    struct config_list tables;       /* patterns "db.table", "db.*"; count 0: all */
    struct config_list settings;     /* "name=value": what a request of this user asks for where it says nothing */
    struct config_list least;        /* "name=value": requests may not ask for less */
    struct config_list most;         /* "name=value": requests may not ask for more */
    struct config_list fixed;        /* names that requests may not change */
    uint64_t inserts_per_minute, bytes_per_minute; /* 0: as many as come */
    uint64_t buffers; /* live at once, beyond which the oldest is flushed early; 0: as buffers_max lets him */
};

#define CONFIG_FIELD_TEXT struct str
#define CONFIG_FIELD_BYTES uint64_t
#define CONFIG_FIELD_NS uint64_t
#define CONFIG_FIELD_SECONDS uint64_t /* held in nanoseconds */
#define CONFIG_FIELD_MS uint64_t      /* held in nanoseconds */
#define CONFIG_FIELD_COUNT uint64_t
#define CONFIG_FIELD_UINT uint64_t
#define CONFIG_FIELD_BOOL bool
#define CONFIG_FIELD_ENUM int

struct config {
    struct arena *arena; /* holds all text */
#define X(kind, field, name, value, least, most, reload, help) CONFIG_FIELD_##kind field;
    CONFIG_SETTINGS(X)
#undef X
    const struct config_user *users; /* count 0: user `default` without password, loopback only */
    size_t users_count;
    struct config_list secrets; /* files that were read for their sake */
    const char *origins[96];    /* per setting, in the table's order: "default", "FILE:LINE", "environment", "flag" */
};

/* What the command line of sluiced asked for besides settings; borrows from argv. */
struct config_arguments {
    const char *file; /* --config; without it /etc/sluice/sluice.yaml, which need not exist */
    const char *port_file;
    bool check, version, help;
    bool usage; /* the command line itself was wrong: exit 2 rather than 78 */
};

/* Problems, one a line ("FILE:LINE:COL: message (did you mean x?)"), are appended to problems; false when there is any.
 * On true *config is the caller's. environ may be NULL; $CREDENTIALS_DIRECTORY in it is where the relative path of a
 * secret begins. argv without the program's name. */
must_use bool config_load(int argc, char *const *argv, char *const *environ_, struct config **config,
                          struct config_arguments *arguments, struct strbuf *problems);
void config_free(struct config *config);

/* A reload: next keeps what running has of the settings that need a restart (and where those came from); the names of
 * those that differ are appended to kept, separated by commas. */
void config_keep_fixed(struct config *next, const struct config *running, struct strbuf *kept);

/* Number of settings, and one of them as text, for system.settings and --help. */
size_t config_settings_count(void);
struct config_setting_info {
    const char *name, *type, *default_text, *help;
    bool reloadable;
};
struct config_setting_info config_setting_info(size_t index);
void config_setting_text(const struct config *config, size_t index, struct strbuf *out);
/* By name; the text lives in arena. False: there is no such setting. */
bool config_setting_value(const struct config *config, struct str name, struct arena *arena, struct str *value);
void config_help(struct strbuf *out);         /* `sluiced --help` */
void config_default_file(struct strbuf *out); /* config/sluice.yaml */
void config_manual_table(struct strbuf *out); /* of docs/CONFIG.md */

/* The closest setting name, ours or the engine's, for "Maybe you meant"; empty when none is near. */
struct str config_closest_setting(struct str name);
#endif
