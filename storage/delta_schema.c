/* delta_schema.c: see delta_schema.h. */
#include "storage/delta_schema.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"

/* ---- types ---- */

bool delta_text_is_binary(const struct table_settings *s)
{
    return s->publish && s->invalid_utf8 == INVALID_UTF8_KEEP;
}

enum { TYPE_NAME_BYTES = 32 };

/* What the lake profile holds as text or bytes has another form in the native one, which not all readers take. */
static const char *lake_only(const struct table_settings *s, const char *name)
{
    return s->profile == PARQUET_LAKE ? name : NULL;
}

/* The name of a type that is no group, in buffer or for ever; NULL: it has none. */
static const char *primitive(const struct table_settings *s, const struct type *type, char buffer[TYPE_NAME_BYTES])
{
    switch (type->kind) {
    case TYPE_INT8:
        return "byte";
    case TYPE_INT16:
    case TYPE_UINT8:
        return "short";
    case TYPE_INT32:
    case TYPE_UINT16:
    case TYPE_TIME:
        return "integer";
    case TYPE_INT64:
    case TYPE_UINT32:
    case TYPE_TIME64:
        return "long";
    case TYPE_UINT64:
        return "decimal(20,0)";
    case TYPE_BFLOAT16:
    case TYPE_FLOAT32:
        return "float";
    case TYPE_FLOAT64:
        return "double";
    case TYPE_BOOL:
        return "boolean";
    case TYPE_STRING:
        return delta_text_is_binary(s) ? "binary" : "string";
    case TYPE_ENUM8:
    case TYPE_ENUM16:
        return "string";
    case TYPE_DATE:
    case TYPE_DATE32:
        return "date";
    case TYPE_DATETIME:
        return "timestamp";
    case TYPE_DATETIME64:
        return type->precision <= 6 ? "timestamp" : lake_only(s, "long");
    case TYPE_DECIMAL:
        if (type->precision > 38)
            return lake_only(s, "string");
        snprintf(buffer, TYPE_NAME_BYTES, "decimal(%u,%u)", (unsigned)type->precision, (unsigned)type->scale);
        return buffer;
    case TYPE_FIXED_STRING:
        return lake_only(s, "binary");
    case TYPE_INT128:
    case TYPE_INT256:
    case TYPE_UINT128:
    case TYPE_UINT256:
    case TYPE_UUID:
    case TYPE_IPV4:
    case TYPE_IPV6:
        return lake_only(s, "string");
    case TYPE_ARRAY:
    case TYPE_MAP:
    case TYPE_TUPLE:
    case TYPE_NESTED:
    case TYPE_NOTHING:
        break;
    }
    return NULL;
}

static bool is_group(const struct type *type)
{
    return type->kind == TYPE_ARRAY || type->kind == TYPE_MAP || type->kind == TYPE_TUPLE || type->kind == TYPE_NESTED;
}

/* Fields of a Tuple without names are called 1, 2, ... */
static struct str field_name(const struct type *type, size_t i, char buffer[TYPE_NAME_BYTES])
{
    if (type->names != NULL)
        return type->names[i];
    return str_make(buffer, (size_t)snprintf(buffer, TYPE_NAME_BYTES, "%zu", i + 1));
}

static json_t *type_json(const struct table_settings *s, const struct type *type);

/* ---- what can be published ---- */

static bool check_names(const struct str *names, size_t count, struct err *err)
{
    for (size_t i = 0; i < count; i++) {
        if (!text_is_utf8(names[i]) || str_find_char(names[i], 0) != STR_NONE)
            return err_set(err, ERR_BAD_ARGUMENTS, "a column's name is not UTF-8, so it has no Delta form");
        for (size_t k = 0; k < i; k++)
            if (str_eq_nocase(names[i], names[k]))
                return err_set(err, ERR_BAD_ARGUMENTS,
                               "columns " STR_FMT " and " STR_FMT " differ in case only, which Delta does not see",
                               STR_ARG(names[k]), STR_ARG(names[i]));
    }
    return true;
}

