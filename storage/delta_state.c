/* delta_state.c: see delta_state.h. */
#include "storage/delta_state.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/text.h"
#include "base/version.h"

enum { LINE_BYTES_MAX = 64 * 1024 * 1024 };

/* ---- files ---- */

void delta_file_free(struct delta_file *file)
{
    if (file == NULL)
        return;
    free(file->path);
    free(file->dir);
    free(file->partition);
    free(file->stats);
    free(file);
}

static char *copy(struct str text)
{
    struct strbuf bytes = { 0 };
    strbuf_add(&bytes, text);
    return bytes.len == 0 ? mem_strdup("") : strbuf_take(&bytes);
}

static bool not_ours(struct err *err, const char *what)
{
    return err_set(err, ERR_CORRUPTED_DATA, "%s is not as it is written here", what);
}

static bool is_path_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != 0 && strchr("-._~/=", c) != NULL);
}

void delta_path_add(struct strbuf *out, const struct part *part)
{
    char name[PART_NAME_BYTES];
    part_name_print(&part->name, name);
    for (const char *at = part->partition.dir; *at != 0; at++) {
        if (is_path_char(*at))
            strbuf_add_char(out, *at);
        else
            strbuf_addf(out, "%%%02X", (unsigned)(unsigned char)*at);
    }
    strbuf_addf(out, "/%s", name);
}

bool delta_file_new(struct str path, struct delta_file **out, struct err *err)
{
    struct strbuf plain = { 0 };
    struct str rest, dir, name;
    struct delta_file *file = NEW(struct delta_file);
    bool ok = text_url_decode(path, false, &plain);
    rest = strbuf_view(&plain);
    ok = ok && str_cut(&rest, '/', &dir) && str_find_char(rest, '/') == STR_NONE &&
         str_find_char(strbuf_view(&plain), 0) == STR_NONE;
    name = rest;
    ok = ok && part_name_parse(name, &file->name);
    if (ok) {
        file->path = copy(path);
        file->dir = copy(dir);
        *out = file;
    } else {
        delta_file_free(file);
        not_ours(err, "a path in the log");
    }
    strbuf_fini(&plain);
    return ok;
}

void delta_file_set_partition(struct delta_file *file, struct str value)
{
    if (value.len > 0)
        file->partition = copy(value);
}

/* The statistics may hold numbers that jansson cannot, but they begin with the only one that is needed. */
bool delta_file_set_stats(struct delta_file *file, struct str stats, struct err *err)
{
    static const char head[] = "{\"numRecords\":";
    struct str rest = str_from(stats, sizeof head - 1), number;
    if (!str_starts(stats, str_of(head)) || !str_cut(&rest, ',', &number) || !str_to_u64(number, &file->rows))
        return not_ours(err, "the stats of a file");
    file->stats = copy(stats);
    return true;
}

/* ---- states ---- */

void delta_state_init(struct delta_state *state, const char uuid[UUID_TEXT_BYTES])
{
    *state = (struct delta_state){ .version = -1 };
    memcpy(state->uuid, uuid, UUID_TEXT_BYTES);
}

void delta_state_fini(struct delta_state *state)
{
    size_t at = 0;
    struct str key;
    void *value;
    while (map_next(&state->files, &at, &key, &value))
        delta_file_free(value);
    map_fini(&state->files);
    json_decref(state->meta_data);
}

struct delta_file *delta_state_live(const struct delta_state *state, struct str path)
{
    struct delta_file *file = map_get(&state->files, path);
    return file != NULL && file->removed_ms == 0 ? file : NULL;
}

void delta_state_forget(struct delta_state *state, int64_t before_ms)
{
    size_t at = 0;
    struct str key;
    void *value;
    while (map_next(&state->files, &at, &key, &value)) {
        struct delta_file *file = value;
        if (file->removed_ms == 0 || file->removed_ms >= before_ms)
            continue;
        map_remove(&state->files, key);
        delta_file_free(file);
    }
}

const char *delta_state_partition_column(const struct delta_state *state)
{
    return json_string_value(json_array_get(json_object_get(state->meta_data, "partitionColumns"), 0));
}

static int compare_paths(const void *a, const void *b)
{
    return strcmp((*(struct delta_file *const *)a)->path, (*(struct delta_file *const *)b)->path);
}

