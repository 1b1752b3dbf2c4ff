/* ddl_print.c: a table's definition as text: SHOW CREATE TABLE, system.tables, and table.sql. */
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/strbuf.h"
#include "storage/ddl_statement.h"

static void print_backticks(struct strbuf *out, struct str name)
{
    strbuf_add_char(out, '`');
    for (size_t i = 0; i < name.len; i++) {
        char c = name.data[i];
        if (c == '`' || c == '\\')
            strbuf_add_char(out, '\\');
        if (c == '\n')
            strbuf_add_text(out, "\\n");
        else
            strbuf_add_char(out, c);
    }
    strbuf_add_char(out, '`');
}

static void print_column(const struct schema_column *column, bool lines, struct strbuf *out)
{
    static const char *const kinds[] = { "", " DEFAULT", " MATERIALIZED", " ALIAS", " EPHEMERAL" };
    print_backticks(out, column->name);
    strbuf_add_char(out, ' ');
    type_print(column->type, lines ? TYPE_DDL : TYPE_ONE_LINE, 1, out);
    strbuf_add_text(out, kinds[column->default_kind]);
    if (column->default_text.len > 0) {
        strbuf_add_char(out, ' ');
        strbuf_add(out, column->default_text);
    }
    if (column->comment.len > 0) {
        strbuf_add_text(out, " COMMENT ");
        lexer_print_string(out, column->comment);
    }
    if (column->codec_text.len > 0)
        strbuf_addf(out, " " STR_FMT, STR_ARG(column->codec_text));
    if (column->ttl_text.len > 0) {
        strbuf_add_text(out, " TTL ");
        strbuf_add(out, column->ttl_text);
    }
}

static void print_columns(const struct table_def *def, bool lines, struct strbuf *out)
{
    const char *indent = lines ? "\n    " : "";
    strbuf_add_text(out, lines ? "\n(" : " (");
    for (size_t i = 0; i < def->schema->columns_count; i++) {
        strbuf_addf(out, "%s%s", i == 0 ? "" : lines ? "," : ", ", indent);
        print_column(&def->schema->columns[i], lines, out);
    }
    for (size_t i = 0; i < def->extras_count; i++) {
        strbuf_addf(out, "%s%s", lines ? "," : ", ", indent);
        strbuf_add(out, def->extras[i]);
    }
    for (size_t i = 0; i < def->constraints_count; i++) {
        const struct table_constraint *constraint = &def->constraints[i];
        strbuf_addf(out, "%s%sCONSTRAINT ", lines ? "," : ", ", indent);
        lexer_print_name(out, constraint->name);
        strbuf_add_text(out, constraint->is_assumed ? " ASSUME " : " CHECK ");
        strbuf_add(out, constraint->text);
    }
    strbuf_add_text(out, lines ? "\n)" : ")");
}

static void print_clause(struct strbuf *out, const char *between, const char *keyword, struct str text)
{
    if (text.len == 0)
        return;
    strbuf_addf(out, "%s%s ", between, keyword);
    strbuf_add(out, text);
}

static void print_engine(const struct table_def *def, const char *between, bool comment, struct strbuf *out)
{
    strbuf_add(out, def->engine);
    for (size_t i = 0; i < def->engine_args_count; i++) {
        strbuf_add_text(out, i == 0 ? "(" : ", ");
        strbuf_add(out, def->engine_args[i]);
    }
    if (def->engine_args_count > 0)
        strbuf_add_char(out, ')');
    bool stored = def->database.len > 0;
    print_clause(out, between, "PARTITION BY", def->partition_text);
    print_clause(out, between, "PRIMARY KEY", def->primary_text);
    print_clause(out, between, "ORDER BY", stored ? def->order_text : STR_EMPTY);
    print_clause(out, between, "TTL", def->ttl_text);
    print_clause(out, between, "SETTINGS", stored ? def->settings_text : STR_EMPTY);
    if (comment && def->comment.len > 0) {
        strbuf_addf(out, "%sCOMMENT ", between);
        lexer_print_string(out, def->comment);
    }
}

static void print(const struct table_def *def, bool with_uuid, bool lines, struct strbuf *out)
{
    bool temporary = def->database.len == 0;
    strbuf_add_text(out, temporary ? "CREATE TEMPORARY TABLE " : "CREATE TABLE ");
    if (!temporary) {
        lexer_print_name(out, def->database);
        strbuf_add_char(out, '.');
    }
    lexer_print_name(out, def->name);
    if (with_uuid && def->uuid[0] != 0)
        strbuf_addf(out, " UUID '%s'", def->uuid);
    print_columns(def, lines, out);
    strbuf_add_text(out, lines ? "\nENGINE = " : " ENGINE = ");
    print_engine(def, lines ? "\n" : " ", true, out);
}

