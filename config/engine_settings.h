/* engine_settings.h: the session settings of the ClickHouse engine (26.7): names, types, defaults. Clients send them
 * with inserts and queries; those without a meaning here are accepted and ignored, unknown ones are an error. */
#ifndef SLUICE_CONFIG_ENGINE_SETTINGS_H
#define SLUICE_CONFIG_ENGINE_SETTINGS_H
#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

struct engine_setting {
    const char *name;
    const char *type; /* Bool, UInt64, Int64, Seconds, Milliseconds, Float, Double, String, Enum */
    const char *default_text;
};

const struct engine_setting *engine_setting_find(struct str name); /* NULL when unknown */
size_t engine_settings_count(void);
const struct engine_setting *engine_setting_at(size_t index); /* in order of name */
#endif
