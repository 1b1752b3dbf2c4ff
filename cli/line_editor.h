/* line_editor.h: one line from a terminal, with editing, history and completion (libedit). One thread. */
#ifndef SLUICE_CLI_LINE_EDITOR_H
#define SLUICE_CLI_LINE_EDITOR_H
#include <signal.h>
#include <stddef.h>

#include "base/str.h"

struct line_editor;

struct line_editor_options {
    const char *history_path; /* read at the start, written at each line_editor_remember; NULL: none */
    /* A signal handler sets it: the line being typed is given up. */
    const volatile sig_atomic_t *interrupted;
    /* The words that may be meant, sorted; called at each Tab. */
    void (*words)(void *context, const struct str **words, size_t *count);
    void *context;
};

/* Standard input is a terminal. Never NULL. */
struct line_editor *line_editor_new(const struct line_editor_options *options);
void line_editor_free(struct line_editor *editor);

enum line_outcome { LINE_READ, LINE_INTERRUPTED, LINE_END };
/* *line includes its newline and is valid until the next call. */
enum line_outcome line_editor_read(struct line_editor *editor, const char *prompt, struct str *line);
/* Puts text, which may have several lines, into the history. */
void line_editor_remember(struct line_editor *editor, struct str text);

/* What may stand for prefix in the sorted words: the first that starts with it, how many do, and how long a beginning
 * all of these share. */
void line_editor_match(const struct str *words, size_t count, struct str prefix, size_t *first, size_t *matches,
                       size_t *common);
#endif