void table_def_print(const struct table_def *def, bool with_uuid, struct strbuf *out)
{
    print(def, with_uuid, true, out);
}

void table_def_print_line(const struct table_def *def, struct strbuf *out)
{
    print(def, false, false, out);
}

void table_def_print_engine(const struct table_def *def, struct strbuf *out)
{
    print_engine(def, " ", false, out);
}

/* ---- table.sql ----
 *
 *   -- sluice table 1: version=2 next_field_id=4 field_ids=1,3,2 crc32c=0123abcd
 *   CREATE TABLE ...
 *
 * The checksum covers the first line up to " crc32c" and everything after the line. */

static const char file_magic[] = "-- sluice table 1: ";

static uint32_t file_crc(struct str head, struct str rest)
{
    return crc32c(crc32c(0, head), rest);
}

void table_def_print_file(const struct table_def *def, struct strbuf *out)
{
    struct strbuf head = { 0 }, sql = { 0 };
    strbuf_addf(&head, "%sversion=%u next_field_id=%u field_ids=", file_magic, def->schema->version,
                def->next_field_id);
    for (size_t i = 0; i < def->schema->columns_count; i++)
        strbuf_addf(&head, "%s%u", i == 0 ? "" : ",", def->schema->columns[i].field_id);
    print(def, true, true, &sql);
    strbuf_add_char(&sql, '\n');
    strbuf_add(out, strbuf_view(&head));
    strbuf_addf(out, " crc32c=%08x\n", file_crc(strbuf_view(&head), strbuf_view(&sql)));
    strbuf_add(out, strbuf_view(&sql));
    strbuf_fini(&head);
    strbuf_fini(&sql);
}

static bool take_unsigned(struct str *line, const char *name, unsigned *out)
{
    uint64_t value = 0;
    struct str word;
    if (!str_starts(*line, str_of(name)) || !str_cut(line, ' ', &word) ||
        !str_to_u64(str_from(word, strlen(name)), &value) || value == 0 || value > UINT32_MAX)
        return false;
    *out = (unsigned)value;
    return true;
}

static bool take_field_ids(struct str list, struct table_spec *spec)
{
    struct str number;
    size_t count = 0;
    uint64_t id = 0;
    while (str_cut(&list, ',', &number)) {
        if (count == spec->columns_count || !str_to_u64(number, &id) || id == 0 || id >= spec->next_field_id)
            return false;
        spec->columns[count++].field_id = (unsigned)id;
    }
    return count == spec->columns_count;
}

bool table_def_parse_file(struct str bytes, struct table_def **def, struct err *err)
{
    static const char mark[] = " crc32c=";
    struct str rest = bytes, line = STR_EMPTY;
    (void)str_cut(&rest, '\n', &line);
    ptrdiff_t at = str_find(line, str_of(mark));
    if (!str_starts(line, str_of(file_magic)) || at == STR_NONE)
        return err_set(err, ERR_CORRUPTED_DATA, "the first line is not that of a table's definition");
    struct str head = str_sub(line, 0, (size_t)at), given = str_from(line, (size_t)at + sizeof mark - 1);
    char crc[16];
    snprintf(crc, sizeof crc, "%08x", file_crc(head, rest));
    if (!str_is(given, crc))
        return err_set(err, ERR_CORRUPTED_DATA, "the checksum of the table's definition does not match");
    struct arena *arena = arena_new(16 * 1024);
    struct ddl_statement statement;
    head = str_from(head, sizeof file_magic - 1);
    bool ok = ddl_parse(rest, STR("default"), arena, &statement, err);
    if (ok && (statement.kind != DDL_CREATE_TABLE || !statement.spec->has_columns ||
               !take_unsigned(&head, "version=", &statement.spec->version) ||
               !take_unsigned(&head, "next_field_id=", &statement.spec->next_field_id) ||
               !str_starts(head, STR("field_ids=")) || !take_field_ids(str_from(head, 10), statement.spec)))
        ok = err_set(err, ERR_CORRUPTED_DATA, "the first line does not fit the table's definition");
    ok = ok && table_def_build(statement.spec, def, err);
    arena_free(arena);
    return ok;
}
