/* letters_statement.c: see letters_statement.h. */
#include "gateway/letters_statement.h"

#include "base/text.h"
#include "dlq/dlq.h"
#include "format/block.h"
#include "format/rows.h"
#include "format/text_date.h"
#include "format/timezone.h"
#include "gateway/gateway.h"
#include "gateway/replay.h"
#include "gateway/request.h"
#include "gateway/statement.h"
#include "storage/sql.h"

enum { EXPORT_BYTES_MAX = 16 << 20 };

/* --- which letters ------------------------------------------------------------------------------------------------ */

static bool hex_id(struct str text, uint64_t *id)
{
    if (text.len == 0 || text.len > 16)
        return false;
    *id = 0;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        uint64_t digit;
        if (c >= '0' && c <= '9')
            digit = (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            digit = (uint64_t)(c - 'a' + 10);
        else if (c >= 'A' && c <= 'F')
            digit = (uint64_t)(c - 'A' + 10);
        else
            return false;
        *id = *id << 4 | digit;
    }
    return true;
}

/* ID 'x', ... */
static bool take_ids(struct lexer *lexer, struct arena *arena, uint64_t **ids, size_t *count, struct err *err)
{
    struct strbuf text = { 0 };
    bool ok = true;
    *ids = ARENA_ARRAY(arena, uint64_t, lexer->query.len / 3 + 2);
    do {
        struct token token = lexer_next(lexer);
        strbuf_clear(&text);
        ok = token.kind == TOKEN_STRING && token_unquote(token, &text, err) &&
             hex_id(strbuf_view(&text), &(*ids)[*count]);
        if (!ok)
            (void)lexer_error(lexer, token, "the id of a letter, up to 16 hex digits in quotes", err);
        (*count)++;
    } while (ok && lexer_take_symbol(lexer, ","));
    strbuf_fini(&text);
    return ok;
}

/* WHERE condition, over the columns of system.dead_letter_queue */
static bool find_ids(struct request *request, struct lexer *lexer, uint64_t **ids, size_t *count, struct err *err)
{
    static const char *const stops[] = { "FORMAT", NULL };
    struct str condition;
    struct sql_result result;
    if (!statement_take_condition(lexer, stops, &condition, err) ||
        !statement_select_where(request, "SELECT id FROM system.dead_letter_queue", condition, &result, err))
        return false;
    *ids = ARENA_ARRAY(request->arena, uint64_t, result.block.rows + 1);
    for (size_t i = 0; i < result.block.rows; i++)
        must(hex_id(column_str(&result.block.columns[0], i), &(*ids)[(*count)++]));
    sql_result_fini(&result);
    return true;
}

/* choice->ids stays NULL for all letters, which is also what nothing means. *given: something was said. */
static bool take_letters(struct request *request, struct lexer *lexer, struct letter_choice *choice, bool *given,
                         struct err *err)
{
    uint64_t *ids = NULL;
    bool ok = true;
    *choice = (struct letter_choice){ 0 };
    *given = true;
    if (lexer_take_word(lexer, "ALL"))
        return true;
    if (lexer_take_word(lexer, "WHERE"))
        ok = find_ids(request, lexer, &ids, &choice->count, err);
    else if (lexer_take_word(lexer, "ID"))
        ok = take_ids(lexer, request->arena, &ids, &choice->count, err);
    else
        *given = false;
    choice->ids = ids;
    return ok;
}

/* --- answers ------------------------------------------------------------------------------------------------------ */

static void verdict_block(const struct replay_verdict *verdicts, size_t count, struct block *block)
{
    static const char *const names[] = { "id", "verdict", "rows", "message" };
    block_init(block, ARRAY_COUNT(names));
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        column_init(&block->columns[i], type_of_kind(i == 2 ? TYPE_UINT64 : TYPE_STRING));
        block->names[i] = str_of(names[i]);
    }
    for (size_t i = 0; i < count; i++) {
        struct strbuf id = { 0 };
        strbuf_addf(&id, "%016llx", (unsigned long long)verdicts[i].id);
        column_push_str(&block->columns[0], strbuf_view(&id));
        column_push_str(&block->columns[1], str_of(verdicts[i].verdict));
        column_push_fixed(&block->columns[2], &verdicts[i].rows);
        column_push_str(&block->columns[3], str_of(verdicts[i].message));
        strbuf_fini(&id);
    }
    block->rows = count;
}

