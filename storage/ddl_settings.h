/* ddl_settings.h: the SETTINGS clause of a table: which names there are, and what those mean that mean something here.
 */
#ifndef SLUICE_STORAGE_DDL_SETTINGS_H
#define SLUICE_STORAGE_DDL_SETTINGS_H
#include <stddef.h>

#include "base/err.h"
#include "base/must.h"
#include "storage/ddl.h"

void table_settings_default(struct table_settings *settings);
/* value as printed: 100, true, 'text'. Names of the engine that mean nothing here are checked for their form only.
 * Errors: UNKNOWN_SETTING, CANNOT_PARSE_INPUT_ASSERTION_FAILED, BAD_ARGUMENTS, NOT_IMPLEMENTED. */
must_use bool table_settings_set(struct table_settings *settings, struct str name, struct str value, struct err *err);
bool table_settings_known(struct str name);
/* The settings that are numbers, with their defaults; NULL behind the last. */
const char *table_setting_number(size_t index, uint64_t *value);
#endif
