/* external.h: the files of a multipart body, which are tables of its statement alone. */
#ifndef SLUICE_GATEWAY_EXTERNAL_H
#define SLUICE_GATEWAY_EXTERNAL_H
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/must.h"
#include "base/str.h"

struct request;
struct schema;

enum { EXTERNAL_FILES_MAX = 64 };
struct external_file {
    struct str name, data; /* borrowed from the body */
    struct schema *schema; /* of its rows, once they are read; owned */
};

/* From the pool: the rows of request->files into request->tables, as NAME_structure or NAME_types, and NAME_format,
 * among the settings say. Errors: BAD_ARGUMENTS where there is neither of the first two; those of the format. */
must_use bool external_read(struct request *request, struct err *err);
void external_free(struct request *request); /* what external_read made */
#endif