static bool answer_verdicts(struct request *request, const struct replay_verdicts *verdicts, struct str format,
                            struct err *err)
{
    struct block block;
    verdict_block(verdicts->verdicts, verdicts->count, &block);
    bool ok = statement_answer_block(request, &block, format, err);
    block_fini(&block);
    return ok;
}

/* [which] [FORMAT name] and the end. */
static bool take_rest(struct request *request, struct lexer *lexer, struct letter_choice *choice, bool needed,
                      struct str *format, struct err *err)
{
    bool given = false;
    if (!take_letters(request, lexer, choice, &given, err))
        return false;
    if (needed && !given)
        return lexer_error(lexer, lexer_peek(lexer), "ALL, ID 'x', ... or WHERE condition", err);
    return statement_take_format(request, lexer, format, err);
}

/* --- REPLAY, DROP, EDIT ------------------------------------------------------------------------------------------- */

static bool replay(struct request *request, struct lexer *lexer, struct err *err)
{
    struct letter_choice choice;
    struct replay_verdicts verdicts;
    struct str format;
    bool dry_run = lexer_take_word(lexer, "DRY");
    if (dry_run && !lexer_take_word(lexer, "RUN"))
        return lexer_error(lexer, lexer_peek(lexer), "RUN", err);
    if (!take_rest(request, lexer, &choice, false, &format, err))
        return false;
    bool ok = dry_run ? replay_try(request->gateway, &choice, &request->cancel, request->arena, &verdicts, err)
                      : replay_letters(request->gateway, &choice, &request->cancel, request->arena, &verdicts, err);
    return ok && answer_verdicts(request, &verdicts, format, err);
}

static bool drop(struct request *request, struct lexer *lexer, struct err *err)
{
    struct letter_choice choice;
    struct replay_verdicts verdicts;
    struct str format;
    return take_rest(request, lexer, &choice, true, &format, err) &&
           replay_drop(request->gateway, &choice, request->arena, &verdicts, err) &&
           answer_verdicts(request, &verdicts, format, err);
}

static bool take_text(struct lexer *lexer, struct arena *arena, struct str *text, struct err *err)
{
    struct strbuf unquoted = { 0 };
    struct token token = lexer_next(lexer);
    bool ok = token.kind == TOKEN_STRING || lexer_error(lexer, token, "a text in quotes", err);
    ok = ok && token_unquote(token, &unquoted, err);
    *text = arena_dup(arena, strbuf_view(&unquoted));
    strbuf_fini(&unquoted);
    return ok;
}

/* name = 'text', ... */
static bool take_changes(struct lexer *lexer, struct arena *arena, struct letter_edit *edit, struct err *err)
{
    const struct {
        const char *name;
        struct str *field;
    } fields[] = { { "database", &edit->database }, { "table", &edit->table }, { "columns", &edit->columns },
                   { "format", &edit->format },     { "token", &edit->token }, { "body", &edit->body } };
    do {
        struct str *field = NULL;
        for (size_t i = 0; i < ARRAY_COUNT(fields) && field == NULL; i++)
            if (lexer_take_word(lexer, fields[i].name))
                field = fields[i].field;
        if (field == NULL)
            return lexer_error(lexer, lexer_peek(lexer), "database, table, columns, format, token or body", err);
        if (!lexer_take_symbol(lexer, "="))
            return lexer_error(lexer, lexer_peek(lexer), "=", err);
        if (!take_text(lexer, arena, field, err))
            return false;
    } while (lexer_take_symbol(lexer, ","));
    return true;
}

