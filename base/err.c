/* err.c: errors as values. Every text is made in a buffer of its own first, so the arguments may point into the err
 * that is being written. */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* Control bytes become spaces, and a sequence of UTF-8 that the end cut in two goes. */
static void tidy(char *text, bool cut)
{
    size_t len = strlen(text), start = len;
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
            text[i] = ' ';
    if (!cut)
        return;
    while (start > 0 && len - start < 3 && ((unsigned char)text[start - 1] & 0xc0) == 0x80)
        start--;
    if (start > 0 && (unsigned char)text[start - 1] >= 0xc0 && text_utf8_len(str_of(text + start - 1)) == 0)
        text[start - 1] = '\0';
}

static void __attribute__((format(printf, 2, 0)))
fill(char text[480], const char *format, va_list args, const char *after)
{
    char fresh[sizeof(((struct err *)0)->text)];
    int len = vsnprintf(fresh, sizeof(fresh), format, args);
    must(len >= 0);
    size_t at = strlen(fresh);
    int more = snprintf(fresh + at, sizeof(fresh) - at, "%s", after);
    must(more >= 0);
    tidy(fresh, (size_t)len + (size_t)more >= sizeof(fresh));
    memcpy(text, fresh, sizeof(fresh));
}

bool err_set(struct err *err, enum err_code code, const char *format, ...)
{
    va_list args;
    must(code != ERR_OK);
    va_start(args, format);
    fill(err->text, format, args, "");
    va_end(args);
    err->code = code;
    return false;
}

bool err_wrap(struct err *err, const char *format, ...)
{
    char after[sizeof(err->text) + 2];
    va_list args;
    must(err->code != ERR_OK);
    snprintf(after, sizeof(after), ": %s", err->text);
    va_start(args, format);
    fill(err->text, format, args, after);
    va_end(args);
    return false;
}

static enum err_code code_of_errno(int number, enum err_code otherwise)
{
    switch (number) {
    case ENOSPC:
    case EDQUOT:
        return ERR_NOT_ENOUGH_SPACE;
    case EMFILE:
    case ENFILE:
        return ERR_CANNOT_OPEN_FILE;
    case ENOMEM:
        return ERR_MEMORY_LIMIT_EXCEEDED;
    default:
        return otherwise;
    }
}

bool err_set_errno(struct err *err, enum err_code code, int number, const char *format, ...)
{
    char reason[128], after[160];
    va_list args;
    must(code != ERR_OK);
    snprintf(after, sizeof(after), ": %s", strerror_r(number, reason, sizeof(reason)));
    va_start(args, format);
    fill(err->text, format, args, after);
    va_end(args);
    err->code = code_of_errno(number, code);
    return false;
}

const char *err_name(enum err_code code)
{
    switch ((int)code) {
    case 0:
        return "OK";
#define X(number, name, http, verdict)                                                                                 \
    case number:                                                                                                       \
        return #name;
        ERR_CODES(X)
#undef X
    default:
        return "UNKNOWN_EXCEPTION";
    }
}

int err_http(enum err_code code)
{
    switch ((int)code) {
    case 0:
        return 200;
#define X(number, name, http, verdict)                                                                                 \
    case number:                                                                                                       \
        return http;
        ERR_CODES(X)
#undef X
    default:
        return 500;
    }
}

enum err_verdict err_verdict(enum err_code code)
{
    switch ((int)code) {
#define X(number, name, http, verdict)                                                                                 \
    case number:                                                                                                       \
        return verdict;
        ERR_CODES(X)
#undef X
    default:
        return ERR_UNKNOWN;
    }
}
