/* line_editor.c: see line_editor.h. */
#include "cli/line_editor.h"

#include <errno.h>
#include <histedit.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#include "base/must.h"
#include "base/strbuf.h"

enum { HISTORY_MAX = 2000, WORDS_SHOWN_MAX = 200 };

struct line_editor {
    struct line_editor_options options;
    EditLine *edit;
    History *history;
    const char *prompt;
};

static struct line_editor *editor_of(EditLine *edit)
{
    struct line_editor *editor = NULL;
    el_get(edit, EL_CLIENTDATA, &editor);
    return editor;
}

static char *prompt_of(EditLine *edit)
{
    return (char *)(uintptr_t)editor_of(edit)->prompt; /* which libedit only reads */
}

/* One character of the terminal. libedit's own function goes on after the first signal. */
static int read_character(EditLine *edit, wchar_t *out)
{
    struct line_editor *editor = editor_of(edit);
    mbstate_t state = { 0 };
    for (;;) {
        char byte;
        ssize_t got = read(STDIN_FILENO, &byte, 1);
        if (got == 0)
            return 0;
        if (got < 0 && errno == EINTR && !*editor->options.interrupted) {
            el_set(edit, EL_REFRESH); /* another size, or back from the background */
            continue;
        }
        if (got < 0)
            return -1;
        size_t used = mbrtowc(out, &byte, 1, &state);
        if (used <= 1)
            return 1;
        if (used == (size_t)-1)
            state = (mbstate_t){ 0 }; /* no character: passed over */
    }
}

/* ---- completion ---- */

void line_editor_match(const struct str *words, size_t count, struct str prefix, size_t *first, size_t *matches,
                       size_t *common)
{
    size_t low = 0;
    for (size_t high = count; low < high;) {
        size_t middle = low + (high - low) / 2;
        if (str_cmp(words[middle], prefix) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    size_t end = low;
    while (end < count && str_starts(words[end], prefix))
        end++;
    *first = low;
    *matches = end - low;
    *common = 0;
    if (end == low)
        return;
    struct str a = words[low], b = words[end - 1]; /* sorted: what these share, all share */
    while (*common < a.len && *common < b.len && a.data[*common] == b.data[*common])
        ++*common;
}

static bool is_word_byte(char c)
{
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static size_t terminal_columns(void)
{
    struct winsize size = { 0 };
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

/* In columns, below the line. */
static void show_words(const struct str *words, size_t count)
{
    size_t width = 0, shown = MIN(count, (size_t)WORDS_SHOWN_MAX);
    for (size_t i = 0; i < shown; i++)
        width = MAX(width, words[i].len + 2);
    size_t columns = MAX(terminal_columns() / width, (size_t)1);
    for (size_t i = 0; i < shown; i++)
        printf("%s%-*.*s", i % columns == 0 ? "\n" : "", (int)width, (int)words[i].len, words[i].data);
    if (shown < count)
        printf("\nand %zu more", count - shown);
    putchar('\n');
    fflush(stdout);
}

static unsigned char complete(EditLine *edit, int key)
{
    struct line_editor *editor = editor_of(edit);
    const LineInfo *line = el_line(edit);
    const char *start = line->cursor;
    const struct str *words;
    size_t count, first, matches, common;
    (void)key;
    while (start > line->buffer && is_word_byte(start[-1]))
        start--;
    struct str prefix = str_make(start, (size_t)(line->cursor - start));
    if (prefix.len == 0)
        return CC_ERROR;
    editor->options.words(editor->options.context, &words, &count);
    line_editor_match(words, count, prefix, &first, &matches, &common);
    if (matches == 0)
        return CC_ERROR;
    if (common == prefix.len && matches > 1) {
        show_words(words + first, matches);
        return CC_REDISPLAY;
    }
    struct strbuf rest = { 0 };
    strbuf_add(&rest, str_sub(words[first], prefix.len, common - prefix.len));
    if (matches == 1)
        strbuf_add_char(&rest, ' ');
    el_insertstr(edit, strbuf_cstr(&rest));
    strbuf_fini(&rest);
    return CC_REFRESH;
}

/* ---- history ---- */

static void load_history(struct line_editor *editor)
{
    HistEvent event;
    history(editor->history, &event, H_SETSIZE, HISTORY_MAX);
    history(editor->history, &event, H_SETUNIQUE, 1);
    if (editor->options.history_path != NULL)
        history(editor->history, &event, H_LOAD, editor->options.history_path); /* none yet: nothing to load */
}

void line_editor_remember(struct line_editor *editor, struct str text)
{
    HistEvent event;
    struct strbuf copy = { 0 };
    strbuf_add(&copy, text);
    history(editor->history, &event, H_ENTER, strbuf_cstr(&copy));
    strbuf_fini(&copy);
    if (editor->options.history_path != NULL) /* whole, which is little; of two shells the last one's stays */
        history(editor->history, &event, H_SAVE, editor->options.history_path);
}

/* ---- the editor ---- */

struct line_editor *line_editor_new(const struct line_editor_options *options)
{
    struct line_editor *editor = NEW(struct line_editor);
    editor->options = *options;
    setlocale(LC_CTYPE, "");
    editor->edit = el_init("sluice", stdin, stdout, stderr);
    editor->history = history_init();
    must(editor->edit != NULL && editor->history != NULL);
    el_set(editor->edit, EL_CLIENTDATA, editor);
    el_set(editor->edit, EL_PROMPT, prompt_of);
    el_set(editor->edit, EL_EDITOR, "emacs");
    el_set(editor->edit, EL_SIGNAL, 1);
    el_set(editor->edit, EL_GETCFN, read_character);
    el_set(editor->edit, EL_HIST, history, editor->history);
    el_wset(editor->edit, EL_ADDFN, L"sluice-complete", L"Complete the word", complete); /* el_set leaks copies */
    el_set(editor->edit, EL_BIND, "^I", "sluice-complete", NULL);
    el_set(editor->edit, EL_BIND, "^R", "em-inc-search-prev", NULL);
    el_source(editor->edit, NULL); /* the user's ~/.editrc */
    load_history(editor);
    return editor;
}

void line_editor_free(struct line_editor *editor)
{
    if (editor == NULL)
        return;
    el_end(editor->edit);
    history_end(editor->history);
    free(editor);
}

enum line_outcome line_editor_read(struct line_editor *editor, const char *prompt, struct str *line)
{
    int length = 0;
    editor->prompt = prompt;
    const char *text = el_gets(editor->edit, &length);
    if (*editor->options.interrupted)
        return LINE_INTERRUPTED;
    if (text == NULL || length <= 0)
        return LINE_END;
    *line = str_make(text, (size_t)length);
    return LINE_READ;
}
