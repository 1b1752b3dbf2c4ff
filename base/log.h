/* log.h: one line per event to stderr, with a limit per place.
 *
 * A format is "what happened: key=%d other=\"%s\"": the event, the same in every line of a place, then fields; a value
 * ends at the next space of the format, or at its quote (tests/lint/log_formats.py holds all calls to that). LOG_LOGFMT
 * writes time, level, event and the fields, values quoted where they need it; LOG_JSON the same as members of an
 * object, and the whole text as "message".
 *
 * A place (one log_* call in the source) writes at most LOG_PLACE_BURST lines in ten seconds; the rest are counted, and
 * told as "suppressed" by its next line, or by log_told_later. Texts are cut at 1 KiB, control bytes are escaped.
 * Any thread; errno is kept. */
#ifndef SLUICE_BASE_LOG_H
#define SLUICE_BASE_LOG_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };
enum log_format { LOG_LOGFMT, LOG_JSON };
enum { LOG_PLACE_BURST = 10 };

struct log_place {
    _Atomic uint64_t window_ns;
    _Atomic uint32_t lines, suppressed;
    atomic_bool is_listed; /* the next three are set */
    struct log_place *next;
    const char *format;
    enum log_level level;
};

void log_configure(enum log_level least, enum log_format format);
void log_set_level(enum log_level least);
/* "<4>" and the like before each line, for a stderr that goes to the journal. */
void log_with_priority(bool on);
void log_write(enum log_level level, struct log_place *place, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A line for each place whose ten seconds are over (now: for all) and that was kept from writing since its last one. */
void log_told_later(bool now);
uint64_t log_lines(enum log_level level); /* written or suppressed since the start */

#define LOG_AT(level, ...)                                                                                             \
    do {                                                                                                               \
        static struct log_place log_place_;                                                                            \
        log_write((level), &log_place_, __VA_ARGS__);                                                                  \
    } while (0)
#define log_debug(...) LOG_AT(LOG_DEBUG, __VA_ARGS__)
#define log_info(...) LOG_AT(LOG_INFO, __VA_ARGS__)
#define log_warn(...) LOG_AT(LOG_WARN, __VA_ARGS__)
#define log_error(...) LOG_AT(LOG_ERROR, __VA_ARGS__)
#endif
