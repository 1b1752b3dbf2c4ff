/* A line is a pattern, the rest a text: each pattern that is taken finds what lies within the text, from anywhere. */
#include <stdint.h>

#include "base/arena.h"
#include "base/must.h"
#include "format/regex.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void search_all(const struct regex *regex, struct str text)
{
    struct regex_search search;
    struct err err = { 0 };
    bool found = true;
    regex_search_init(&search, regex, text);
    for (size_t from = 0; found && from <= text.len && regex_search_from(&search, from, &found, &err); from++) {
        if (!found)
            break;
        must(search.bounds[0] >= from && search.bounds[1] >= search.bounds[0] && search.bounds[1] <= text.len);
        for (size_t group = 1; group <= regex_groups(regex); group++)
            must(regex_search_group(&search, group).len <= text.len);
    }
    regex_search_fini(&search);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *arena = arena_new(4096);
    struct str text = str_make(data, size), pattern = STR_EMPTY;
    const struct regex *regex;
    struct err err = { 0 };
    (void)str_cut(&text, '\n', &pattern);
    if (regex_new(pattern, size % 2 == 0, arena, &regex, &err))
        search_all(regex, text);
    else
        must(err.code == ERR_CANNOT_COMPILE_REGEXP && err.text[0] != '\0');
    arena_free(arena);
    return 0;
}
