/* config_internal.h: what the files of config/ share: the table as data, and one assignment. */
#ifndef SLUICE_CONFIG_CONFIG_INTERNAL_H
#define SLUICE_CONFIG_CONFIG_INTERNAL_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/config.h"

enum config_kind {
    CONFIG_TEXT,
    CONFIG_BYTES,
    CONFIG_NS,
    CONFIG_SECONDS,
    CONFIG_MS,
    CONFIG_COUNT,
    CONFIG_UINT,
    CONFIG_BOOL,
    CONFIG_ENUM
};
struct config_row {
    enum config_kind kind;
    size_t offset; /* of the field in struct config */
    const char *name, *default_text;
    uint64_t least, most;
    bool reloadable;
    const char *help;
};
extern const struct config_row config_table[];
extern const size_t config_table_count;

/* Index of a setting, or -1. */
int config_find(struct str name);
/* Checks text and stores it; origin is kept in the config's arena. On false *problem says what would be right. */
must_use bool config_assign(struct config *config, size_t index, struct str text, const char *origin,
                            struct strbuf *problem);
/* "unknown setting x (did you mean y?)" */
void config_unknown(struct str name, struct strbuf *problem);

/* Users and profiles, as they are met. A later file's user takes the place of an earlier one's. */
struct config_users;
/* secrets_dir: where the relative path of a secret begins; NULL: where the process is. */
struct config_users *config_users_new(struct config *config, const char *secrets_dir);
enum config_section { CONFIG_USERS, CONFIG_PROFILES };
/* The next fields are of this one. where: "FILE:LINE". */
must_use bool config_users_add(struct config_users *users, enum config_section section, struct str name,
                               const char *where, struct strbuf *problem);
/* FIELD = value; called once per value of a list. */
must_use bool config_users_set(struct config_users *users, struct str field, struct str value, struct strbuf *problem);
/* Gives the users what their profiles say, and stores them in the config. False: a profile is missing; problems has a
 * line for each. Frees users in any case. */
must_use bool config_users_finish(struct config_users *users, struct strbuf *problems);

/* Reads a file into config. One line per problem. users_only: of users.d, which has no other settings. */
must_use bool config_read_yaml(struct config *config, struct config_users *users, const char *path, bool users_only,
                               struct strbuf *problems);
#endif