static bool edit(struct request *request, struct lexer *lexer, struct err *err)
{
    struct letter_choice choice;
    struct letter_edit changes = { 0 };
    struct replay_verdicts verdicts;
    struct str format;
    if (!lexer_take_word(lexer, "SET"))
        return lexer_error(lexer, lexer_peek(lexer), "SET", err);
    if (!take_changes(lexer, request->arena, &changes, err) || !take_rest(request, lexer, &choice, true, &format, err))
        return false;
    bool own = changes.body.data != NULL || changes.token.len > 0;
    if (own && (choice.ids == NULL || choice.count > 1))
        return err_set(err, ERR_BAD_ARGUMENTS, "Body and token are a letter's own: name one ID");
    return replay_edit(request->gateway, &choice, &changes, request->arena, &verdicts, err) &&
           answer_verdicts(request, &verdicts, format, err);
}

/* --- EXPORT, IMPORT ----------------------------------------------------------------------------------------------- */

/* For people: what is no UTF-8 is escaped. */
static void add_text(struct strbuf *out, const char *name, struct str value)
{
    struct strbuf printable = { 0 };
    strbuf_addf(out, ",\"%s\":", name);
    if (!text_is_utf8(value)) {
        text_add_printable(&printable, value, SIZE_MAX);
        value = strbuf_view(&printable);
    }
    text_add_json_quoted(out, value);
    strbuf_fini(&printable);
}

/* To the byte: what is no UTF-8 stands there in base64. */
static void add_bytes(struct strbuf *out, const char *name, struct str value)
{
    if (text_is_utf8(value)) {
        add_text(out, name, value);
        return;
    }
    strbuf_addf(out, ",\"%s_base64\":\"", name);
    text_add_base64(out, value);
    strbuf_add_char(out, '"');
}

static void add_time(struct strbuf *out, const char *name, int64_t wall_ns)
{
    strbuf_addf(out, ",\"%s\":\"", name);
    date_print_datetime64(out, timezone_utc(), 6, wall_ns / (int64_t)NS_PER_US, format_settings_default());
    strbuf_add_char(out, '"');
}

static void add_letter(struct strbuf *out, const struct letter *letter)
{
    strbuf_addf(out, "{\"id\":\"%016llx\"", (unsigned long long)letter->id);
    add_time(out, "first_time", letter->first_wall_ns);
    add_time(out, "last_time", letter->last_wall_ns);
    add_text(out, "database", letter->database);
    add_text(out, "table", letter->table);
    add_text(out, "columns", letter->columns);
    add_text(out, "format", letter->format);
    strbuf_add_text(out, ",\"settings\":{");
    for (size_t i = 0; i < letter->settings_count; i++) {
        if (i > 0)
            strbuf_add_char(out, ',');
        text_add_json_quoted(out, letter->settings[i].name);
        strbuf_add_char(out, ':');
        text_add_json_quoted(out, letter->settings[i].value);
    }
    strbuf_add_char(out, '}');
    add_text(out, "user", letter->user);
    add_text(out, "peer", letter->peer);
    strbuf_addf(out, ",\"code\":%d", letter->code);
    add_text(out, "reason", letter->reason);
    strbuf_addf(out, ",\"row\":%llu", (unsigned long long)letter->row);
    add_text(out, "column", letter->column);
    strbuf_addf(out, ",\"attempts\":%u", letter->attempts);
    add_bytes(out, "token", letter->token);
    strbuf_addf(out, ",\"token_given\":%s", letter->token_given ? "true" : "false");
    add_bytes(out, "body", letter->body);
    strbuf_add_text(out, "}\n");
}

/* A letter that has gone is left out. False on the keeper's error. */
static bool export_letter(struct gateway *gateway, uint64_t id, struct strbuf *out, struct err *err)
{
    struct arena *arena = arena_new(4096);
    struct letter letter;
    bool ok = dlq_get(gateway->dlq, id, arena, &letter, err);
    if (ok)
        add_letter(out, &letter);
    arena_free(arena);
    return ok || err->code == ERR_FILE_DOESNT_EXIST;
}

