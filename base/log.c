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

/* Whether the place may write now; then *suppressed is what it was kept from writing since its last line. */
static bool place_passes(struct log_place *place, uint32_t *suppressed)
{
    uint64_t now = clock_mono_ns(clock_real());
    uint64_t window = atomic_load(&place->window_ns);
    if (now - window >= LOG_WINDOW_NS && atomic_compare_exchange_strong(&place->window_ns, &window, now))
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

/* What names the event in every line of a place: its format up to the colon, or up to the first value. */
static struct str event_of(const char *format)
{
    struct str event = str_make(format, strcspn(format, ":%="));
    if (format[event.len] == '=') /* "key=%s": the key is not part of the name */
        while (event.len > 0 && event.data[event.len - 1] != ' ')
            event.len--;
    return str_trim(event);
}

static void add_line(struct strbuf *line, enum log_level level, const char *format, struct str text,
                     uint32_t suppressed)
{
    if (atomic_load(&with_priority))
        strbuf_addf(line, "<%d>", syslog_priorities[level]);
    if (atomic_load(&line_format) == LOG_JSON) {
        strbuf_add_text(line, "{\"time\":\"");
        add_time(line);
        strbuf_addf(line, "\",\"level\":\"%s\",\"event\":", level_names[level]);
        text_add_json_quoted(line, event_of(format));
        strbuf_add_text(line, ",\"message\":");
        text_add_json_quoted(line, text);
        if (suppressed > 0)
            strbuf_addf(line, ",\"suppressed\":%u", suppressed);
        strbuf_add_text(line, "}\n");
        return;
    }
    add_time(line);
    strbuf_addf(line, " %s ", level_names[level]);
    strbuf_add(line, text);
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

void log_write(enum log_level level, struct log_place *place, const char *format, ...)
{
    uint32_t suppressed = 0;
    int saved_errno = errno;
    if ((int)level < atomic_load_explicit(&least_level, memory_order_relaxed))
        return;
    atomic_fetch_add_explicit(&lines_count[level], 1, memory_order_relaxed);
    if (place != NULL && !place_passes(place, &suppressed))
        return;
    char raw[LOG_TEXT_MAX * 2];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(raw, sizeof(raw), format, args);
    va_end(args);
    must(len >= 0);
    struct strbuf text = { 0 }, line = { 0 };
    text_add_printable(&text, str_of(raw), LOG_TEXT_MAX);
    add_line(&line, level, format, strbuf_view(&text), suppressed);
    write_all(strbuf_view(&line));
    strbuf_fini(&line);
    strbuf_fini(&text);
    errno = saved_errno;
}