static bool check_type(const struct table_settings *s, const struct type *type, struct err *err)
{
    char buffer[TYPE_NAME_BYTES];
    if (!is_group(type))
        return primitive(s, type, buffer) != NULL ||
               err_set(err, ERR_NOT_IMPLEMENTED, "type " STR_FMT " has no Delta form%s", STR_ARG(type->text),
                       s->profile == PARQUET_NATIVE ? " in the profile 'native'" : "");
    if (type->names != NULL && !check_names(type->names, type->children_count, err))
        return false;
    for (size_t i = 0; i < type->children_count; i++)
        if (!check_type(s, type->children[i], err))
            return false;
    return true;
}

bool delta_schema_check(const struct table_def *def, struct err *err)
{
    const struct schema *schema = def->stored;
    struct str *names = mem_alloc(schema->columns_count * sizeof *names);
    for (size_t i = 0; i < schema->columns_count; i++)
        names[i] = schema->columns[i].name;
    bool ok = check_names(names, schema->columns_count, err);
    for (size_t i = 0; i < schema->columns_count && ok; i++)
        if (!check_type(&def->settings, schema->columns[i].type, err))
            ok = err_wrap(err, "column " STR_FMT, STR_ARG(names[i]));
    free(names);
    return ok || err_wrap(err, "publish = 'delta'");
}

static const struct schema_column *column_by_id(const struct schema *schema, unsigned field_id)
{
    for (size_t i = 0; i < schema->columns_count; i++)
        if (schema->columns[i].field_id == field_id)
            return &schema->columns[i];
    return NULL;
}

static bool same_form(const struct table_settings *s, const struct type *a, const struct type *b)
{
    json_t *x = type_json(s, a), *y = type_json(s, b);
    bool same = json_equal(x, y) != 0;
    json_decref(x);
    json_decref(y);
    return same;
}

bool delta_alter_check(const struct table_def *before, const struct table_def *after, struct err *err)
{
    const struct table_settings *was = &before->settings, *is = &after->settings;
    if (was->publish && is->publish &&
        (was->profile != is->profile || delta_text_is_binary(was) != delta_text_is_binary(is)))
        return err_set(err, ERR_NOT_IMPLEMENTED,
                       "how published files are read cannot change: profile, invalid_utf8 = 'keep'");
    for (size_t i = 0; i < before->stored->columns_count; i++) {
        const struct schema_column *column = &before->stored->columns[i];
        const struct schema_column *now = column_by_id(after->stored, column->field_id);
        if (now == NULL || !str_eq(now->name, column->name) || !same_form(is, now->type, column->type) ||
            (column->type->nullable && !now->type->nullable))
            return err_set(err, ERR_NOT_IMPLEMENTED,
                           "column " STR_FMT
                           " is in the table's Delta log: it cannot be dropped, renamed or given another Delta type "
                           "(without publication and the directory _delta_log it can)",
                           STR_ARG(column->name));
    }
    return true;
}

static bool unfit(const struct part *part, struct str column, const char *what, struct err *err)
{
    return err_set(err, ERR_NOT_IMPLEMENTED, "publish = 'delta': part %s: column " STR_FMT " %s", part->path,
                   STR_ARG(column), what);
}

bool delta_part_text_check(const struct table_def *def, const struct part *part, struct err *err)
{
    for (size_t i = 0; i < def->stored->columns_count; i++) {
        int at = part_column(part, &def->stored->columns[i]);
        if (at >= 0 && !parquet_text_is(part->file, (size_t)at, !delta_text_is_binary(&def->settings)))
            return unfit(part, def->stored->columns[i].name,
                         delta_text_is_binary(&def->settings)
                             ? "was written as text, and invalid_utf8 = 'keep' publishes binary: copy the table"
                             : "holds bytes that are not UTF-8, and is published as text: copy the table",
                         err);
    }
    return true;
}

