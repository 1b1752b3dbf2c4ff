/* delta_checkpoint.c: see delta_checkpoint.h.
 *
 * One row an action, in which exactly one of the top-level groups is not NULL. The groups are Tuples that may be NULL,
 * as no table of ours has them, so the types are made here; read back they are Tuples of NULLs. */
#include "storage/delta_checkpoint.h"

#include <stdio.h>
#include <stdlib.h>

#include "format/parquet.h"

enum { TXN, ADD, REMOVE, META_DATA, PROTOCOL, GROUPS };
static const struct {
    const char *name, *type;
} groups[GROUPS] = {
    [TXN] = { "txn", "Tuple(appId String, version Int64, lastUpdated Int64)" },
    [ADD] = { "add", "Tuple(path String, partitionValues Map(String, String), size Int64, modificationTime Int64, "
                     "dataChange Bool, stats String, tags Map(String, String))" },
    [REMOVE] = { "remove", "Tuple(path String, deletionTimestamp Int64, dataChange Bool, extendedFileMetadata Bool, "
                           "partitionValues Map(String, String), size Int64)" },
    [META_DATA] = { "metaData", "Tuple(id String, name String, description String, format Tuple(provider String, "
                                "options Map(String, String)), schemaString String, partitionColumns Array(String), "
                                "configuration Map(String, String), createdTime Int64)" },
    [PROTOCOL] = { "protocol", "Tuple(minReaderVersion Int32, minWriterVersion Int32)" },
};

/* ---- writing ---- */

/* The same type with everything optional but the keys of maps. */
static const struct type *optional(const struct type *type, bool is_key, struct arena *arena)
{
    struct type *copy = ARENA_NEW(arena, struct type);
    const struct type **children = ARENA_ARRAY(arena, const struct type *, type->children_count);
    *copy = *type;
    copy->nullable = !is_key;
    copy->children = children;
    for (size_t i = 0; i < type->children_count; i++)
        children[i] = optional(type->children[i], type->kind == TYPE_MAP && i == 0, arena);
    return copy;
}

static struct schema *make_schema(void)
{
    struct arena *arena = arena_new(8 * 1024);
    struct schema_column *columns = ARENA_ARRAY(arena, struct schema_column, GROUPS);
    for (size_t i = 0; i < GROUPS; i++) {
        const struct type *type;
        struct err err;
        must(type_parse(str_of(groups[i].type), arena, &type, &err));
        columns[i] = (struct schema_column){ .name = str_of(groups[i].name), .type = optional(type, false, arena) };
    }
    return schema_new(arena, columns, GROUPS, 1);
}

/* The columns of one group, filled from left to right. */
struct row {
    struct column *group;
    size_t next;
};

static struct column *next_field(struct row *row)
{
    must(row->next < row->group->children_count);
    return &row->group->children[row->next++];
}

static void put_text(struct row *row, const char *text)
{
    column_push_str(next_field(row), str_of(text));
}

static void put_number(struct row *row, int64_t number)
{
    column_push_fixed(next_field(row), &number); /* little endian: an Int32 or Bool is its first bytes */
}

static void put_entry(struct column *map, const char *key, const char *value)
{
    column_push_str(&map->children[0], str_of(key));
    if (value == NULL)
        column_push_null(&map->children[1]);
    else
        column_push_str(&map->children[1], str_of(value));
}

static void put_partition(struct row *row, const char *column, const struct delta_file *file)
{
    struct column *map = next_field(row);
    if (column != NULL)
        put_entry(map, column, file->partition);
    column_push_row_end(map);
}

static struct row begin_row(struct block *block, size_t group)
{
    for (size_t i = 0; i < GROUPS; i++)
        if (i != group)
            column_push_null(&block->columns[i]);
    block->rows++;
    return (struct row){ .group = &block->columns[group] };
}

static void end_row(struct row *row)
{
    must(row->next == row->group->children_count);
    column_push_row_end(row->group);
}

static void put_protocol(struct block *block)
{
    struct row row = begin_row(block, PROTOCOL);
    put_number(&row, DELTA_READER_VERSION);
    put_number(&row, DELTA_WRITER_VERSION);
    end_row(&row);
}

static const char *member(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    must(text != NULL);
    return text;
}

static void put_meta_data(struct block *block, const json_t *meta)
{
    const char *key;
    json_t *value;
    size_t i;
    struct row row = begin_row(block, META_DATA);
    put_text(&row, member(meta, "id"));
    put_text(&row, member(meta, "name"));
    put_text(&row, member(meta, "description"));
    struct row format = { .group = next_field(&row) };
    put_text(&format, "parquet");
    column_push_row_end(next_field(&format)); /* no options */
    end_row(&format);
    put_text(&row, member(meta, "schemaString"));
    struct column *columns = next_field(&row), *configuration = next_field(&row);
    json_array_foreach(json_object_get(meta, "partitionColumns"), i, value)
        column_push_str(&columns->children[0], str_of(json_string_value(value)));
    column_push_row_end(columns);
    json_object_foreach(json_object_get(meta, "configuration"), key, value)
        put_entry(configuration, key, json_string_value(value));
    column_push_row_end(configuration);
    put_number(&row, json_integer_value(json_object_get(meta, "createdTime")));
    end_row(&row);
}

