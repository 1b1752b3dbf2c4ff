/* plan.c: see plan.h. */
#include "gateway/plan.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/strbuf.h"
#include "config/config.h"
#include "format/insert_head.h"
#include "format/regex.h"
#include "format/rows.h"
#include "gateway/gateway.h"
#include "gateway/identify.h"
#include "gateway/multipart.h"
#include "gateway/request.h"
#include "gateway/rules.h"
#include "gateway/sessions.h"
#include "storage/ddl.h"
#include "storage/store.h"
#include "storage/temporary.h"

enum { PLANS_MAX = 8192, PLANS_BYTES_MAX = 32 << 20, KEY_MAX = 4096, PLAN_ARENA_BYTES = 1024 };

struct plans {
    struct map map;
    size_t bytes;           /* of the plans in map */
    struct strbuf last_key; /* the key of the last request, and its plan: most often it is the next one's too */
    struct plan *last;      /* a reference */
    struct strbuf key;      /* of the request at hand: URL parameters, then headers */
    size_t url_bytes;       /* the first part of key */
    uint64_t evict_at;
};

struct plans *plans_new(void)
{
    return NEW(struct plans);
}

void plans_forget(struct plans *plans)
{
    size_t at = 0;
    struct str key;
    void *plan;
    while (map_next(&plans->map, &at, &key, &plan))
        plan_unref(plan);
    map_fini(&plans->map);
    plan_unref(plans->last);
    plans->last = NULL;
    plans->bytes = 0;
}

void plans_free(struct plans *plans)
{
    if (plans == NULL)
        return;
    plans_forget(plans);
    strbuf_fini(&plans->last_key);
    strbuf_fini(&plans->key);
    free(plans);
}

static struct plan *plan_new(struct rules *rules, uint64_t generation)
{
    struct plan *plan = NEW(struct plan);
    plan->refs = 1;
    plan->rules = rules_ref(rules);
    plan->generation = generation;
    plan->arena = arena_new(PLAN_ARENA_BYTES);
    return plan;
}

struct plan *plan_ref(struct plan *plan)
{
    plan->refs++;
    return plan;
}

void plan_unref(struct plan *plan)
{
    if (plan == NULL || --plan->refs > 0)
        return;
    plan_unref(plan->of_body);
    schema_unref(plan->loose_schema);
    shape_unref(plan->shape);
    rules_unref(plan->rules);
    arena_free(plan->arena);
    free(plan);
}

/* --- the key ------------------------------------------------------------------------------------------------------ */

struct volatile_values { /* undecoded; data NULL: absent */
    struct str query_id, token, session_id, log_comment;
};

static void take_volatile(struct volatile_values *values, struct str name, struct str value)
{
    if (str_is(name, "query_id"))
        values->query_id = value;
    else if (str_is(name, "insert_deduplication_token"))
        values->token = value;
    else if (str_is(name, "session_id"))
        values->session_id = value;
    else
        values->log_comment = value;
}

static void key_add(struct plans *plans, bool given, struct str value)
{
    strbuf_add_char(&plans->key, given ? '\1' : '\0');
    strbuf_add(&plans->key, value);
}

static void key_make(struct plans *plans, const struct request *request, struct volatile_values *values)
{
    struct str rest = request->query_string, piece;
    strbuf_clear(&plans->key);
    while (str_cut(&rest, '&', &piece)) {
        ptrdiff_t equals = str_find_char(piece, '=');
        struct str name = equals == STR_NONE ? piece : str_sub(piece, 0, (size_t)equals);
        if (settings_request_is_volatile(name)) {
            take_volatile(values, name, equals == STR_NONE ? STR_EMPTY : str_from(piece, (size_t)equals + 1));
            continue;
        }
        strbuf_add(&plans->key, piece);
        strbuf_add_char(&plans->key, '&');
    }
    plans->url_bytes = plans->key.len;
    key_add(plans, request->authorization_given, request->h_authorization);
    key_add(plans, false, request->h_user);
    key_add(plans, false, request->h_key);
    key_add(plans, request->quota_header_given, request->h_database);
    key_add(plans, request->get_or_head, request->h_format);
    key_add(plans, request->loopback, request->certificate);
    key_add(plans, multipart_boundary(request->h_content_type).len > 0, STR_EMPTY);
}

