/* log.c: a line is made in memory and given to the kernel in one write, so lines of two threads never mix and no lock
 * is needed. */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/must.h"
#include "base/strbuf.h"
#include "base/text.h"

enum { LOG_TEXT_MAX = 1024 };
#define LOG_WINDOW_NS (10 * NS_PER_S)

static _Atomic int least_level = LOG_INFO;
static _Atomic int line_format = LOG_LOGFMT;
static atomic_bool with_priority;
static _Atomic uint64_t lines_count[LOG_ERROR + 1];

static const char *const level_names[] = { "debug", "info", "warn", "error" };
static const int syslog_priorities[] = { 7, 6, 4, 3 };

void log_configure(enum log_level least, enum log_format format)
{
    atomic_store(&least_level, (int)least);
    atomic_store(&line_format, (int)format);
}

void log_set_level(enum log_level least)
{
    atomic_store(&least_level, (int)least);
}

void log_with_priority(bool on)
{
    atomic_store(&with_priority, on);
}

uint64_t log_lines(enum log_level level)
{
    return atomic_load_explicit(&lines_count[level], memory_order_relaxed);
}

static struct log_place *_Atomic listed; /* places that were suppressed once */

static void list_place(struct log_place *place, enum log_level level, const char *format)
{
    if (atomic_exchange(&place->is_listed, true))
        return;
    place->level = level;
    place->format = format;
    place->next = atomic_load(&listed);
    while (!atomic_compare_exchange_weak(&listed, &place->next, place)) {
    }
}

static bool window_is_over(const struct log_place *place, uint64_t now_ns)
{
    return now_ns - atomic_load(&place->window_ns) >= LOG_WINDOW_NS;
}

/* Whether the place may write now; then *suppressed is what it was kept from writing since its last line. */
static bool place_passes(struct log_place *place, uint32_t *suppressed)
{
    uint64_t now_ns = clock_mono_ns(clock_real()), window_ns = atomic_load(&place->window_ns);
    if (window_is_over(place, now_ns) && atomic_compare_exchange_strong(&place->window_ns, &window_ns, now_ns))
        atomic_store(&place->lines, 0);
    if (atomic_fetch_add(&place->lines, 1) >= LOG_PLACE_BURST) {
        atomic_fetch_add(&place->suppressed, 1);
        return false;
    }
    *suppressed = atomic_exchange(&place->suppressed, 0);
    return true;
}

static void add_time(struct strbuf *line)
{
    int64_t now = clock_wall_ns(clock_real());
    time_t seconds = (time_t)(now / (int64_t)NS_PER_S);
    struct tm tm;
    must(gmtime_r(&seconds, &tm) != NULL);
    strbuf_addf(line, "%04d-%02d-%02dT%02d:%02d:%02d.%06dZ", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour,
                tm.tm_min, tm.tm_sec, (int)(now % (int64_t)NS_PER_S / 1000));
}

/* ---- fields ---- */

/* A value found again in what was printed: its borders are put into the format. A value that contains such a byte may
 * move borders, so that a line with any too many has no fields. */
enum { BORDER = 0x1f, FIELDS_MAX = 16 };

struct field {
    struct str key, value;
    bool number;
};
struct text {
    const char *format;
    struct str event;
    struct strbuf message; /* without borders */
    struct field fields[FIELDS_MAX];
    size_t fields_count;
};

/* What names the event in every line of a place: its format up to the colon, or up to the first value. */
static struct str event_of(const char *format)
{
    return str_trim(str_make(format, strcspn(format, ":%")));
}

static bool is_decimal(struct str value)
{
    struct str digits = str_from(value, str_starts(value, STR("-")));
    for (size_t i = 0; i < digits.len; i++)
        if (digits.data[i] < '0' || digits.data[i] > '9')
            return false;
    return digits.len > 0;
}

static bool is_number(struct str conversion)
{
    return str_is(conversion, "%d") || str_is(conversion, "%u") || str_is(conversion, "%zu") ||
           str_is(conversion, "%lld") || str_is(conversion, "%llu") || str_is(conversion, "%ld");
}

/* The format with a border on each side of a value: key=|%d|, key="|%s|". Its fields have their keys. */
static void put_borders(struct text *text, struct strbuf *marked)
{
    struct str rest = str_of(text->format);
    strbuf_add(marked, str_sub(rest, 0, text->event.len));
    rest = str_from(rest, text->event.len);
    while (rest.len > 0) {
        ptrdiff_t equals = str_find_char(rest, '=');
        if (equals == STR_NONE || text->fields_count == FIELDS_MAX)
            break;
        size_t begin = (size_t)equals, from = begin + 1;
        while (begin > 0 && rest.data[begin - 1] != ' ')
            begin--;
        bool quoted = from < rest.len && rest.data[from] == '"';
        from += quoted;
        ptrdiff_t end = str_find_char(str_from(rest, from), quoted ? '"' : ' ');
        size_t len = end == STR_NONE ? rest.len - from : (size_t)end;
        text->fields[text->fields_count++] = (struct field){ .key = str_sub(rest, begin, (size_t)equals - begin),
                                                             .number = is_number(str_sub(rest, from, len)) };
        strbuf_add(marked, str_sub(rest, 0, from));
        strbuf_add_char(marked, BORDER);
        strbuf_add(marked, str_sub(rest, from, len));
        strbuf_add_char(marked, BORDER);
        rest = str_from(rest, from + len);
    }
    strbuf_add(marked, rest);
}