/* Readers of the log know columns by their names alone. */
static bool check_part_column(const struct table_def *def, const struct part *part, const struct schema_column *own,
                              struct err *err)
{
    static const char rewrite[] = "is not what it was when the part was written: DETACH and ATTACH its partition first";
    const struct schema_column *now = column_by_id(def->stored, own->field_id);
    if (now != NULL)
        return (str_eq(now->name, own->name) && same_form(&def->settings, now->type, own->type) &&
                now->type->nullable == own->type->nullable) ||
               unfit(part, own->name, rewrite, err);
    for (size_t i = 0; i < def->stored->columns_count; i++) /* one that was dropped */
        if (str_eq_nocase(def->stored->columns[i].name, own->name))
            return unfit(part, own->name, rewrite, err);
    return true;
}

bool delta_part_check(const struct table_def *def, const struct part *part, struct err *err)
{
    const struct schema *schema = parquet_schema(part->file);
    if (parquet_profile(part->file) != def->settings.profile)
        return err_set(err, ERR_NOT_IMPLEMENTED,
                       "publish = 'delta': part %s is of another profile: DETACH and ATTACH its partition first",
                       part->path);
    for (size_t i = 0; i < schema->columns_count; i++)
        if (!check_part_column(def, part, &schema->columns[i], err))
            return false;
    return delta_part_text_check(def, part, err);
}

/* ---- the partition column ---- */

static bool can_partition(const struct type *type)
{
    switch (type->kind) {
    case TYPE_INT8:
    case TYPE_INT16:
    case TYPE_INT32:
    case TYPE_INT64:
    case TYPE_UINT8:
    case TYPE_UINT16:
    case TYPE_UINT32:
    case TYPE_BOOL:
    case TYPE_DATE:
    case TYPE_DATE32:
    case TYPE_DATETIME:
        return true;
    case TYPE_DECIMAL:
        return type->precision <= 18;
    default: /* ClickHouse misreads large values of decimal(20,0), and DateTime64 reaches beyond the years of its text
              */
        return false;
    }
}

int delta_partition_column(const struct table_def *def)
{
    struct str name = def->partition == NULL ? STR_EMPTY : partition_expr_plain_column(def->partition);
    int column = name.len == 0 ? -1 : schema_find(def->stored, name, false);
    bool only_column = def->stored->columns_count == 1; /* then no column would be left in the files */
    return column < 0 || only_column || !can_partition(def->stored->columns[column].type) ? -1 : column;
}

/* ---- the schema ---- */

static json_t *json_text(struct str text)
{
    struct strbuf utf8 = { 0 };
    text_add_utf8(&utf8, text);
    json_t *json = json_stringn(strbuf_cstr(&utf8), utf8.len);
    strbuf_fini(&utf8);
    must(json != NULL);
    return json;
}

static json_t *struct_json(const struct table_settings *s, const struct type *type)
{
    json_t *fields = json_array();
    for (size_t i = 0; i < type->children_count; i++) {
        const struct type *child = type->children[i];
        char buffer[TYPE_NAME_BYTES];
        json_array_append_new(fields, json_pack("{s:o,s:o,s:b,s:{}}", "name", json_text(field_name(type, i, buffer)),
                                                "type", type_json(s, child), "nullable", child->nullable, "metadata"));
    }
    return json_pack("{s:s,s:o}", "type", "struct", "fields", fields);
}

static json_t *type_json(const struct table_settings *s, const struct type *type)
{
    char buffer[TYPE_NAME_BYTES];
    switch (type->kind) {
    case TYPE_TUPLE:
        return struct_json(s, type);
    case TYPE_ARRAY:
        return json_pack("{s:s,s:o,s:b}", "type", "array", "elementType", type_json(s, type->children[0]),
                         "containsNull", type->children[0]->nullable);
    case TYPE_NESTED:
        return json_pack("{s:s,s:o,s:b}", "type", "array", "elementType", struct_json(s, type), "containsNull", 0);
    case TYPE_MAP:
        return json_pack("{s:s,s:o,s:o,s:b}", "type", "map", "keyType", type_json(s, type->children[0]), "valueType",
                         type_json(s, type->children[1]), "valueContainsNull", type->children[1]->nullable);
    default:
        return json_string(primitive(s, type, buffer));
    }
}