/* --- an INSERT ---------------------------------------------------------------------------------------------------- */

static bool denied(const struct plan *plan, struct str database, struct str table, struct err *err)
{
    return err_set(err, ERR_ACCESS_DENIED,
                   STR_FMT ": Not enough privileges. To execute this query, it's necessary to have the grant INSERT ON "
                           "" STR_FMT "." STR_FMT,
                   STR_ARG(plan->user->name), STR_ARG(database), STR_ARG(table));
}

static bool name_matches(const struct regex *pattern, struct str name, bool *matches, struct err *err)
{
    struct regex_search search;
    regex_search_init(&search, pattern, name);
    bool ok = regex_search_from(&search, 0, matches, err);
    regex_search_fini(&search);
    return ok;
}

static bool leaves_out(const struct insert_head *head, const struct schema_column *column)
{
    bool skip = column->default_kind != DEFAULT_NONE && column->default_kind != DEFAULT_DEFAULT;
    for (size_t k = 0; k < head->columns_except_count && !skip; k++)
        skip = str_eq(column->name, head->columns_except[k]);
    return skip;
}

/* (* EXCEPT(a, b)) and (COLUMNS('pattern')): all that are stored as they come, but not these, or only those. */
static bool expand_columns(struct plan *plan, const struct schema *schema, struct insert_head *head, struct err *err)
{
    const struct regex *pattern = NULL;
    if (head->columns_matched && !regex_new(head->columns_pattern, false, plan->arena, &pattern, err))
        return false;
    struct str *columns = ARENA_ARRAY(plan->arena, struct str, schema->columns_count);
    size_t count = 0;
    for (size_t i = 0; i < schema->columns_count; i++) {
        bool wanted = !leaves_out(head, &schema->columns[i]);
        if (wanted && pattern != NULL && !name_matches(pattern, schema->columns[i].name, &wanted, err))
            return false;
        if (wanted)
            columns[count++] = arena_dup(plan->arena, schema->columns[i].name);
    }
    head->columns = columns;
    head->columns_count = count;
    return count > 0 || err_set(err, ERR_EMPTY_LIST_OF_COLUMNS_PASSED, "Empty list of columns in the INSERT query");
}

static bool columns_check(struct plan *plan, const struct schema *schema, struct insert_head *head, struct err *err)
{
    if ((head->columns_matched || head->columns_except_count > 0) && !expand_columns(plan, schema, head, err))
        return false;
    size_t *indexes = ARENA_ARRAY(plan->arena, size_t, schema->columns_count + 1), count = 0;
    return rows_resolve_columns(schema, head->columns, head->columns_count,
                                plan->settings.format.insert_allow_materialized_columns, indexes, &count, err);
}

/* What a SELECT gives is no input format's: a NULL takes the column's default unless insert_null_as_default says no. */
static size_t settings_of_select(const struct settings_request *settings, struct shape_setting *out)
{
    out[0] = (struct shape_setting){ STR("input_format_null_as_default"), STR("1") };
    out[1] = (struct shape_setting){ STR("input_format_defaults_for_omitted_fields"), STR("1") };
    for (size_t i = 0; i < settings->settings_count; i++)
        if (str_is(settings->settings[i].name, "insert_null_as_default"))
            out[0].value = settings->settings[i].value;
    return 2;
}