struct delta_file **delta_state_files(const struct delta_state *state, size_t *count)
{
    size_t at = 0;
    struct str key;
    void *value;
    struct delta_file **files = mem_alloc(state->files.count * sizeof *files);
    *count = 0;
    while (map_next(&state->files, &at, &key, &value))
        files[(*count)++] = value;
    if (*count > 1)
        qsort(files, *count, sizeof *files, compare_paths);
    return files;
}

void delta_state_app_id(const struct delta_state *state, struct strbuf *out)
{
    strbuf_addf(out, "sluice:%s", state->uuid);
}

/* Derived from the table and the version: who does not know the rule cannot have written the commit by accident. */
static void commit_id(const struct delta_state *state, int64_t version, char out[UUID_TEXT_BYTES])
{
    struct strbuf seed = { 0 };
    strbuf_addf(&seed, "sluice delta %s %lld", state->uuid, (long long)version);
    struct hash128 hash = hash128(strbuf_view(&seed));
    snprintf(out, UUID_TEXT_BYTES, "%08llx-%04llx-%04llx-%04llx-%012llx", (unsigned long long)(hash.hi >> 32),
             (unsigned long long)(hash.hi >> 16 & 0xffff), (unsigned long long)(hash.hi & 0xffff),
             (unsigned long long)(hash.lo >> 48), (unsigned long long)(hash.lo & 0xffffffffffff));
    strbuf_fini(&seed);
}

/* ---- printing ---- */

const char *delta_operation_name(enum delta_operation operation)
{
    static const char *const names[] = { "CREATE TABLE", "WRITE",       "OPTIMIZE",     "DELETE",
                                         "TRUNCATE",     "ADD COLUMNS", "CHANGE COLUMN" };
    return names[operation];
}

static void add_line(struct strbuf *out, const char *action, json_t *body)
{
    must(body != NULL);
    json_t *line = json_pack("{s:o}", action, body);
    char *text = json_dumps(line, JSON_COMPACT);
    strbuf_add_text(out, text);
    strbuf_add_char(out, '\n');
    free(text);
    json_decref(line);
}

static json_t *number_text(uint64_t number)
{
    return json_sprintf("%llu", (unsigned long long)number);
}

static json_t *parameters_json(const struct delta_state *state, const struct delta_commit *commit)
{
    const json_t *meta = commit->meta_data != NULL ? commit->meta_data : state->meta_data;
    json_t *parameters = json_object();
    if (commit->operation == DELTA_WRITE)
        json_object_set_new(parameters, "mode", json_string("Append"));
    if (commit->operation == DELTA_WRITE || commit->operation == DELTA_CREATE_TABLE) {
        char *columns = json_dumps(json_object_get(meta, "partitionColumns"), JSON_COMPACT);
        json_object_set_new(parameters, "partitionBy", json_string(columns));
        free(columns);
    }
    return parameters;
}

static json_t *metrics_json(const struct delta_commit *commit)
{
    uint64_t rows = 0, bytes = 0, removed_bytes = 0;
    for (size_t i = 0; i < commit->adds_count; i++) {
        rows += commit->adds[i]->rows;
        bytes += commit->adds[i]->size;
    }
    for (size_t i = 0; i < commit->removes_count; i++)
        removed_bytes += commit->removes[i]->size;
    if (commit->operation == DELTA_OPTIMIZE)
        return json_pack("{s:o,s:o,s:o,s:o}", "numAddedFiles", number_text(commit->adds_count), "numAddedBytes",
                         number_text(bytes), "numRemovedFiles", number_text(commit->removes_count), "numRemovedBytes",
                         number_text(removed_bytes));
    if (commit->adds_count == 0 && commit->removes_count > 0)
        return json_pack("{s:o,s:o}", "numRemovedFiles", number_text(commit->removes_count), "numRemovedBytes",
                         number_text(removed_bytes));
    if (commit->adds_count == 0)
        return json_object();
    return json_pack("{s:o,s:o,s:o}", "numFiles", number_text(commit->adds_count), "numOutputRows", number_text(rows),
                     "numOutputBytes", number_text(bytes));
}

static json_t *partition_values_json(const char *column, const struct delta_file *file)
{
    json_t *values = json_object();
    if (column != NULL)
        json_object_set_new(values, column, file->partition == NULL ? json_null() : json_string(file->partition));
    return values;
}

