/* regex.c: see regex.h. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "format/regex.h"

#include <pcre2.h>
#include <string.h>

#include "base/strbuf.h"
#include "base/text.h"

enum { PATTERN_BYTES_MAX = 64 << 10, REPEATS_MAX = 1000 };
/* Of all searches of one text: items of the pattern that are tried, and what repetitions pass over, 16 bytes a step. (A
 * limit of PCRE2's own begins anew at each place of the text.) */
enum { STEPS_MAX = 50000000, STEPS_UNASKED = 4096, BYTES_PER_STEP = 16, HEAP_KIB_MAX = 16 << 10 };

struct regex {
    pcre2_code *code, *careful_code; /* careful: of texts that are no UTF-8, which it looks at anew each time */
    uint32_t groups;
};

/* ---- from RE2's syntax to PCRE2's ---- */

struct rewriter {
    struct str pattern;
    size_t at;
    struct strbuf out;
    bool in_set;
    bool repeated; /* a repetition has just ended, and no second one may follow */
    const char *wrong;
    char message[128]; /* PCRE2's */
};

static bool refuse(struct rewriter *r, const char *wrong)
{
    r->wrong = wrong;
    return false;
}

static char peek(const struct rewriter *r, size_t ahead)
{
    return r->at + ahead < r->pattern.len ? r->pattern.data[r->at + ahead] : '\0';
}