static bool shape_make(struct plan *plan, const struct insert_head *head, struct str database,
                       const struct row_format *format, struct err *err)
{
    const struct settings_request *settings = &plan->settings;
    struct shape_setting *matter = ARENA_ARRAY(plan->arena, struct shape_setting, settings->settings_count + 3);
    size_t count = 0;
    for (size_t i = 0; i < settings->settings_count; i++) {
        if (shape_setting_matters(settings->settings[i].name))
            matter[count++] = (struct shape_setting){ settings->settings[i].name, settings->settings[i].value };
    }
    if (plan->is_select)
        count += settings_of_select(settings, matter + count);
    struct shape_spec spec = { .database = database,
                               .table = head->table,
                               .user = plan->user->name,
                               .columns = head->columns,
                               .columns_count = head->columns_count,
                               .format = format,
                               .settings = matter,
                               .settings_count = count,
                               .deduplicate = settings_request_deduplicates(settings),
                               .spooled = settings->spooled,
                               .limits = settings->limits,
                               .storing = settings->storing };
    if (settings->async_insert) { /* one block, as in the engine */
        spec.storing.block_rows = spec.storing.join_rows = spec.storing.join_bytes = 0;
    } else { /* not to wait for company: due with its first insert, apart from those that wait */
        spec.limits.inserts_max = 1;
        matter[spec.settings_count++] = (struct shape_setting){ STR("async_insert"), STR("0") };
    }
    return shape_new(&spec, &plan->shape, err);
}

static bool loose_shape_make(struct plan *plan, struct insert_head *head, struct err *err)
{
    const struct row_format *format = NULL;
    return columns_check(plan, plan->loose_schema, head, err) && row_format_find(head->format, &format, err) &&
           shape_make(plan, head, head->database, format, err);
}

/* null('structure'): anybody may, as nothing comes of it. */
static bool insert_resolve_null(struct plan *plan, struct insert_head *head, struct err *err)
{
    return settings_request_apply_clause(&plan->settings, head->settings, head->settings_count, plan->arena, err) &&
           table_structure_parse(head->structure, &plan->loose_schema, err) && loose_shape_make(plan, head, err);
}

static bool insert_resolve_temporary(struct plan *plan, struct insert_head *head, const struct temporary_table *table,
                                     struct err *err)
{
    plan->loose_schema = schema_ref(table->def->schema);
    plan->into_temporary = true;
    return settings_request_apply_clause(&plan->settings, head->settings, head->settings_count, plan->arena, err) &&
           loose_shape_make(plan, head, err);
}

/* The table of the session that the statement names; NULL: it names none. */
static struct temporary_table *temporary_of(const struct request *request, const struct insert_head *head)
{
    return head->database.len > 0 || request->session == NULL
               ? NULL
               : temporary_tables_find(session_tables(request->session), head->table);
}

static bool insert_resolve(struct gateway *gateway, struct plan *plan, struct insert_head *head, struct err *err)
{
    struct table *table = NULL;
    const struct row_format *format = NULL;
    struct str database = head->database.len > 0 ? head->database : plan->database;
    bool ok = false;
    if (!settings_request_apply_clause(&plan->settings, head->settings, head->settings_count, plan->arena, err) ||
        !store_table(gateway->store, database, head->table, &table, err) ||
        !columns_check(plan, table_def(table)->schema, head, err) || !row_format_find(head->format, &format, err))
        goto done;
    if (!auth_allows(plan->user, GRANT_INSERT, database, head->table)) {
        denied(plan, database, head->table, err);
        goto done;
    }
    ok = shape_make(plan, head, database, format, err);
done:
    if (table != NULL)
        table_unref(table);
    return ok;
}

/* Names and values of settings borrow from the arena of the plan they were read for: the copy keeps them by copying. */
static void settings_copy(struct plan *plan, const struct plan *from)
{
    struct settings_request *to = &plan->settings;
    struct arena *arena = plan->arena;
    *to = from->settings;
    to->settings_cap = from->settings.settings_count + 4;
    to->settings = ARENA_ARRAY(arena, struct insert_setting, to->settings_cap);
    to->params = ARENA_ARRAY(arena, struct insert_param, to->params_count + 1);
    for (size_t i = 0; i < to->params_count; i++)
        to->params[i] = (struct insert_param){ arena_dup(arena, from->settings.params[i].name),
                                               arena_dup(arena, from->settings.params[i].value) };
    struct err never;
    for (size_t i = 0; i < to->settings_count; i++) {
        to->settings[i] = (struct insert_setting){ .name = arena_dup(arena, from->settings.settings[i].name),
                                                   .value = arena_dup(arena, from->settings.settings[i].value) };
        must(settings_request_apply(to, to->settings[i].name, to->settings[i].value, &never));
    }
    to->query = arena_dup(arena, from->settings.query);
    to->query_id = arena_dup(arena, from->settings.query_id);
    to->default_format = arena_dup(arena, from->settings.default_format);
    to->session_timeout = arena_dup(arena, from->settings.session_timeout);
    to->database = to->user = to->password = to->role = STR_EMPTY;
    plan->user = from->user;
    plan->database = arena_dup(arena, from->database);
    plan->output_format = arena_dup(arena, from->output_format);
}