/* The fields of a metaData's schemaString, or NULL. The caller has the reference. */
static json_t *fields_of(const json_t *meta_data)
{
    const char *text = json_string_value(json_object_get(meta_data, "schemaString"));
    json_t *schema = text == NULL ? NULL : json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    json_t *fields = json_incref(json_object_get(schema, "fields"));
    json_decref(schema);
    return fields;
}

size_t delta_columns_count(const json_t *meta_data)
{
    json_t *fields = fields_of(meta_data);
    size_t count = json_array_size(fields);
    json_decref(fields);
    return count;
}

/* Missing means NULL to every reader of the log, so only columns that every file has are without NULLs. */
static bool is_nullable(const struct table_def *def, const struct schema_column *column, const json_t *before)
{
    size_t i;
    json_t *field;
    if (column->type->nullable)
        return true;
    if (before == NULL)
        return def->schema->version > 1;
    json_array_foreach(before, i, field)
    {
        json_t *name = json_object_get(field, "name");
        if (str_eq(column->name, str_make(json_string_value(name), json_string_length(name))))
            return json_is_true(json_object_get(field, "nullable"));
    }
    return true;
}

static json_t *schema_json(const struct table_def *def, const json_t *before)
{
    json_t *fields = json_array();
    for (size_t i = 0; i < def->stored->columns_count; i++) {
        const struct schema_column *column = &def->stored->columns[i];
        json_t *metadata = json_object();
        if (column->comment.len > 0)
            json_object_set_new(metadata, "comment", json_text(column->comment));
        json_array_append_new(fields, json_pack("{s:o,s:o,s:b,s:o}", "name", json_text(column->name), "type",
                                                type_json(&def->settings, column->type), "nullable",
                                                is_nullable(def, column, before), "metadata", metadata));
    }
    return json_pack("{s:s,s:o}", "type", "struct", "fields", fields);
}

/* ---- metaData ---- */

static json_t *interval_json(uint64_t seconds)
{
    enum { HOUR = 3600, DAY = 24 * HOUR };
    bool days = seconds > DAY && seconds % DAY == 0, hours = seconds > 0 && seconds % HOUR == 0;
    return json_sprintf("interval %llu %s",
                        (unsigned long long)(days    ? seconds / DAY
                                             : hours ? seconds / HOUR
                                                     : seconds),
                        days    ? "days"
                        : hours ? "hours"
                                : "seconds");
}

static json_t *configuration_json(const struct table_settings *s)
{
    return json_pack("{s:o,s:o}", "delta.deletedFileRetentionDuration", interval_json(s->publish_file_retention_s),
                     "delta.logRetentionDuration", interval_json(s->publish_log_retention_s));
}

json_t *delta_meta_data(const struct table_def *def, const json_t *before, int64_t now_ms)
{
    json_t *fields = fields_of(before), *schema = schema_json(def, fields), *partition = json_array();
    json_t *created = json_object_get(before, "createdTime");
    char *schema_text = json_dumps(schema, JSON_COMPACT);
    struct strbuf name = { 0 };
    int column = delta_partition_column(def);
    if (column >= 0)
        json_array_append_new(partition, json_text(def->stored->columns[column].name));
    strbuf_addf(&name, STR_FMT "." STR_FMT, STR_ARG(def->database), STR_ARG(def->name));
    json_t *meta = json_pack("{s:s,s:o,s:s,s:{s:s,s:{}},s:s,s:o,s:o,s:I}", "id", def->uuid, "name",
                             json_text(strbuf_view(&name)), "description", "written by sluice; do not write", "format",
                             "provider", "parquet", "options", "schemaString", schema_text, "partitionColumns",
                             partition, "configuration", configuration_json(&def->settings), "createdTime",
                             created == NULL ? (json_int_t)now_ms : json_integer_value(created));
    must(meta != NULL);
    strbuf_fini(&name);
    free(schema_text);
    json_decref(schema);
    json_decref(fields);
    return meta;
}
