/* catalog_name.h: names of databases, tables and partition values as names of directories.
 *
 * [A-Za-z0-9_-] stay as they are; every other byte, and a `_` in front (names that begin with it are ours, and other
 * engines pass over them), becomes %XX. A result over 200 bytes is replaced by `%h` and the 32 hex digits of its hash,
 * which no encoding can produce: so different names never meet, and no name reaches a path unchecked. */
#ifndef SLUICE_STORAGE_CATALOG_NAME_H
#define SLUICE_STORAGE_CATALOG_NAME_H
#include <stdbool.h>

#include "base/must.h"
#include "base/str.h"
#include "base/strbuf.h"

enum { CATALOG_NAME_BYTES = 208, CATALOG_NAME_LEN_MAX = 200, CATALOG_SOURCE_MAX = 206 };

void catalog_name_encode(struct str name, char out[CATALOG_NAME_BYTES]);
/* Appends the name; false when dir is no encoding of one (then nothing is known) or a hash stands in for it. */
must_use bool catalog_name_decode(struct str dir, struct strbuf *name);
/* A name that may be created: 1 to 206 bytes, no control bytes. */
bool catalog_name_ok(struct str name);
#endif
