/* print.c: the rows of a SELECT as an aligned table, or as {"key":[...]}. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "cli/cli.h"

enum { QUERY_BYTES = 262144 }; /* what the daemon takes without a word */

/* One cell as text for people. */
static char *cell_text(const json_t *value)
{
    struct strbuf text = { 0 };
    if (json_is_string(value))
        text_add_printable(&text, str_make(json_string_value(value), json_string_length(value)), 60);
    else if (json_is_null(value))
        strbuf_add_char(&text, '-');
    else {
        char *dump = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(6));
        strbuf_add_text(&text, dump != NULL ? dump : "?");
        free(dump);
    }
    return strbuf_take(&text);
}

static void print_cells(char *const *cells, const size_t *widths, const bool *right, size_t count)
{
    for (size_t i = 0; i < count; i++)
        printf("%s%*s", i == 0 ? "" : "  ", right[i] ? (int)widths[i] : i + 1 == count ? 0 : -(int)widths[i], cells[i]);
    putchar('\n');
}

static void print_table(const json_t *meta, const json_t *rows)
{
    size_t columns = json_array_size(meta), rows_count = json_array_size(rows);
    char **cells = mem_zalloc(sizeof(char *) * columns * (rows_count + 1));
    size_t *widths = mem_zalloc(sizeof(size_t) * columns);
    bool *right = mem_zalloc(sizeof(bool) * columns);
    for (size_t c = 0; c < columns; c++) {
        const char *name = json_string_value(json_object_get(json_array_get(meta, c), "name"));
        cells[c] = mem_strdup(name != NULL ? name : "");
        right[c] = rows_count > 0;
        for (size_t r = 0; r < rows_count; r++) {
            const json_t *value = json_object_get(json_array_get(rows, r), cells[c]);
            right[c] = right[c] && json_is_number(value);
            cells[(r + 1) * columns + c] = cell_text(value);
        }
        for (size_t r = 0; r <= rows_count; r++)
            widths[c] = MAX(widths[c], strlen(cells[r * columns + c]));
    }
    for (size_t r = 0; r <= rows_count; r++)
        print_cells(cells + r * columns, widths, right, columns);
    for (size_t i = 0; i < columns * (rows_count + 1); i++)
        free(cells[i]);
    free(cells);
    free(widths);
    free(right);
}

json_t *cli_rows(struct cli *cli, struct str statement)
{
    struct reply reply;
    struct strbuf parameters = { 0 };
    strbuf_add_text(&parameters, "default_format=JSON");
    if (statement.len > QUERY_BYTES) /* letters may be in it */
        strbuf_addf(&parameters, "&max_query_size=%zu", statement.len);
    bool ok = cli_statement(cli, statement, strbuf_cstr(&parameters), &reply);
    strbuf_fini(&parameters);
    if (!ok)
        return NULL;
    json_error_t error;
    json_t *answer = json_loadb(reply.body.data, reply.body.len, JSON_ALLOW_NUL, &error);
    reply_fini(&reply);
    if (json_is_array(json_object_get(answer, "data")))
        return answer;
    cli_fail("the answer is not the JSON that was expected: %s", answer == NULL ? error.text : "no data");
    json_decref(answer);
    return NULL;
}

void cli_print_json(const char *key, json_t *rows)
{
    json_t *out = json_pack("{s:O}", key, rows);
    json_dumpf(out, stdout, JSON_COMPACT);
    putchar('\n');
    json_decref(out);
}

int cli_list(struct cli *cli, const char *key, struct str select, const char *empty, size_t *count)
{
    json_t *answer = cli_rows(cli, select);
    if (answer == NULL)
        return EXIT_FAILED;
    json_t *rows = json_object_get(answer, "data");
    if (cli->json)
        cli_print_json(key, rows);
    else if (json_array_size(rows) == 0)
        puts(empty);
    else
        print_table(json_object_get(answer, "meta"), rows);
    if (count != NULL)
        *count = json_array_size(rows);
    json_decref(answer);
    return EXIT_DONE;
}
