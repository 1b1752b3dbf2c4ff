/* regex.h: regular expressions as ClickHouse has them: RE2's syntax (github.com/google/re2/wiki/Syntax), over UTF-8,
 * where a dot is a line's end too and $ is the very end.
 *
 * PCRE2 runs them, so what RE2 has not (looking around, references back, possessive and counted-again repetitions) is
 * refused here, and what PCRE2 means otherwise is rewritten. RE2 takes linear time; here the searches of a text that go
 * back and forth too often, or keep too much, are an error. */
#ifndef SLUICE_FORMAT_REGEX_H
#define SLUICE_FORMAT_REGEX_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/must.h"
#include "base/str.h"

/* Compiled; threads may share it. It lives in the arena, and has nothing to free. */
struct regex;
/* fold: any case. Errors: CANNOT_COMPILE_REGEXP. */
must_use bool regex_new(struct str pattern, bool fold, struct arena *arena, const struct regex **regex,
                        struct err *err);
size_t regex_groups(const struct regex *regex); /* that capture */

/* Searches of one text. Lives where it was initialised. */
struct regex_search {
    const struct regex *regex;
    struct str text;
    bool is_utf8;
    void *match, *limits;
    const size_t *bounds; /* of the match, then of each group: where it begins and ends */
    size_t place;         /* where the last step was */
    uint64_t steps, asked;
    /* Asked now and then, for one search may take long; may be set after the initialisation. NULL: to the limit. */
    bool (*goes_on)(void *watcher, struct err *err);
    void *watcher;
    struct err *err;
};
void regex_search_init(struct regex_search *search, const struct regex *regex, struct str text);
void regex_search_fini(struct regex_search *search);
/* The first match that begins at `from` or behind it. Errors: TIMEOUT_EXCEEDED; those of goes_on. */
must_use bool regex_search_from(struct regex_search *search, size_t from, bool *found, struct err *err);
/* What a group of the match (0: all of it) has; empty where it took no part. */
struct str regex_search_group(const struct regex_search *search, size_t group);
#endif