static void put_txn(struct block *block, const struct delta_state *state, int64_t now_ms)
{
    struct strbuf app_id = { 0 };
    struct row row = begin_row(block, TXN);
    delta_state_app_id(state, &app_id);
    put_text(&row, strbuf_cstr(&app_id));
    put_number(&row, (int64_t)state->txn_version);
    put_number(&row, now_ms);
    end_row(&row);
    strbuf_fini(&app_id);
}

static void put_add(struct block *block, const char *column, const struct delta_file *file)
{
    char level[16];
    struct row row = begin_row(block, ADD);
    put_text(&row, file->path);
    put_partition(&row, column, file);
    put_number(&row, (int64_t)file->size);
    put_number(&row, file->modified_ms);
    put_number(&row, false); /* dataChange: nothing is new in a checkpoint */
    put_text(&row, file->stats);
    struct column *tags = next_field(&row);
    snprintf(level, sizeof level, "%u", (unsigned)file->name.level);
    put_entry(tags, "sluice.level", level);
    column_push_row_end(tags);
    end_row(&row);
}

static void put_remove(struct block *block, const char *column, const struct delta_file *file)
{
    struct row row = begin_row(block, REMOVE);
    put_text(&row, file->path);
    put_number(&row, file->removed_ms);
    put_number(&row, false);
    put_number(&row, true);
    put_partition(&row, column, file);
    put_number(&row, (int64_t)file->size);
    end_row(&row);
}

static bool take_bytes(void *context, struct str bytes, struct err *err)
{
    (void)err;
    strbuf_add(context, bytes);
    return true;
}

bool delta_checkpoint_write(const struct delta_state *state, int64_t now_ms, struct strbuf *out, uint64_t *rows,
                            struct err *err)
{
    size_t count = 0;
    struct delta_file **files = delta_state_files(state, &count);
    struct schema *schema = make_schema();
    const char *column = delta_state_partition_column(state);
    struct block block;
    block_init(&block, GROUPS);
    for (size_t i = 0; i < GROUPS; i++) {
        column_init(&block.columns[i], schema->columns[i].type);
        block.names[i] = schema->columns[i].name;
    }
    put_protocol(&block);
    put_meta_data(&block, state->meta_data);
    if (state->txn_version > 0)
        put_txn(&block, state, now_ms);
    for (size_t i = 0; i < count; i++)
        if (files[i]->removed_ms == 0)
            put_add(&block, column, files[i]);
        else
            put_remove(&block, column, files[i]);
    struct parquet_options options = { .profile = PARQUET_LAKE, .codec = PARQUET_ZSTD };
    struct parquet_writer *writer = parquet_writer_new(schema, &options, take_bytes, out);
    bool ok = parquet_writer_add(writer, &block, err) && parquet_writer_finish(writer, NULL, 0, err);
    *rows = block.rows;
    parquet_writer_free(writer);
    block_fini(&block);
    schema_unref(schema);
    free(files);
    return ok;
}

/* ---- reading ---- */

struct reading {
    struct str bytes;
    struct delta_state *state;
    const struct schema *schema;
    struct column columns[GROUPS]; /* of one row group */
    struct err *err;
};

static bool read_bytes(void *context, uint64_t offset, void *out, size_t bytes, struct err *err)
{
    const struct str *file = context;
    if (offset > file->len || bytes > file->len - offset)
        return err_set(err, ERR_CORRUPTED_DATA, "a checkpoint ends too early");
    memcpy(out, file->data + offset, bytes);
    return true;
}

/* The field of a group's type, or NULL. */
static const struct column *field(const struct column *group, const char *name)
{
    for (size_t i = 0; i < group->children_count; i++)
        if (str_is(group->type->names[i], name))
            return &group->children[i];
    return NULL;
}

static struct str text_at(const struct column *group, const char *name, size_t row)
{
    const struct column *c = field(group, name);
    bool there = c != NULL && c->type->kind == TYPE_STRING && !column_is_null(c, row);
    return there ? column_str(c, row) : STR_EMPTY;
}

static int64_t number_at(const struct column *group, const char *name, size_t row)
{
    const struct column *c = field(group, name);
    int64_t number = 0;
    int32_t narrow;
    if (c == NULL || column_is_null(c, row))
        return 0;
    if (c->type->kind == TYPE_INT64) {
        memcpy(&number, column_cell(c, row), sizeof number);
    } else if (c->type->kind == TYPE_INT32) {
        memcpy(&narrow, column_cell(c, row), sizeof narrow);
        number = narrow;
    }
    return number;
}

static bool is_text_map(const struct column *c)
{
    return c != NULL && c->type->kind == TYPE_MAP && c->children[0].type->kind == TYPE_STRING &&
           c->children[1].type->kind == TYPE_STRING;
}

static json_t *text_json(struct str text)
{
    return json_stringn(text.data, text.len);
}

