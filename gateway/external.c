/* external.c: see external.h. */
#include "gateway/external.h"

#include <stdlib.h>

#include "format/rows.h"
#include "gateway/plan.h"
#include "gateway/request.h"
#include "gateway/route.h"
#include "storage/ddl.h"
#include "storage/sql.h"

static struct str setting_of(const struct request *request, struct str name, const char *suffix)
{
    const struct settings_request *settings = &request->plan->settings;
    struct str value = STR_EMPTY, wanted = str_of(arena_printf(request->arena, STR_FMT "%s", STR_ARG(name), suffix));
    for (size_t i = 0; i < settings->settings_count; i++)
        if (str_eq(settings->settings[i].name, wanted))
            value = settings->settings[i].value;
    for (size_t i = 0; i < request->form_params_count; i++) /* a field of the form goes first */
        if (str_eq(request->form_params[i].name, wanted))
            value = request->form_params[i].value;
    return value;
}

/* "UInt8, String": columns _1, _2, ... A comma inside of parentheses is the type's own. */
static struct str structure_of_types(struct arena *arena, struct str types)
{
    struct strbuf text = { 0 };
    size_t depth = 0, number = 1;
    strbuf_add_text(&text, "_1 ");
    for (size_t i = 0; i < types.len; i++) {
        char c = types.data[i];
        depth += c == '(' ? 1 : 0;
        depth -= c == ')' && depth > 0 ? 1 : 0;
        strbuf_add_char(&text, c);
        if (c == ',' && depth == 0)
            strbuf_addf(&text, " _%zu ", ++number);
    }
    struct str structure = arena_dup(arena, strbuf_view(&text));
    strbuf_fini(&text);
    return structure;
}

static bool read_file(struct request *request, struct external_file *file, struct block *block, struct err *err)
{
    struct format_settings settings = request->plan->settings.format;
    struct insert_data data = { .settings = &settings, .body = file->data };
    struct rows_report report = { 0 };
    struct str structure = setting_of(request, file->name, "_structure"),
               types = setting_of(request, file->name, "_types"), format = setting_of(request, file->name, "_format");
    if (structure.len == 0 && types.len > 0)
        structure = structure_of_types(request->arena, types);
    if (structure.len == 0)
        return err_set(err, ERR_BAD_ARGUMENTS,
                       "Neither structure nor types have not been provided for external table " STR_FMT
                       ". Use fields " STR_FMT "_structure or " STR_FMT "_types to do so",
                       STR_ARG(file->name), STR_ARG(file->name), STR_ARG(file->name));
    settings.input_format_defaults_for_omitted_fields = false; /* there is no table with defaults */
    bool ok = row_format_find(format.len > 0 ? format : STR("TabSeparated"), &data.format, err) &&
              table_structure_parse(structure, &file->schema, err);
    data.schema = file->schema;
    ok = ok && insert_parse(request, &data, block, &report, err);
    return ok || err_wrap(err, "external table " STR_FMT, STR_ARG(file->name));
}

bool external_read(struct request *request, struct err *err)
{
    request->tables = ARENA_ARRAY(request->arena, struct sql_named_block, request->files_count + 1);
    for (size_t i = 0; i < request->files_count; i++) {
        struct block *block = ARENA_NEW(request->arena, struct block);
        request->tables[request->tables_count++] =
            (struct sql_named_block){ .name = request->files[i].name, .block = block };
        if (!read_file(request, &request->files[i], block, err))
            return false;
    }
    return true;
}

void external_free(struct request *request)
{
    for (size_t i = 0; i < request->tables_count; i++) {
        block_fini(request->tables[i].block);
        schema_unref(request->files[i].schema);
        request->files[i].schema = NULL;
    }
    request->tables_count = 0;
}