bool plan_for_insert(struct request *request, const struct plan *from, struct str text, struct plan **out,
                     size_t *data_offset, struct err *err)
{
    struct plan *plan = plan_new(from->rules, from->generation);
    struct insert_head head = { 0 };
    settings_copy(plan, from);
    struct str statement = str_sub(text, 0, (size_t)MIN(plan->settings.max_query_size, (uint64_t)text.len));
    if (!insert_head_parse(statement, plan->settings.params, plan->settings.params_count, plan->arena, &head, err)) {
        if (err->code == ERR_SYNTAX_ERROR && statement.len < text.len)
            err_set(err, ERR_SYNTAX_ERROR,
                    "Max query size exceeded (can be increased with the `max_query_size` setting): the statement does "
                    "not end within %zu bytes",
                    statement.len);
        goto failed;
    }
    if (head.is_select) { /* runs at once */
        plan->is_select = true;
        plan->with = arena_dup(plan->arena, head.with);
        head.format = STR("Native");
        plan->settings.async_insert = false;
    }
    struct temporary_table *temporary = temporary_of(request, &head);
    if (!(head.into_null      ? insert_resolve_null(plan, &head, err)
          : temporary != NULL ? insert_resolve_temporary(plan, &head, temporary, err)
                              : insert_resolve(request->gateway, plan, &head, err)))
        goto failed;
    *data_offset = head.is_select ? head.select_offset : head.data_offset;
    *out = plan;
    return true;
failed:
    plan_unref(plan);
    return false;
}

/* --- making and finding ------------------------------------------------------------------------------------------- */

static bool session_timeout(struct settings_request *s, struct err *err)
{
    uint64_t seconds = SESSION_TIMEOUT_DEFAULT_S;
    if (s->session_timeout_given && !str_to_u64(s->session_timeout, &seconds))
        return err_set(err, ERR_INVALID_SESSION_TIMEOUT, "Invalid session timeout: '%.*s'",
                       (int)MIN(s->session_timeout.len, 60u), s->session_timeout.data);
    if (seconds > SESSION_TIMEOUT_MAX_S)
        return err_set(err, ERR_INVALID_SESSION_TIMEOUT,
                       "Session timeout '%llu' is larger than max_session_timeout: %d. Maximum session timeout could "
                       "be modified in configuration file.",
                       (unsigned long long)seconds, (int)SESSION_TIMEOUT_MAX_S);
    s->session_timeout_ns = seconds * NS_PER_S;
    return true;
}

/* The user is known. Without session_id there is nothing to enter. */
static bool session_enter(struct request *request, struct plan *plan, struct str raw_id, struct err *err)
{
    struct str id = STR_EMPTY;
    if (raw_id.data == NULL)
        return true;
    if (!session_timeout(&plan->settings, err) || !settings_request_decode(raw_id, request->arena, &id, err))
        return false;
    if (id.len == 0)
        return err_set(err, ERR_SESSION_ID_EMPTY, "Session id query parameter was provided, but it was empty");
    return request->session != NULL || /* entered under a cached plan that did not do */
           sessions_enter(request->gateway->sessions, plan->user->name, id, plan->settings.session_check,
                          request->home->now_ns, &request->session, err);
}