static bool is_octal(char c)
{
    return c >= '0' && c <= '7';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static void copy(struct rewriter *r, size_t count)
{
    strbuf_add(&r->out, str_sub(r->pattern, r->at, count));
    r->at += count;
}

static void replace(struct rewriter *r, size_t count, const char *with)
{
    strbuf_add_text(&r->out, with);
    r->at += count;
}

static bool copy_to(struct rewriter *r, char last)
{
    ptrdiff_t end = str_find_char(str_from(r->pattern, r->at), last);
    if (end == STR_NONE)
        return refuse(r, "invalid escape sequence");
    copy(r, (size_t)end + 1);
    return true;
}

/* \Q...\E, each byte for itself. */
static void rewrite_quoted(struct rewriter *r)
{
    r->at += 2;
    while (r->at < r->pattern.len && !(peek(r, 0) == '\\' && peek(r, 1) == 'E')) {
        if ((unsigned char)peek(r, 0) < 0x80 && !is_letter(peek(r, 0)) && !is_digit(peek(r, 0)))
            strbuf_add_char(&r->out, '\\');
        copy(r, 1);
    }
    r->at = MIN(r->at + 2, r->pattern.len);
}

static bool rewrite_octal(struct rewriter *r)
{
    unsigned code = 0;
    size_t digits = 1;
    if (peek(r, 1) != '0' && !is_octal(peek(r, 2)))
        return refuse(r, "invalid escape sequence");
    for (; digits <= 3 && is_octal(peek(r, digits)); digits++)
        code = code * 8 + (unsigned)(peek(r, digits) - '0');
    r->at += digits;
    strbuf_addf(&r->out, "\\x{%x}", code);
    return true;
}

static bool rewrite_escape(struct rewriter *r)
{
    char c = peek(r, 1);
    if (r->at + 1 == r->pattern.len)
        return refuse(r, "trailing \\");
    if (c == 'Q' && !r->in_set)
        rewrite_quoted(r);
    else if (is_digit(c))
        return rewrite_octal(r);
    else if (c == 's' || (c == 'S' && !r->in_set)) /* PCRE2's has \v too */
        replace(r, 2, r->in_set ? "\\t\\n\\f\\r " : c == 's' ? "[\\t\\n\\f\\r ]" : "[^\\t\\n\\f\\r ]");
    else if (c == 'v')
        replace(r, 2, "\\x0b");
    else if ((unsigned char)c < 0x80 && !is_letter(c) && !is_digit(c))
        copy(r, 2);
    else if (peek(r, 2) == '{' && strchr("xpP", c) != NULL) /* \x{263a}, \p{Greek} */
        return copy_to(r, '}');
    else if (c == 'x' && (!is_hex(peek(r, 2)) || !is_hex(peek(r, 3))))
        return refuse(r, "invalid escape sequence");
    else if (strchr(r->in_set ? "adfnrtwDSWxpP" : "AabBdDfnrtwWxpPz", c) != NULL)
        copy(r, 2);
    else
        return refuse(r, "invalid escape sequence");
    return true;
}

/* The beginning of [...], where a ] would be for itself. */
static void open_set(struct rewriter *r)
{
    r->in_set = true;
    copy(r, peek(r, 1) == '^' ? 2 : 1);
    if (peek(r, 0) == ']')
        replace(r, 1, "\\]");
}

static bool rewrite_in_set(struct rewriter *r)
{
    char c = peek(r, 0);
    ptrdiff_t end;
    if (c == '\\')
        return rewrite_escape(r);
    r->in_set = c != ']';
    if (c == '[' && peek(r, 1) == ':' && (end = str_find(str_from(r->pattern, r->at), STR(":]"))) != STR_NONE)
        copy(r, (size_t)end + 2);
    else if (c == '[')
        replace(r, 1, "\\[");
    else
        copy(r, 1);
    return true;
}

/* (?:, (?P<name>, (?<name>, (?flags) and (?flags: are all that there is. */
static bool rewrite_group(struct rewriter *r)
{
    size_t name = peek(r, 2) == 'P' ? 3 : 2, flags = 2;
    if (peek(r, 1) == '*')
        return refuse(r, "no argument for repetition operator: *");
    if (peek(r, 1) != '?' || (peek(r, name) == '<' && peek(r, name + 1) != '=' && peek(r, name + 1) != '!')) {
        copy(r, 1);
        return true;
    }
    while (peek(r, flags) != '\0' && strchr("imsU-", peek(r, flags)) != NULL)
        flags++;
    if (peek(r, flags) != ':' && (peek(r, flags) != ')' || flags == 2))
        return refuse(r, "invalid perl operator");
    copy(r, flags + 1);
    return true;
}

/* {n}, {n,} and {n,m}: its bytes; 0 where the bracket is one. */
static size_t counts_at(const struct rewriter *r, bool *too_many)
{
    struct str rest = str_from(r->pattern, r->at + 1), inside, least;
    uint64_t low, high;
    if (!str_cut(&rest, '}', &inside) || inside.len + 2 > r->pattern.len - r->at)
        return 0;
    struct str most = inside;
    bool range = str_find_char(inside, ',') != STR_NONE;
    if (!str_cut(&most, ',', &least) || !str_to_u64(least, &low))
        return 0;
    high = low;
    if (range && most.len > 0 && !str_to_u64(most, &high))
        return 0;
    *too_many = low > REPEATS_MAX || high > REPEATS_MAX || high < low;
    return inside.len + 2;
}

/* A repetition with what makes it lazy, or a bracket that is none. */
static bool rewrite_repetition(struct rewriter *r)
{
    bool too_many = false;
    size_t bytes = peek(r, 0) == '{' ? counts_at(r, &too_many) : 1;
    if (bytes == 0) {
        replace(r, 1, "\\{");
        r->repeated = false;
        return true;
    }
    if (too_many)
        return refuse(r, "invalid repetition size");
    if (r->repeated)
        return refuse(r, "bad repetition operator");
    copy(r, bytes);
    if (peek(r, 0) == '?' && r->at < r->pattern.len)
        copy(r, 1);
    r->repeated = true;
    return true;
}

static bool rewrite_one(struct rewriter *r)
{
    char c = peek(r, 0);
    if (r->in_set)
        return rewrite_in_set(r);
    if (c != '\0' && strchr("*+?{", c) != NULL)
        return rewrite_repetition(r);
    r->repeated = false;
    if (c == '\\')
        return rewrite_escape(r);
    if (c == '(')
        return rewrite_group(r);
    if (c == '[')
        open_set(r);
    else
        copy(r, 1);
    return true;
}

static bool rewrite(struct rewriter *r)
{
    while (r->at < r->pattern.len)
        if (!rewrite_one(r))
            return false;
    return true;
}

/* ---- compiling ---- */

static void *take(size_t bytes, void *arena)
{
    return arena_alloc(arena, bytes);
}

static void keep(void *memory, void *arena)
{
    (void)memory;
    (void)arena;
}

static bool compile_with(struct rewriter *r, uint32_t options, pcre2_compile_context *context, pcre2_code **out)
{
    struct str pattern = strbuf_view(&r->out);
    int code;
    size_t offset;
    *out = pcre2_compile((PCRE2_SPTR)pattern.data, pattern.len, options, &code, &offset, context);
    if (*out != NULL)
        return true;
    (void)pcre2_get_error_message(code, (PCRE2_UCHAR *)r->message, sizeof(r->message));
    return refuse(r, r->message);
}

static bool compile(struct rewriter *r, bool fold, struct arena *arena, struct regex *regex)
{
    uint32_t options = PCRE2_UTF | PCRE2_DOTALL | PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_BACKSLASH_C | PCRE2_NEVER_UCP |
                       PCRE2_AUTO_CALLOUT | (fold ? PCRE2_CASELESS : 0);
    pcre2_general_context *memory = pcre2_general_context_create(take, keep, arena);
    pcre2_compile_context *context = pcre2_compile_context_create(memory);
    pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    pcre2_set_bsr(context, PCRE2_BSR_UNICODE);
    if (!compile_with(r, options, context, &regex->code) ||
        !compile_with(r, options | PCRE2_MATCH_INVALID_UTF, context, &regex->careful_code))
        return false;
    (void)pcre2_pattern_info(regex->code, PCRE2_INFO_CAPTURECOUNT, &regex->groups);
    return true;
}

bool regex_new(struct str pattern, bool fold, struct arena *arena, const struct regex **out, struct err *err)
{
    struct regex *regex = ARENA_NEW(arena, struct regex);
    struct rewriter r = { .pattern = pattern };
    bool ok = pattern.len <= PATTERN_BYTES_MAX || refuse(&r, "it is too long");
    ok = ok && rewrite(&r) && compile(&r, fold, arena, regex);
    if (!ok)
        err_set(err, ERR_CANNOT_COMPILE_REGEXP, "cannot compile the regular expression '" STR_FMT "': %s",
                STR_ARG(str_sub(pattern, 0, 200)), r.wrong);
    strbuf_fini(&r.out);
    *out = regex;
    return ok;
}

size_t regex_groups(const struct regex *regex)
{
    return regex->groups;
}

/* ---- searching ---- */

static int count_step(pcre2_callout_block *block, void *context)
{
    struct regex_search *search = context;
    size_t here = block->current_position, before = search->place;
    search->place = here;
    search->steps += 1 + (here > before ? here - before : before - here) / BYTES_PER_STEP;
    if (search->steps > STEPS_MAX) {
        err_set(search->err, ERR_TIMEOUT_EXCEEDED, "a regular expression takes too much for a text of %zu bytes",
                search->text.len);
        return PCRE2_ERROR_CALLOUT;
    }
    if (search->goes_on == NULL || search->steps - search->asked < STEPS_UNASKED)
        return 0;
    search->asked = search->steps;
    return search->goes_on(search->watcher, search->err) ? 0 : PCRE2_ERROR_CALLOUT;
}

void regex_search_init(struct regex_search *search, const struct regex *regex, struct str text)
{
    pcre2_match_data *match = pcre2_match_data_create(regex->groups + 1, NULL);
    pcre2_match_context *limits = pcre2_match_context_create(NULL);
    must(match != NULL && limits != NULL);
    (void)pcre2_set_heap_limit(limits, HEAP_KIB_MAX);
    (void)pcre2_set_callout(limits, count_step, search);
    *search = (struct regex_search){ .regex = regex,
                                     .text = text,
                                     .is_utf8 = text_is_utf8(text),
                                     .match = match,
                                     .limits = limits,
                                     .bounds = pcre2_get_ovector_pointer(match) };
}

void regex_search_fini(struct regex_search *search)
{
    pcre2_match_data_free(search->match);
    pcre2_match_context_free(search->limits);
}

bool regex_search_from(struct regex_search *search, size_t from, bool *found, struct err *err)
{
    const char *text = search->text.len == 0 ? "" : search->text.data;
    const struct regex *regex = search->regex;
    while (search->is_utf8 && from < search->text.len && ((unsigned char)text[from] & 0xc0) == 0x80)
        from++; /* to the next character */
    search->err = err;
    int groups = pcre2_match(search->is_utf8 ? regex->code : regex->careful_code, (PCRE2_SPTR)text, search->text.len,
                             from, search->is_utf8 ? PCRE2_NO_UTF_CHECK : 0, search->match, search->limits);
    *found = groups > 0;
    if (*found || groups == PCRE2_ERROR_NOMATCH)
        return true;
    return groups == PCRE2_ERROR_CALLOUT
               ? false
               : err_set(err, ERR_TIMEOUT_EXCEEDED, "a regular expression keeps too much for a text of %zu bytes",
                         search->text.len);
}

struct str regex_search_group(const struct regex_search *search, size_t group)
{
    size_t from = search->bounds[2 * group], end = search->bounds[2 * group + 1];
    return from == PCRE2_UNSET ? STR_EMPTY : str_sub(search->text, from, end - from);
}
