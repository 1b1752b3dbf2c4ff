/* err.h: what went wrong, as a value.
 *
 * A function that can fail returns bool and takes struct err *err last; err is never NULL and is written only on
 * failure. Codes and names are ClickHouse's (err_codes.h), so its clients understand them. */
#ifndef SLUICE_BASE_ERR_H
#define SLUICE_BASE_ERR_H
#include <stdbool.h>

#include "base/err_codes.h"
#include "base/must.h"

enum err_code {
    ERR_OK = 0,
#define X(number, name, http, verdict) ERR_##name = number,
    ERR_CODES(X)
#undef X
};

/* What a flush does with an insert that met this error. */
enum err_verdict {
    ERR_REJECT, /* the insert's own fault: final */
    ERR_RETRY,  /* passes: not applied, try again */
    ERR_UNKNOWN /* may or may not have been applied */
};

struct err {
    enum err_code code;
    char text[480]; /* for a person; no newline, no secret */
};

/* Both return false, so that a failing function can `return err_set(...)`. Control bytes in the result become spaces.
 */
bool err_set(struct err *err, enum err_code code, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Puts "format: " before the text; keeps the code. */
bool err_wrap(struct err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* From errno: ENOSPC/EDQUOT -> NOT_ENOUGH_SPACE, EMFILE and others -> CANNOT_OPEN_FILE or the given code. */
bool err_set_errno(struct err *err, enum err_code code, int number, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

const char *err_name(enum err_code code); /* "UNKNOWN_TABLE"; "UNKNOWN_EXCEPTION" for a number not in the table */
int err_http(enum err_code code);         /* HTTP status; 500 for a number not in the table */
enum err_verdict err_verdict(enum err_code code);
#endif