static bool context_check(struct request *request, struct plan *plan, struct err *err)
{
    const struct settings_request *s = &plan->settings;
    if (request->quota_header_given && s->quota_key_given)
        return err_set(err, ERR_BAD_ARGUMENTS,
                       "Invalid authentication: it is not allowed to give a quota key in a header and as a parameter");
    if (s->role_given)
        return err_set(err, ERR_UNKNOWN_ROLE, "There is no role `%.*s` in `user directories`",
                       (int)MIN(s->role.len, 60u), s->role.data);
    struct str database = request->h_database.len > 0 ? request->h_database : s->database;
    if (database.len == 0 && request->session != NULL)
        database = session_database(request->session);
    plan->database = database.len > 0 ? arena_dup(plan->arena, database) : STR("default");
    plan->output_format = request->h_format.len > 0 ? arena_dup(plan->arena, request->h_format) : s->default_format;
    if (!str_is(plan->database, "system") && !store_has_database(request->gateway->store, plan->database))
        return err_set(err, ERR_UNKNOWN_DATABASE, "Database %.*s does not exist", (int)MIN(plan->database.len, 100u),
                       plan->database.data);
    return settings_request_apply_all(&plan->settings, request->get_or_head, err);
}

/* Where the URL holds the whole head of an INSERT, the plan of it; else *plan stays. */
static bool url_insert(struct request *request, struct plan **plan, struct err *err)
{
    struct str query = (*plan)->settings.query;
    if (!insert_head_matches(query))
        return true;
    struct strbuf text = { 0 };
    struct plan *insert = NULL;
    struct err problem = { 0 };
    size_t offset = 0;
    bool ok = true;
    strbuf_add(&text, query);
    strbuf_add_char(&text, '\n');
    if (plan_for_insert(request, *plan, strbuf_view(&text), &insert, &offset, &problem)) {
        insert->data_start = arena_dup(insert->arena, str_from(strbuf_view(&text), offset));
        plan_unref(*plan);
        *plan = insert;
    } else if (problem.code != ERR_SYNTAX_ERROR) { /* a syntax error may be a head that goes on in the body */
        *err = problem;
        ok = false;
    }
    strbuf_fini(&text);
    return ok;
}

/* session_id: undecoded; data NULL without one. */
static struct plan *plan_make(struct plans *plans, struct request *request, struct str session_id, struct err *err)
{
    struct gateway *gateway = request->gateway;
    struct plan *plan =
        plan_new(request->home->rules, atomic_load_explicit(&gateway->generation, memory_order_acquire));
    settings_request_init(&plan->settings, plan->rules->config);
    plan->settings.is_form = multipart_boundary(request->h_content_type).len > 0;
    struct str url = arena_dup(plan->arena, str_sub(strbuf_view(&plans->key), 0, plans->url_bytes));
    request->authenticated = false;
    if (!settings_request_read_url(&plan->settings, url, plan->arena, err) ||
        !identify(request, &plan->settings, &plan->user, err) || !session_enter(request, plan, session_id, err))
        goto failed;
    request->authenticated = true;
    if (request->session != NULL)
        settings_request_add_session(&plan->settings, request->session, plan->arena);
    settings_request_add_profile(&plan->settings, plan->user, plan->arena);
    if (!context_check(request, plan, err) || !url_insert(request, &plan, err))
        goto failed;
    return plan;
failed:
    plan_unref(plan);
    return NULL;
}

/* The shape holds about as much as the arena that it was made from. */
static size_t plan_bytes(const struct plan *plan)
{
    size_t bytes = sizeof(*plan) + arena_bytes(plan->arena) * (plan->shape == NULL ? 1 : 2);
    return plan->of_body == NULL ? bytes : bytes + plan_bytes(plan->of_body);
}

static void count_bytes(struct plans *plans, struct plan *plan, size_t bytes)
{
    plans->bytes += bytes - plan->cached_bytes;
    plan->cached_bytes = bytes;
}

/* Any plan goes, so that an attacker cannot choose which. */
static void evict_one(struct plans *plans, struct rng *rng)
{
    struct str key;
    void *plan;
    size_t at = (size_t)rng_below(rng, plans->map.cap);
    if (!map_next(&plans->map, &at, &key, &plan)) {
        at = 0;
        must(map_next(&plans->map, &at, &key, &plan));
    }
    map_remove(&plans->map, key);
    count_bytes(plans, plan, 0);
    plan_unref(plan);
}

