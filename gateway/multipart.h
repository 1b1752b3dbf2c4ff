/* multipart.h: the fields of a multipart/form-data body that carries a statement. Pure. */
#ifndef SLUICE_GATEWAY_MULTIPART_H
#define SLUICE_GATEWAY_MULTIPART_H
#include <stdbool.h>

#include "base/err.h"
#include "base/must.h"
#include "base/str.h"

struct multipart_field {
    struct str name, value; /* borrowed from the body */
    bool file;              /* it has a file name: an external table */
};
/* The boundary of a Content-Type; empty when it is not multipart/form-data. */
struct str multipart_boundary(struct str content_type);
/* The next field of *rest, which moves on. False at the end, and then err->code says whether it was a clean one.
 * Errors: CANNOT_PARSE_TEXT. */
must_use bool multipart_next(struct str boundary, struct str *rest, struct multipart_field *field, struct err *err);
#endif
