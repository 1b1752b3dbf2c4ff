/* format_settings.c: one table (FORMAT_SETTINGS) unfolded into defaults, a setter and a list of names.
 *
 * How a value's text is read, and with which error it is refused, is the engine's: see parse_bool() and its siblings.
 */
#include "format/format_settings.h"

#include <math.h>
#include <stddef.h>

#include "base/must.h"
#include "format/type.h"

enum kind { KIND_BOOL, KIND_UINT, KIND_REAL, KIND_TEXT, KIND_ENUM };

/* clang-format off */
#define INIT_BOOL(value) value
#define INIT_UINT(value) value
#define INIT_REAL(value) value
#define INIT_ENUM(value) value
#define INIT_TEXT(value) { "" value, sizeof(value) - 1 }
static const struct format_settings defaults = {
#define X(kind, name, value, values) .name = INIT_##kind(value),
    FORMAT_SETTINGS(X)
#undef X
};

static const struct setting {
    const char *name;
    enum kind kind;
    size_t offset;
    const char *values, *value; /* of an ENUM: its alternatives; the default as written in the table */
} settings[] = {
#define X(kind, name, value, values) \
    { #name, KIND_##kind, offsetof(struct format_settings, name), values, #value },
    FORMAT_SETTINGS(X)
#undef X
};
/* clang-format on */

const struct format_settings *format_settings_default(void)
{
    return &defaults;
}

static const struct setting *setting_find(struct str name)
{
    for (size_t i = 0; i < ARRAY_COUNT(settings); i++)
        if (str_is(name, settings[i].name))
            return &settings[i];
    return NULL;
}

/* ---- values ---- */

static bool parse_bool(struct str value, bool *out, struct err *err)
{
    bool yes = str_is(value, "1") || str_eq_nocase(value, STR("true"));
    if (!yes && !str_is(value, "0") && !str_eq_nocase(value, STR("false")))
        return err_set(err, ERR_CANNOT_PARSE_BOOL, "Cannot parse bool from string '" STR_FMT "'", STR_ARG(value));
    *out = yes;
    return true;
}

static bool fail_rest(struct str rest, struct err *err)
{
    return err_set(err, ERR_CANNOT_PARSE_INPUT_ASSERTION_FAILED,
                   "Cannot parse input: expected 'eof' before: '" STR_FMT "'", STR_ARG(rest));
}

/* k, K, M, G, T multiply by thousands, with an i by 1024s; what is behind is left in *rest. */
static uint64_t take_suffix(struct str *rest)
{
    static const char letters[] = "KMGT";
    if (rest->len == 0)
        return 1;
    char letter = rest->data[0] == 'k' ? 'K' : rest->data[0];
    const char *found = memchr(letters, letter, sizeof(letters) - 1);
    if (found == NULL)
        return 1;
    *rest = str_from(*rest, 1);
    uint64_t unit = 1000, factor = 1;
    if (rest->len > 0 && rest->data[0] == 'i') {
        unit = 1024;
        *rest = str_from(*rest, 1);
    }
    for (ptrdiff_t i = 0; i <= found - letters; i++)
        factor *= unit;
    return factor;
}

static bool parse_uint(struct str value, uint64_t *out, struct err *err)
{
    if (value.len == 0)
        return err_set(err, ERR_ATTEMPT_TO_READ_AFTER_EOF, "Attempt to read after eof");
    if (value.data[0] == '-')
        return err_set(err, ERR_CANNOT_PARSE_NUMBER, "Unsigned type must not contain '-' symbol");
    uint64_t number = 0;
    size_t digits = 0;
    for (; digits < value.len && value.data[digits] >= '0' && value.data[digits] <= '9'; digits++)
        number = number * 10 + (uint64_t)(value.data[digits] - '0'); /* too large wraps around, as in the engine */
    struct str rest = str_from(value, digits);
    uint64_t factor = digits > 0 ? take_suffix(&rest) : 1;
    if (rest.len > 0)
        return fail_rest(rest, err);
    *out = number * factor;
    return true;
}

/* The length of the number that value begins with; 0 without one. */
static size_t real_length(struct str value)
{
    size_t at = 0, digits = 0;
    if (at < value.len && value.data[at] == '-')
        at++;
    for (bool point = false; at < value.len; at++) {
        if (value.data[at] >= '0' && value.data[at] <= '9')
            digits++;
        else if (value.data[at] == '.' && !point)
            point = true;
        else
            break;
    }
    if (digits == 0)
        return 0;
    size_t exponent = at + 1;
    if (at >= value.len || (value.data[at] != 'e' && value.data[at] != 'E'))
        return at;
    if (exponent < value.len && (value.data[exponent] == '-' || value.data[exponent] == '+'))
        exponent++;
    size_t first = exponent;
    while (exponent < value.len && value.data[exponent] >= '0' && value.data[exponent] <= '9')
        exponent++;
    return exponent > first ? exponent : at;
}

static bool parse_real(struct str value, double *out, struct err *err)
{
    if (str_eq_nocase(value, STR("nan")) || str_eq_nocase(value, STR("inf")) || str_eq_nocase(value, STR("-inf")))
        return err_set(err, ERR_CANNOT_PARSE_NUMBER, "Float setting value must be finite, got " STR_FMT,
                       STR_ARG(value));
    size_t len = real_length(value);
    double number;
    if (len == 0 || !str_to_double(str_sub(value, 0, len), &number))
        return err_set(err, ERR_CANNOT_PARSE_NUMBER, "Cannot read floating point value here: " STR_FMT, STR_ARG(value));
    if (!isfinite(number))
        return err_set(err, ERR_CANNOT_PARSE_NUMBER, "Float setting value must be finite, got " STR_FMT,
                       STR_ARG(value));
    if (len < value.len)
        return fail_rest(str_from(value, len), err);
    *out = number;
    return true;
}

static bool parse_enum(const struct setting *setting, struct str value, int *out, struct err *err)
{
    struct str rest = str_of(setting->values), one;
    for (int i = 0; str_cut(&rest, '|', &one); i++)
        if (str_eq(one, value)) {
            *out = i;
            return true;
        }
    return err_set(err, ERR_BAD_ARGUMENTS, "Unexpected value of %s: '" STR_FMT "'. Must be one of [%s]", setting->name,
                   STR_ARG(value), setting->values);
}

static bool check_text(const struct setting *setting, struct str value, struct err *err)
{
    if (setting->offset == offsetof(struct format_settings, session_timezone) && value.len > 0 &&
        !type_timezone_known(value))
        return err_set(err, ERR_BAD_ARGUMENTS, "Invalid time zone: " STR_FMT, STR_ARG(value));
    if (setting->offset != offsetof(struct format_settings, format_csv_delimiter))
        return true;
    if (value.len != 1)
        return err_set(err, ERR_SIZE_OF_FIXED_STRING_DOESNT_MATCH,
                       "A setting's value string has to be an exactly one character long: %s", setting->name);
    return true;
}

enum format_setting_result format_settings_set(struct format_settings *s, struct str name, struct str value,
                                               struct err *err)
{
    const struct setting *setting = setting_find(name);
    if (setting == NULL)
        return FORMAT_SETTING_NOT_MINE;
    void *at = (char *)s + setting->offset;
    bool ok = false;
    switch (setting->kind) {
    case KIND_BOOL:
        ok = parse_bool(value, at, err);
        break;
    case KIND_UINT:
        ok = parse_uint(value, at, err);
        break;
    case KIND_REAL:
        ok = parse_real(value, at, err);
        break;
    case KIND_ENUM:
        ok = parse_enum(setting, value, at, err);
        break;
    case KIND_TEXT:
        ok = check_text(setting, value, err);
        if (ok)
            *(struct str *)at = value;
        break;
    }
    if (!ok)
        (void)err_wrap(err, "setting %s", setting->name);
    return ok ? FORMAT_SETTING_SET : FORMAT_SETTING_BAD;
}

/* ---- the table, for system.settings ---- */

const char *format_setting_name(size_t index)
{
    return index < ARRAY_COUNT(settings) ? settings[index].name : NULL;
}

struct str format_setting_default_text(size_t index)
{
    must(index < ARRAY_COUNT(settings));
    const struct setting *setting = &settings[index];
    const void *at = (const char *)&defaults + setting->offset;
    switch (setting->kind) {
    case KIND_BOOL:
        return *(const bool *)at ? STR("1") : STR("0");
    case KIND_TEXT:
        return *(const struct str *)at;
    case KIND_ENUM: {
        struct str rest = str_of(setting->values), one = STR_EMPTY;
        for (int i = 0; i <= *(const int *)at; i++)
            must(str_cut(&rest, '|', &one));
        return one;
    }
    default: /* numbers read the same in C as there */
        return str_of(setting->value);
    }
}