static void make_room(struct plans *plans, size_t count, size_t bytes, struct rng *rng)
{
    while (plans->map.count > 0 && (plans->map.count + count > PLANS_MAX || plans->bytes + bytes > PLANS_BYTES_MAX))
        evict_one(plans, rng);
}

void plan_keep_of_body(struct plans *plans, struct plan *plan, struct plan *of_body, struct rng *rng)
{
    plan_unref(plan->of_body);
    plan->of_body = plan_ref(of_body);
    if (plan->cached_bytes > 0)
        count_bytes(plans, plan, plan_bytes(plan));
    make_room(plans, 0, 0, rng);
}

static void remember(struct plans *plans, struct plan *plan, const struct request *request)
{
    bool repeats = plan->shape != NULL || (plan->settings.query.len == 0 && !request->get_or_head);
    if (request->session != NULL && !session_is_plain(request->session))
        return; /* it holds for this session alone */
    if (!repeats || plans->key.len > KEY_MAX)
        return;
    size_t bytes = plan_bytes(plan);
    make_room(plans, 1, bytes, request->gateway->rng);
    struct plan *old = map_put(&plans->map, strbuf_view(&plans->key), plan_ref(plan));
    if (old != NULL)
        count_bytes(plans, old, 0);
    plan_unref(old);
    count_bytes(plans, plan, bytes);
}

static void set_query_id(struct request *request, struct str query_id)
{
    if (query_id.len > 0 && reply_value_is_clean(query_id)) /* it goes back in a header */
        request->query_id = arena_dup(request->arena, query_id).data;
}

/* Before the plan: what is refused is answered under the sender's id too. */
static bool take_query_id(struct request *request, struct str raw, struct err *err)
{
    struct str query_id = STR_EMPTY;
    if (raw.data != NULL && !settings_request_decode(raw, request->arena, &query_id, err))
        return false;
    set_query_id(request, query_id.len > 0 ? query_id : request->h_query_id);
    return true;
}

static bool take_values(struct request *request, const struct volatile_values *values, struct err *err)
{
    struct str token = STR_EMPTY;
    if (values->token.data != NULL && !settings_request_decode(values->token, request->arena, &token, err))
        return false;
    if (values->log_comment.data != NULL &&
        !settings_request_decode(values->log_comment, request->arena, &request->log_comment, err))
        return false;
    if (request->plan->settings.log_comment.len > 0)
        request->log_comment = request->plan->settings.log_comment;
    if (values->query_id.data == NULL)
        set_query_id(request, request->plan->settings.query_id);
    /* The clause is part of the plan and wins; then the URL, then the header. */
    if (request->plan->settings.token.len > 0)
        request->token = request->plan->settings.token;
    else if (token.len > 0)
        request->token = token;
    else
        request->token = request->h_idempotency_key;
    return true;
}

static void keep_last(struct plans *plans, struct plan *plan)
{
    plan_unref(plans->last);
    plans->last = plan_ref(plan);
    strbuf_clear(&plans->last_key);
    strbuf_add(&plans->last_key, strbuf_view(&plans->key));
}

bool plan_find(struct plans *plans, struct request *request, struct err *err)
{
    struct volatile_values values = { 0 };
    key_make(plans, request, &values);
    if (!take_query_id(request, values.query_id, err))
        return false;
    struct str key = strbuf_view(&plans->key);
    bool again = plans->last != NULL && str_eq(key, strbuf_view(&plans->last_key));
    struct plan *plan = again ? plans->last : map_get(&plans->map, key);
    uint64_t generation = atomic_load_explicit(&request->gateway->generation, memory_order_acquire);
    if (plan != NULL && plan->generation == generation) {
        request->authenticated = true;
        if (!session_enter(request, plan, values.session_id, err))
            return false;
    }
    if (plan != NULL && plan->generation == generation &&
        (request->session == NULL || session_is_plain(request->session))) {
        request->plan = plan_ref(plan);
        if (!again)
            keep_last(plans, plan);
        return take_values(request, &values, err);
    }
    plan = plan_make(plans, request, values.session_id, err);
    if (plan == NULL)
        return false;
    remember(plans, plan, request);
    request->plan = plan;
    return take_values(request, &values, err);
}