/* As many letters as an answer holds, from the first on: whoever wants more asks for those that are missing. */
static bool export_letters(struct request *request, struct lexer *lexer, struct err *err)
{
    struct letter_choice choice;
    struct str format;
    if (!take_rest(request, lexer, &choice, false, &format, err) ||
        (choice.ids == NULL && !replay_all_ids(request->gateway, request->arena, &choice, err)))
        return false;
    statement_done(request);
    struct strbuf *out = &request->reply.body;
    for (size_t i = 0; i < choice.count && out->len < EXPORT_BYTES_MAX; i++)
        if (!export_letter(request->gateway, choice.ids[i], out, err))
            return false;
    request_encode_body(request);
    return true;
}

static const struct {
    const char *name, *type;
} import_columns[] = {
    { "first_time", "DateTime64(6, 'UTC')" },
    { "database", "String" },
    { "table", "String" },
    { "columns", "String" },
    { "format", "String" },
    { "settings", "Map(String, String)" },
    { "user", "String" },
    { "peer", "String" },
    { "code", "Int32" },
    { "reason", "String" },
    { "row", "UInt64" },
    { "column", "String" },
    { "attempts", "UInt32" },
    { "token", "String" },
    { "token_given", "Bool" },
    { "token_base64", "String" },
    { "body", "String" },
    { "body_base64", "String" },
};

static struct schema *import_schema(void)
{
    struct arena *arena = arena_new(4096);
    struct schema_column *columns = ARENA_ARRAY(arena, struct schema_column, ARRAY_COUNT(import_columns));
    for (size_t i = 0; i < ARRAY_COUNT(import_columns); i++) {
        struct err err = { 0 };
        columns[i] = (struct schema_column){ .name = str_of(import_columns[i].name) };
        must(type_parse(str_of(import_columns[i].type), arena, &columns[i].type, &err));
    }
    return schema_new(arena, columns, ARRAY_COUNT(import_columns), 1);
}

static bool read_lines(struct gateway *gateway, struct schema *schema, struct str lines, struct block *block,
                       struct err *err)
{
    const struct row_format *format = NULL;
    struct format_settings settings = *format_settings_default();
    size_t columns[ARRAY_COUNT(import_columns)], count = 0;
    struct rows_report report = { 0 };
    settings.input_format_skip_unknown_fields = true;
    block_init(block, schema->columns_count);
    for (size_t i = 0; i < schema->columns_count; i++) {
        column_init(&block->columns[i], schema->columns[i].type);
        block->names[i] = schema->columns[i].name;
    }
    if (!row_format_find(STR("JSONEachRow"), &format, err) ||
        !rows_resolve_columns(schema, NULL, 0, false, columns, &count, err))
        return false;
    struct rows_target target = { .schema = schema,
                                  .columns = columns,
                                  .columns_count = count,
                                  .settings = &settings,
                                  .wall_ns = clock_wall_ns(gateway->clock),
                                  .rng = gateway->rng };
    return rows_parse(format, lines, &target, block, &report, err);
}

static const struct column *column_of(const struct block *block, const char *name)
{
    for (size_t i = 0; i < block->columns_count; i++)
        if (str_is(block->names[i], name))
            return &block->columns[i];
    must(!"a column of import_columns");
    return NULL;
}

static void take_settings(const struct column *map, size_t row, struct arena *arena, struct letter *letter)
{
    uint64_t from = column_start(map, row), count = map->offsets[row] - from;
    struct letter_setting *settings = ARENA_ARRAY(arena, struct letter_setting, (size_t)count + 1);
    for (uint64_t i = 0; i < count; i++)
        settings[i] =
            (struct letter_setting){ column_str(&map->children[0], from + i), column_str(&map->children[1], from + i) };
    letter->settings = settings;
    letter->settings_count = (size_t)count;
}

/* A text, or where it stands there in base64, that. */
static bool take_bytes(const struct block *block, const char *name, const char *base64_name, size_t row,
                       struct arena *arena, struct str *bytes, struct err *err)
{
    struct strbuf decoded = { 0 };
    struct str base64 = column_str(column_of(block, base64_name), row);
    bool ok = text_from_base64(base64, &decoded) || err_set(err, ERR_BAD_ARGUMENTS, "%s is not base64", base64_name);
    *bytes = base64.len > 0 ? arena_dup(arena, strbuf_view(&decoded)) : column_str(column_of(block, name), row);
    strbuf_fini(&decoded);
    return ok;
}