/* printed is cut where it was too long. */
static void take_borders(struct text *text, struct str printed)
{
    size_t borders = 0;
    bool more = true;
    while (more) {
        struct str piece = STR_EMPTY;
        more = memchr(printed.data, BORDER, printed.len) != NULL;
        (void)str_cut(&printed, BORDER, &piece);
        strbuf_add(&text->message, piece);
        if (borders % 2 == 1 && borders / 2 < text->fields_count)
            text->fields[borders / 2].value = piece;
        borders += more;
    }
    if (borders > 2 * text->fields_count)
        text->fields_count = 0;
    else
        text->fields_count = (borders + 1) / 2;
}

/* ---- lines ---- */

static void add_json(struct strbuf *line, struct str key, struct str value)
{
    struct strbuf printable = { 0 };
    text_add_printable(&printable, value, LOG_TEXT_MAX);
    strbuf_addf(line, ",\"" STR_FMT "\":", STR_ARG(key));
    text_add_json_quoted(line, strbuf_view(&printable));
    strbuf_fini(&printable);
}

static void add_json_line(struct strbuf *line, enum log_level level, const struct text *text, uint32_t suppressed)
{
    strbuf_add_text(line, "{\"time\":\"");
    add_time(line);
    strbuf_addf(line, "\",\"level\":\"%s\"", level_names[level]);
    add_json(line, STR("event"), text->event);
    add_json(line, STR("message"), strbuf_view(&text->message));
    for (size_t i = 0; i < text->fields_count; i++) {
        const struct field *field = &text->fields[i];
        if (field->number && is_decimal(field->value)) /* one behind a moved border may be anything */
            strbuf_addf(line, ",\"" STR_FMT "\":" STR_FMT, STR_ARG(field->key), STR_ARG(field->value));
        else
            add_json(line, field->key, field->value);
    }
    if (suppressed > 0)
        strbuf_addf(line, ",\"suppressed\":%u", suppressed);
    strbuf_add_text(line, "}\n");
}

/* Bare where nothing in it could be taken for the end of it. */
static void add_logfmt(struct strbuf *line, struct str key, struct str value)
{
    struct strbuf printable = { 0 };
    text_add_printable(&printable, value, LOG_TEXT_MAX);
    struct str shown = strbuf_view(&printable);
    bool bare = shown.len > 0;
    for (size_t i = 0; i < shown.len; i++)
        bare &= shown.data[i] != ' ' && shown.data[i] != '"' && shown.data[i] != '=' && shown.data[i] != '\\';
    strbuf_addf(line, " " STR_FMT "=", STR_ARG(key));
    if (bare)
        strbuf_add(line, shown);
    else
        text_add_json_quoted(line, shown);
    strbuf_fini(&printable);
}

static void add_logfmt_line(struct strbuf *line, enum log_level level, const struct text *text, uint32_t suppressed)
{
    strbuf_add_text(line, "time=");
    add_time(line);
    strbuf_addf(line, " level=%s", level_names[level]);
    add_logfmt(line, STR("event"), text->event);
    for (size_t i = 0; i < text->fields_count; i++)
        add_logfmt(line, text->fields[i].key, text->fields[i].value);
    if (text->fields_count == 0 && text->message.len > text->event.len) /* a text, or too many borders */
        add_logfmt(line, STR("message"), strbuf_view(&text->message));
    if (suppressed > 0)
        strbuf_addf(line, " suppressed=%u", suppressed);
    strbuf_add_char(line, '\n');
}

/* A log that cannot be written has nowhere to say so. */
static void write_all(struct str line)
{
    while (line.len > 0) {
        ssize_t n = write(STDERR_FILENO, line.data, line.len);
        if (n < 0 && errno != EINTR)
            return;
        line = str_from(line, n > 0 ? (size_t)n : 0);
    }
}

static void write_line(enum log_level level, const struct text *text, uint32_t suppressed)
{
    struct strbuf line = { 0 };
    if (atomic_load(&with_priority))
        strbuf_addf(&line, "<%d>", syslog_priorities[level]);
    if (atomic_load(&line_format) == LOG_JSON)
        add_json_line(&line, level, text, suppressed);
    else
        add_logfmt_line(&line, level, text, suppressed);
    write_all(strbuf_view(&line));
    strbuf_fini(&line);
}

void log_write(enum log_level level, struct log_place *place, const char *format, ...)
{
    uint32_t suppressed = 0;
    int saved_errno = errno;
    if ((int)level < atomic_load_explicit(&least_level, memory_order_relaxed))
        return;
    atomic_fetch_add_explicit(&lines_count[level], 1, memory_order_relaxed);
    if (place != NULL && !place_passes(place, &suppressed)) {
        list_place(place, level, format);
        return;
    }
    struct text text = { .format = format, .event = event_of(format) };
    struct strbuf marked = { 0 };
    char raw[LOG_TEXT_MAX * 2];
    put_borders(&text, &marked);
    va_list args;
    va_start(args, format);
    int len = vsnprintf(raw, sizeof(raw), strbuf_cstr(&marked), args);
    va_end(args);
    must(len >= 0);
    take_borders(&text, str_of(raw));
    write_line(level, &text, suppressed);
    strbuf_fini(&text.message);
    strbuf_fini(&marked);
    errno = saved_errno;
}

void log_told_later(bool now)
{
    uint64_t now_ns = clock_mono_ns(clock_real());
    for (struct log_place *place = atomic_load(&listed); place != NULL; place = place->next) {
        if (!now && !window_is_over(place, now_ns))
            continue;
        uint32_t suppressed = atomic_exchange(&place->suppressed, 0);
        struct text text = { .format = place->format, .event = event_of(place->format) };
        strbuf_add(&text.message, text.event);
        if (suppressed > 0)
            write_line(place->level, &text, suppressed);
        strbuf_fini(&text.message);
    }
}
