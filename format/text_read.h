/* text_read.h: values taken off the front of a text, one reader per spelling; what the row formats are made of.
 *
 * A text_reader is a cursor over borrowed bytes. Each reader starts at r->at, takes exactly what belongs to one value
 * of the column's type and appends it; what follows is the caller's to judge, as in the engine, whose codes depend on
 * it
 * ("1.5" for an integer fails at the delimiter, not in the number). On failure r->err is set, r->at is anywhere, and
 * the column may hold part of a row: the caller truncates it. One thread at a time. */
#ifndef SLUICE_FORMAT_TEXT_READ_H
#define SLUICE_FORMAT_TEXT_READ_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "base/strbuf.h"
#include "format/block.h"
#include "format/format_settings.h"
#include "format/text_scan.h"

struct time_zone;

enum { TEXT_DEPTH_MAX = 1000 }; /* of brackets in brackets */

struct text_reader {
    const char *at, *end;
    const char *start; /* the body's first byte */
    const struct format_settings *settings;
    struct err *err;
    int64_t wall_ns;                 /* the present, for dates that leave the year out */
    const struct time_zone *session; /* for DateTime columns without a zone */
    unsigned depth;
    bool cut_out;                  /* r->end is the end of one value: a float is read only as far as it is one */
    char csv_delimiter;            /* the setting's, or that of CustomSeparated */
    struct str csv_delimiter_long; /* CustomSeparated: where not empty, text without quotes goes up to it alone */
    struct strbuf scratch;         /* strings with escapes are put together here */
    struct strbuf field;           /* a CSV field that holds an array */
    const struct type *zone_type;  /* whose zone is in `zone` */
    const struct time_zone *zone;
};

/* Borrows everything. Fails on an unknown session_timezone (36). */
must_use bool text_reader_init(struct text_reader *r, struct str text, const struct format_settings *settings,
                               int64_t wall_ns, struct err *err);
void text_reader_fini(struct text_reader *r);

static inline bool text_eof(const struct text_reader *r)
{
    return r->at == r->end;
}
static inline bool text_is(const struct text_reader *r, char c)
{
    return r->at < r->end && *r->at == c;
}
static inline bool text_take(struct text_reader *r, char c) /* c, if it is next */
{
    if (!text_is(r, c))
        return false;
    r->at++;
    return true;
}
static inline void text_skip_spaces(struct text_reader *r)
{
    r->at = scan_skip_spaces(r->at, r->end);
}
/* word, if it is next; otherwise nothing is taken. */
bool text_take_word(struct text_reader *r, const char *word);
bool text_take_word_nocase(struct text_reader *r, const char *word);

/* All return false. The engine's words for: what was expected is not next (27); the text is over (32); else. */
bool text_expected(struct text_reader *r, const char *what);
bool text_ended(struct text_reader *r);
bool text_fail(struct text_reader *r, enum err_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same with what stands at `from`, cut to max bytes and made printable, in place of the %s. */
bool text_fail_at(struct text_reader *r, enum err_code code, const char *from, size_t max, const char *format);

static inline bool text_need(struct text_reader *r, char c)
{
    if (text_take(r, c))
        return true;
    return text_expected(r, (const char[]){ c, '\0' });
}

/* r->at stands before word, which may be empty; it is taken. Otherwise nothing is. */
bool text_take_str(struct text_reader *r, struct str word);

/* The bytes into a String or FixedString column. Errors: TOO_LARGE_STRING_SIZE. */
bool text_push_string(struct text_reader *r, struct column *c, struct str s);

/* What ColumnX::insertDefault of the engine appends: zero bytes even where no enum element is 0; NULL when nullable. */
void column_push_zero(struct column *c);

/* One value into the column, NULL included where the column is nullable. With null_as_default (the setting) a NULL for
 * a column that is not is the business of text_read_null_X, which is called before. */
typedef bool text_read_fn(struct text_reader *r, struct column *c);
bool text_read_json(struct text_reader *r, struct column *c);
bool text_read_escaped(struct text_reader *r, struct column *c); /* TSV */
bool text_read_raw(struct text_reader *r, struct column *c);     /* TSVRaw */
bool text_read_quoted(struct text_reader *r, struct column *c);  /* Values, and inside arrays everywhere */
bool text_read_csv(struct text_reader *r, struct column *c);
bool text_read_whole(struct text_reader *r, struct column *c); /* all to r->end, unquoted */

/* True when a NULL stood there and was taken. */
bool text_read_null_json(struct text_reader *r);
bool text_read_null_escaped(struct text_reader *r);
bool text_read_null_quoted(struct text_reader *r);
bool text_read_null_csv(struct text_reader *r);
bool text_read_null_whole(struct text_reader *r);

/* Element of something larger: a NULL for a plain column becomes its zero where the settings say so. */
bool text_read_element(struct text_reader *r, struct column *c, text_read_fn *read,
                       bool (*read_null)(struct text_reader *));

/* ---- strings (text_string.c) ---- */
/* *out is a slice of the input, or of r->scratch when there were escapes: valid until the next read. */
bool text_json_string(struct text_reader *r, struct str *out);                 /* "..." */
bool text_double_quoted(struct text_reader *r, struct str *out);               /* "...", with the escapes of TSV */
bool text_quoted_string(struct text_reader *r, bool doubled, struct str *out); /* '...'; doubled: '' is ' */
bool text_escaped_string(struct text_reader *r, struct str *out);              /* to tab or line end */
bool text_raw_string(struct text_reader *r, struct str *out);
bool text_csv_string(struct text_reader *r, bool keep_quotes, struct str *out); /* to delimiter or line end */
/* {...} or [...] as its text; only the balance of its own brackets outside of quotes is looked at. */
bool text_balanced(struct text_reader *r, char open, char close, char quote, struct str *out);
/* Passes over one JSON value of any kind. key: for the error. */
bool text_json_skip(struct text_reader *r, struct str key);

static inline bool column_takes_null(const struct column *c)
{
    return c->type->nullable;
}
#endif