/* What one line says; strings live in block and arena. */
static bool take_letter(struct gateway *gateway, const struct block *block, size_t row, struct arena *arena,
                        struct letter *letter, struct err *err)
{
#define TEXT(name) column_str(column_of(block, name), row)
#define NUMBER(type, name) (*(const type *)column_cell(column_of(block, name), row))
    int64_t micros = NUMBER(int64_t, "first_time"), now_ns = clock_wall_ns(gateway->clock);
    *letter = (struct letter){ .first_wall_ns = micros > 0 ? micros * (int64_t)NS_PER_US : now_ns,
                               .last_wall_ns = now_ns,
                               .database = TEXT("database"),
                               .table = TEXT("table"),
                               .columns = TEXT("columns"),
                               .format = TEXT("format"),
                               .user = TEXT("user"),
                               .peer = TEXT("peer"),
                               .code = NUMBER(int32_t, "code"),
                               .reason = TEXT("reason"),
                               .row = NUMBER(uint64_t, "row"),
                               .column = TEXT("column"),
                               .attempts = NUMBER(uint32_t, "attempts"),
                               .token_given = NUMBER(uint8_t, "token_given") != 0 };
#undef TEXT
#undef NUMBER
    take_settings(column_of(block, "settings"), row, arena, letter);
    if (letter->database.len == 0)
        letter->database = STR("default");
    if (!take_bytes(block, "token", "token_base64", row, arena, &letter->token, err) ||
        !take_bytes(block, "body", "body_base64", row, arena, &letter->body, err))
        return false;
    letter->body_bytes = letter->body.len;
    return true;
}

static void import_row(struct request *request, const struct block *block, size_t row, struct replay_verdict *verdict)
{
    struct letter letter;
    struct err err = { 0 };
    if (take_letter(request->gateway, block, row, request->arena, &letter, &err))
        replay_import(request->gateway, &letter, request->arena, verdict);
    else
        *verdict =
            (struct replay_verdict){ .verdict = "refused", .message = arena_printf(request->arena, "%s", err.text) };
}

static bool import_letters(struct request *request, struct lexer *lexer, struct err *err)
{
    struct str lines, format;
    struct block block;
    struct replay_verdicts verdicts = { 0 };
    if (!take_text(lexer, request->arena, &lines, err) || !statement_take_format(request, lexer, &format, err))
        return false;
    struct schema *schema = import_schema();
    bool ok = read_lines(request->gateway, schema, lines, &block, err);
    if (ok) {
        verdicts.count = block.rows;
        verdicts.verdicts = ARENA_ARRAY(request->arena, struct replay_verdict, block.rows + 1);
        for (size_t i = 0; i < block.rows; i++)
            import_row(request, &block, i, &verdicts.verdicts[i]);
        ok = answer_verdicts(request, &verdicts, format, err);
    }
    block_fini(&block);
    schema_unref(schema);
    return ok;
}

/* --- which statement ---------------------------------------------------------------------------------------------- */

typedef bool letters_fn(struct request *request, struct lexer *lexer, struct err *err);
static const struct {
    const char *word;
    letters_fn *run;
} statements[] = {
    { "REPLAY", replay },         { "DROP", drop }, { "EDIT", edit }, { "EXPORT", export_letters },
    { "IMPORT", import_letters },
};

static letters_fn *find(struct lexer *lexer)
{
    for (size_t i = 0; i < ARRAY_COUNT(statements); i++) {
        struct lexer words = *lexer;
        if (!lexer_take_word(&words, statements[i].word) || !lexer_take_word(&words, "DEAD") ||
            !lexer_take_word(&words, "LETTERS"))
            continue;
        *lexer = words;
        return statements[i].run;
    }
    return NULL;
}

bool letters_statement_matches(struct lexer lexer)
{
    return find(&lexer) != NULL;
}

bool letters_statement_run(struct request *request, struct lexer *lexer, struct err *err)
{
    letters_fn *run = find(lexer);
    must(run != NULL);
    return run(request, lexer, err);
}