static json_t *map_json(const struct column *c, size_t row)
{
    json_t *object = json_object();
    for (uint64_t i = is_text_map(c) ? column_start(c, row) : 0; is_text_map(c) && i < c->offsets[row]; i++) {
        struct strbuf key = { 0 };
        strbuf_add(&key, column_str(&c->children[0], (size_t)i));
        json_object_set_new(object, strbuf_cstr(&key), text_json(column_str(&c->children[1], (size_t)i)));
        strbuf_fini(&key);
    }
    return object;
}

static json_t *list_json(const struct column *c, size_t row)
{
    json_t *list = json_array();
    bool texts = c != NULL && c->type->kind == TYPE_ARRAY && c->children[0].type->kind == TYPE_STRING;
    for (uint64_t i = texts ? column_start(c, row) : 0; texts && i < c->offsets[row]; i++)
        json_array_append_new(list, text_json(column_str(&c->children[0], (size_t)i)));
    return list;
}

static bool take_meta_data(struct reading *r, const struct column *group, size_t row)
{
    json_t *meta = json_pack(
        "{s:o,s:o,s:o,s:{s:s,s:{}},s:o,s:o,s:o,s:I}", "id", text_json(text_at(group, "id", row)), "name",
        text_json(text_at(group, "name", row)), "description", text_json(text_at(group, "description", row)), "format",
        "provider", "parquet", "options", "schemaString", text_json(text_at(group, "schemaString", row)),
        "partitionColumns", list_json(field(group, "partitionColumns"), row), "configuration",
        map_json(field(group, "configuration"), row), "createdTime", (json_int_t)number_at(group, "createdTime", row));
    return delta_state_set_meta_data(r->state, meta, r->err);
}

static bool take_file(struct reading *r, const struct column *group, size_t row, bool removed)
{
    struct delta_file *file = NULL;
    const struct column *partition = field(group, "partitionValues");
    if (!delta_file_new(text_at(group, "path", row), &file, r->err))
        return false;
    file->size = (uint64_t)number_at(group, "size", row);
    file->removed_ms = removed ? MAX(number_at(group, "deletionTimestamp", row), 1) : 0;
    file->modified_ms = number_at(group, "modificationTime", row);
    if (is_text_map(partition) && partition->offsets[row] > column_start(partition, row))
        delta_file_set_partition(file, column_str(&partition->children[1], (size_t)column_start(partition, row)));
    if (!removed && !delta_file_set_stats(file, text_at(group, "stats", row), r->err)) {
        delta_file_free(file);
        return false;
    }
    return delta_state_add(r->state, file, r->err);
}

static bool take_row(struct reading *r, size_t row)
{
    const struct column *c = r->columns;
    if (text_at(&c[META_DATA], "id", row).len > 0)
        return take_meta_data(r, &c[META_DATA], row);
    if (text_at(&c[ADD], "path", row).len > 0)
        return take_file(r, &c[ADD], row, false);
    if (text_at(&c[REMOVE], "path", row).len > 0)
        return take_file(r, &c[REMOVE], row, true);
    if (text_at(&c[TXN], "appId", row).len > 0)
        r->state->txn_version = (uint64_t)number_at(&c[TXN], "version", row);
    else if (number_at(&c[PROTOCOL], "minReaderVersion", row) > 0)
        return delta_state_set_protocol(r->state, number_at(&c[PROTOCOL], "minReaderVersion", row),
                                        number_at(&c[PROTOCOL], "minWriterVersion", row), r->err);
    return true;
}

static bool read_group(struct reading *r, struct parquet_file *file, size_t index)
{
    size_t rows = (size_t)parquet_row_group(file, index).rows;
    bool ok = true;
    for (size_t i = 0; i < GROUPS; i++) {
        int at = schema_find(r->schema, str_of(groups[i].name), false);
        ok = ok && at >= 0 && r->schema->columns[at].type->kind == TYPE_TUPLE &&
             r->schema->columns[at].type->names != NULL;
        column_init(&r->columns[i], ok ? r->schema->columns[at].type : type_of_kind(TYPE_UINT8));
        if (!ok)
            err_set(r->err, ERR_CORRUPTED_DATA, "a checkpoint has no %s", groups[i].name);
        else
            ok = parquet_read_column(file, index, (size_t)at, &r->columns[i], r->err);
    }
    for (size_t row = 0; row < rows && ok; row++)
        ok = take_row(r, row);
    for (size_t i = 0; i < GROUPS; i++)
        column_fini(&r->columns[i]);
    return ok;
}

bool delta_checkpoint_read(struct str bytes, int64_t version, struct delta_state *state, struct err *err)
{
    struct parquet_file *file = NULL;
    struct reading r = { .bytes = bytes, .state = state, .err = err };
    if (!parquet_open_foreign(read_bytes, &r.bytes, bytes.len, &file, err))
        return false;
    r.schema = parquet_schema(file);
    bool ok = parquet_verify(file, err);
    for (size_t i = 0; i < parquet_row_groups(file) && ok; i++)
        ok = read_group(&r, file, i);
    parquet_close(file);
    if (ok && (!state->has_protocol || state->meta_data == NULL))
        ok = err_set(err, ERR_CORRUPTED_DATA, "a checkpoint lacks the protocol or the metaData");
    state->version = version;
    return ok;
}
