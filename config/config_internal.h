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

/* Reads a file into config. One line per problem. */
must_use bool config_read_yaml(struct config *config, const char *path, struct strbuf *problems);

/* Users, as the YAML reader meets them. config_user_field: NAME.FIELD = value (once per value of a list). */
struct config_users_builder;
struct config_users_builder *config_users_new(struct config *config);
must_use bool config_users_add(struct config_users_builder *builder, struct str name, struct strbuf *problem);
must_use bool config_users_set(struct config_users_builder *builder, struct str field, struct str value,
                               struct strbuf *problem);
void config_users_finish(
    struct config_users_builder *builder); /* stores the list in the config and frees the builder */
#endif