static void add_commit_info(const struct delta_state *state, const struct delta_commit *commit, struct rng *rng,
                            struct strbuf *out)
{
    char txn_id[UUID_TEXT_BYTES], own_id[UUID_TEXT_BYTES];
    rng_uuid4_text(rng, txn_id);
    commit_id(state, state->version + 1, own_id);
    add_line(out, "commitInfo",
             json_pack("{s:I,s:s,s:o,s:b,s:s,s:s,s:s,s:o}", "timestamp", (json_int_t)commit->time_ms, "operation",
                       delta_operation_name(commit->operation), "operationParameters", parameters_json(state, commit),
                       "isBlindAppend", commit->operation == DELTA_WRITE && commit->removes_count == 0, "engineInfo",
                       "sluice/" SLUICE_VERSION, "txnId", txn_id, "sluiceCommit", own_id, "operationMetrics",
                       metrics_json(commit)));
}

/* How far publication got, for whoever wants to know. */
static void add_txn(const struct delta_state *state, const struct delta_commit *commit, struct strbuf *out)
{
    uint64_t block = state->txn_version;
    struct strbuf app_id = { 0 };
    for (size_t i = 0; i < commit->adds_count; i++)
        block = MAX(block, commit->adds[i]->name.last);
    if (block == state->txn_version)
        return;
    delta_state_app_id(state, &app_id);
    add_line(out, "txn",
             json_pack("{s:s,s:I,s:I}", "appId", strbuf_cstr(&app_id), "version", (json_int_t)block, "lastUpdated",
                       (json_int_t)commit->time_ms));
    strbuf_fini(&app_id);
}

static void add_remove(const char *column, const struct delta_file *file, const struct delta_commit *commit,
                       struct strbuf *out)
{
    add_line(out, "remove",
             json_pack("{s:s,s:I,s:b,s:b,s:o,s:I}", "path", file->path, "deletionTimestamp",
                       (json_int_t)commit->time_ms, "dataChange", commit->data_change, "extendedFileMetadata", 1,
                       "partitionValues", partition_values_json(column, file), "size", (json_int_t)file->size));
}

static void add_add(const char *column, const struct delta_file *file, bool data_change, struct strbuf *out)
{
    add_line(out, "add",
             json_pack("{s:s,s:o,s:I,s:I,s:b,s:s,s:{s:o}}", "path", file->path, "partitionValues",
                       partition_values_json(column, file), "size", (json_int_t)file->size, "modificationTime",
                       (json_int_t)file->modified_ms, "dataChange", data_change, "stats", file->stats, "tags",
                       "sluice.level", number_text(file->name.level)));
}

void delta_commit_print(const struct delta_state *state, const struct delta_commit *commit, struct rng *rng,
                        struct strbuf *out)
{
    const char *column = delta_state_partition_column(state);
    add_commit_info(state, commit, rng, out);
    if (state->version < 0)
        add_line(
            out, "protocol",
            json_pack("{s:i,s:i}", "minReaderVersion", DELTA_READER_VERSION, "minWriterVersion", DELTA_WRITER_VERSION));
    if (commit->meta_data != NULL)
        add_line(out, "metaData", json_incref(commit->meta_data));
    add_txn(state, commit, out);
    for (size_t i = 0; i < commit->removes_count; i++)
        add_remove(column, commit->removes[i], commit, out);
    for (size_t i = 0; i < commit->adds_count; i++)
        add_add(column, commit->adds[i], commit->data_change, out);
}

/* ---- reading ---- */

static struct str text_of(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_string(value) ? str_make(json_string_value(value), json_string_length(value)) : STR_EMPTY;
}

static bool number_of(const json_t *object, const char *key, int64_t *out)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return false;
    *out = json_integer_value(value);
    return true;
}

bool delta_state_set_protocol(struct delta_state *state, int64_t reader, int64_t writer, struct err *err)
{
    state->has_protocol = reader == DELTA_READER_VERSION && writer == DELTA_WRITER_VERSION;
    return state->has_protocol || not_ours(err, "the protocol of the log");
}

bool delta_state_set_meta_data(struct delta_state *state, json_t *meta_data, struct err *err)
{
    json_decref(state->meta_data);
    state->meta_data = meta_data;
    return str_is(text_of(meta_data, "id"), state->uuid) || not_ours(err, "the table's id in the log");
}

/* A file that was removed may come back: when what it was merged into turns out to be damaged. */
bool delta_state_add(struct delta_state *state, struct delta_file *file, struct err *err)
{
    if (delta_state_live(state, str_of(file->path)) != NULL) {
        delta_file_free(file);
        return not_ours(err, "a log that adds a file twice");
    }
    delta_file_free(map_put(&state->files, str_of(file->path), file));
    state->live_count += file->removed_ms == 0;
    return true;
}

static bool take_add(struct delta_state *state, const json_t *body, struct err *err)
{
    struct delta_file *file = NULL;
    int64_t size = 0;
    if (!delta_file_new(text_of(body, "path"), &file, err))
        return false;
    bool ok = (number_of(body, "size", &size) && number_of(body, "modificationTime", &file->modified_ms)) ||
              not_ours(err, "an add in the log");
    if (!ok || !delta_file_set_stats(file, text_of(body, "stats"), err)) {
        delta_file_free(file);
        return false;
    }
    file->size = (uint64_t)size;
    const char *column = delta_state_partition_column(state);
    if (column != NULL)
        delta_file_set_partition(file, text_of(json_object_get(body, "partitionValues"), column));
    return delta_state_add(state, file, err);
}

static bool take_remove(struct delta_state *state, const json_t *body, struct err *err)
{
    struct delta_file *file = delta_state_live(state, text_of(body, "path"));
    if (file == NULL || !number_of(body, "deletionTimestamp", &file->removed_ms) || file->removed_ms == 0)
        return not_ours(err, "a remove in the log");
    state->live_count--;
    return true;
}

static bool take_txn(struct delta_state *state, const json_t *body, struct err *err)
{
    struct strbuf own = { 0 };
    int64_t block = 0;
    delta_state_app_id(state, &own);
    bool ok = str_eq(text_of(body, "appId"), strbuf_view(&own)) && number_of(body, "version", &block);
    strbuf_fini(&own);
    state->txn_version = (uint64_t)block;
    return ok || not_ours(err, "a txn in the log");
}

static bool take_commit_info(const struct delta_state *state, const json_t *body, struct err *err)
{
    char own_id[UUID_TEXT_BYTES];
    commit_id(state, state->version + 1, own_id);
    return str_is(text_of(body, "sluiceCommit"), own_id) ||
           err_set(err, ERR_CORRUPTED_DATA, "somebody else wrote this version: " STR_FMT " by " STR_FMT,
                   STR_ARG(text_of(body, "operation")), STR_ARG(text_of(body, "engineInfo")));
}

static bool take_action(struct delta_state *state, const char *action, json_t *body, struct err *err)
{
    int64_t reader = 0, writer = 0;
    if (strcmp(action, "add") == 0)
        return take_add(state, body, err);
    if (strcmp(action, "remove") == 0)
        return take_remove(state, body, err);
    if (strcmp(action, "txn") == 0)
        return take_txn(state, body, err);
    if (strcmp(action, "metaData") == 0)
        return delta_state_set_meta_data(state, json_incref(body), err);
    if (strcmp(action, "protocol") == 0)
        return number_of(body, "minReaderVersion", &reader) && number_of(body, "minWriterVersion", &writer)
                   ? delta_state_set_protocol(state, reader, writer, err)
                   : not_ours(err, "the protocol of the log");
    return not_ours(err, "an action of the log");
}

/* The first line is the commitInfo, which says who wrote the rest. */
static bool take_line(struct delta_state *state, struct str text, bool first, struct err *err)
{
    json_error_t why;
    if (text.len > LINE_BYTES_MAX)
        return not_ours(err, "a line of the log");
    json_t *line = json_loadb(text.data, text.len, JSON_REJECT_DUPLICATES, &why);
    if (line == NULL)
        return err_set(err, ERR_CORRUPTED_DATA, "a line of the log is no JSON: %s", why.text);
    const char *action = json_object_iter_key(json_object_iter(line));
    bool ok = json_object_size(line) == 1 || not_ours(err, "a line of the log");
    if (ok && first)
        ok = take_commit_info(state, json_object_get(line, "commitInfo"), err);
    else if (ok)
        ok = take_action(state, action, json_object_get(line, action), err);
    json_decref(line);
    return ok;
}

bool delta_state_apply(struct delta_state *state, struct str lines, struct err *err)
{
    struct str line;
    bool first = true, whole = str_ends(lines, STR("\n"));
    while (whole && str_cut(&lines, '\n', &line)) {
        if (!take_line(state, line, first, err))
            return false;
        first = false;
    }
    if (first || !state->has_protocol || state->meta_data == NULL)
        return not_ours(err, "a commit that is cut short or empty");
    state->version++;
    return true;
}
