/* settings_request.c: see settings_request.h. own_settings is the table of the settings with a meaning in the gateway;
 * the formats' are asked for by format_settings_set; every other name of the engine is accepted and forgotten. */
#include "gateway/settings_request.h"

#include <ctype.h>
#include <math.h>

#include "base/clock.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "config/config.h"
#include "config/engine_settings.h"
#include "gateway/sessions.h"

enum { PARAMETERS_MAX = 1000, NAME_MAX_BYTES = 4096, VALUE_MAX_BYTES = 131072 };

enum kind {
    KIND_BOOL,
    KIND_UINT,
    KIND_POSITIVE,
    KIND_SECONDS,
    KIND_MS,
    KIND_REAL,
    KIND_TEXT,
    KIND_DEDUPLICATE,
    KIND_ACK
};

struct own_setting {
    const char *name;
    enum kind kind;
    size_t offset;
};
#define AT(field) offsetof(struct settings_request, field)

static const struct own_setting own_settings[] = {
    { "async_insert", KIND_BOOL, AT(async_insert) },
    { "wait_for_async_insert", KIND_BOOL, AT(wait) },
    { "wait_for_async_insert_timeout", KIND_SECONDS, AT(wait_timeout_ns) },
    { "async_insert_max_data_size", KIND_UINT, AT(limits.bytes_max) },
    { "async_insert_max_query_number", KIND_UINT, AT(limits.inserts_max) },
    { "async_insert_busy_timeout_max_ms", KIND_MS, AT(limits.wait_ns_max) },
    { "async_insert_busy_timeout_ms", KIND_MS, AT(limits.wait_ns_max) },
    { "async_insert_busy_timeout_min_ms", KIND_MS, AT(limits.wait_ns_min) },
    { "async_insert_use_adaptive_busy_timeout", KIND_BOOL, AT(limits.adaptive) },
    { "async_insert_busy_timeout_increase_rate", KIND_REAL, AT(increase_rate) },
    { "async_insert_busy_timeout_decrease_rate", KIND_REAL, AT(decrease_rate) },
    { "async_insert_deduplicate", KIND_BOOL, AT(async_deduplicate) },
    { "insert_deduplicate", KIND_BOOL, AT(sync_deduplicate) },
    { "deduplicate_insert", KIND_DEDUPLICATE, AT(deduplicate) },
    { "insert_deduplication_token", KIND_TEXT, AT(token) },
    { "log_comment", KIND_TEXT, AT(log_comment) },
    { "sluice_ack", KIND_ACK, AT(ack) },
    { "readonly", KIND_UINT, AT(readonly) },
    { "max_query_size", KIND_UINT, AT(max_query_size) },
    { "max_insert_block_size", KIND_POSITIVE, AT(storing.block_rows) },
    { "min_insert_block_size_rows", KIND_UINT, AT(storing.join_rows) },
    { "min_insert_block_size_bytes", KIND_UINT, AT(storing.join_bytes) },
    { "max_result_rows", KIND_UINT, AT(max_result_rows) },
    { "limit", KIND_UINT, AT(limit) },
    { "offset", KIND_UINT, AT(offset) },
    { "max_result_bytes", KIND_UINT, AT(max_result_bytes) },
    { "max_memory_usage", KIND_UINT, AT(max_memory_usage) },
    { "max_execution_time", KIND_SECONDS, AT(max_execution_ns) },
    { "max_partitions_per_insert_block", KIND_UINT, AT(storing.partitions_max) },
    { "throw_on_max_partitions_per_insert_block", KIND_BOOL, AT(throw_on_partitions) },
    { "optimize_on_insert", KIND_BOOL, AT(optimize_on_insert) },
    { "parts_to_delay_insert", KIND_UINT, AT(storing.parts_to_delay) },
    { "parts_to_throw_insert", KIND_UINT, AT(storing.parts_to_throw) },
    { "enable_http_compression", KIND_BOOL, AT(http_compression) },
    { "http_native_compression_disable_checksumming_on_decompress", KIND_BOOL, AT(skip_checksums) },
    { "http_write_exception_in_output_format", KIND_BOOL, AT(exception_in_output) },
    { "add_http_cors_header", KIND_BOOL, AT(cors) },
    { "send_progress_in_http_headers", KIND_BOOL, AT(progress_headers) },
};

const char *settings_request_name(size_t index)
{
    return index < ARRAY_COUNT(own_settings) ? own_settings[index].name : NULL;
}

void settings_request_init(struct settings_request *s, const struct config *config)
{
    *s = (struct settings_request){
        .async_insert = config->async_insert,
        .wait = config->wait_for_async_insert,
        .sync_deduplicate = true,
        .wait_timeout_ns = config->wait_for_async_insert_timeout,
        .spool = config->spool_mode,
        .deduplicate = (enum deduplicate_mode)config->deduplicate_insert,
        .limits = { .bytes_max = config->async_insert_max_data_size,
                    .inserts_max = config->async_insert_max_query_number,
                    .wait_ns_min = config->async_insert_busy_timeout_min_ms,
                    .wait_ns_max = config->async_insert_busy_timeout_max_ms,
                    .adaptive = config->async_insert_use_adaptive_busy_timeout },
        .increase_rate = 0.2,
        .decrease_rate = 0.2,
        .max_query_size = 262144,
        .storing = { .block_rows = 1048449, .join_rows = 1048449, .join_bytes = 268402944 },
        .throw_on_partitions = true,
        .optimize_on_insert = true,
        .http_compression = true,
        .format = *format_settings_default(),
    };
}

/* --- the URL ------------------------------------------------------------------------------------------------------ */

bool settings_request_decode(struct str raw, struct arena *arena, struct str *value, struct err *err)
{
    bool plain = true;
    for (size_t i = 0; i < raw.len && plain; i++)
        plain = raw.data[i] != '%' && raw.data[i] != '+';
    if (plain) {
        *value = raw;
        return true;
    }
    struct strbuf text = { 0 };
    bool ok = text_url_decode(raw, true, &text);
    *value = arena_dup(arena, strbuf_view(&text));
    strbuf_fini(&text);
    return ok || err_set(err, ERR_POCO_EXCEPTION, "Bad URI syntax: URI contains invalid escape sequences");
}

bool settings_request_is_volatile(struct str raw)
{
    switch (raw.len) {
    case 8:
        return str_is(raw, "query_id");
    case 10:
        return str_is(raw, "session_id");
    case 11:
        return str_is(raw, "log_comment");
    case 26:
        return str_is(raw, "insert_deduplication_token");
    default:
        return false;
    }
}

static void add_setting(struct settings_request *s, struct arena *arena, struct str name, struct str value)
{
    if (s->settings_count == s->settings_cap) {
        s->settings_cap = s->settings_cap == 0 ? 8 : s->settings_cap * 2;
        struct insert_setting *more = ARENA_ARRAY(arena, struct insert_setting, s->settings_cap);
        if (s->settings_count > 0)
            memcpy(more, s->settings, s->settings_count * sizeof(more[0]));
        s->settings = more;
    }
    s->settings[s->settings_count++] = (struct insert_setting){ .name = name, .value = value };
}

static bool flag(struct str value)
{
    return str_is(value, "1") || str_eq_nocase(value, STR("true"));
}

/* Reserved parameters that are taken and need nothing done. */
static bool is_ignored(struct str name)
{
    static const char *const names[] = { "buffer_size", "wait_end_of_query", "stacktrace" };
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        if (str_is(name, names[i]))
            return true;
    }
    return name.len == 0;
}

static bool take_reserved(struct settings_request *s, struct str name, struct str value)
{
    const struct {
        const char *name;
        struct str *value;
        bool *given;
    } texts[] = {
        { "query", &s->query, NULL },
        { "query_id", &s->query_id, NULL },
        { "database", &s->database, NULL },
        { "default_format", &s->default_format, NULL },
        { "user", &s->user, &s->user_given },
        { "password", &s->password, NULL },
        { "session_timeout", &s->session_timeout, &s->session_timeout_given },
        { "role", &s->role, &s->role_given },
    };
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
        if (str_is(name, texts[i].name)) {
            if (texts[i].value->data == NULL) /* of several the first one counts */
                *texts[i].value = value;
            if (texts[i].given != NULL)
                *texts[i].given = true;
            return true;
        }
    }
    if (str_is(name, "compress"))
        s->compress = flag(value);
    else if (str_is(name, "decompress"))
        s->decompress = flag(value);
    else if (str_is(name, "session_check"))
        s->session_check = flag(value);
    else if (str_is(name, "close_session"))
        s->close_session = flag(value);
    else if (str_is(name, "quota_key"))
        s->quota_key_given = true;
    else
        return is_ignored(name);
    return true;
}

static void add_param(struct settings_request *s, struct arena *arena, struct str name, struct str value)
{
    if (s->params_count == s->params_cap) {
        s->params_cap = s->params_cap == 0 ? 4 : s->params_cap * 2;
        struct insert_param *more = ARENA_ARRAY(arena, struct insert_param, s->params_cap);
        if (s->params_count > 0)
            memcpy(more, s->params, s->params_count * sizeof(more[0]));
        s->params = more;
    }
    s->params[s->params_count++] = (struct insert_param){ name, value };
}

bool settings_request_read_url(struct settings_request *s, struct str query_string, struct arena *arena,
                               struct err *err)
{
    struct str rest = query_string, piece;
    size_t count = 0;
    while (str_cut(&rest, '&', &piece)) {
        if (piece.len == 0)
            continue;
        if (++count > PARAMETERS_MAX)
            return err_set(err, ERR_POCO_EXCEPTION, "HTML Form Exception: Too many form fields");
        ptrdiff_t equals = str_find_char(piece, '=');
        struct str raw_name = equals == STR_NONE ? piece : str_sub(piece, 0, (size_t)equals);
        struct str raw_value = equals == STR_NONE ? STR_EMPTY : str_from(piece, (size_t)equals + 1);
        struct str name, value;
        if (!settings_request_decode(raw_name, arena, &name, err) ||
            !settings_request_decode(raw_value, arena, &value, err))
            return false;
        if (name.len > NAME_MAX_BYTES)
            return err_set(err, ERR_POCO_EXCEPTION, "HTML Form Exception: Field name too long");
        if (value.len > VALUE_MAX_BYTES)
            return err_set(err, ERR_POCO_EXCEPTION, "HTML Form Exception: Field value too long");
        if (str_is(name, "client_protocol_version")) {
            if (!str_to_u64(value, &s->client_protocol_version))
                return err_set(err, ERR_CANNOT_PARSE_INPUT_ASSERTION_FAILED,
                               "Cannot parse client_protocol_version: it is not a number");
            continue;
        }
        if (take_reserved(s, name, value))
            continue;
        if (str_starts(name, STR("param_")))
            add_param(s, arena, str_from(name, STR("param_").len), value);
        else
            add_setting(s, arena, name, value);
    }
    return true;
}

static void clear_settings(struct settings_request *s)
{
    s->settings = NULL;
    s->settings_count = s->settings_cap = 0;
}

void settings_request_add_profile(struct settings_request *s, const struct config_user *user, struct arena *arena)
{
    struct insert_setting *others = s->settings;
    size_t others_count = s->settings_count;
    s->bounds = user;
    s->profile_count = user->settings.count;
    if (user->settings.count == 0)
        return;
    clear_settings(s);
    for (size_t i = 0; i < user->settings.count; i++) {
        struct str name, value = user->settings.items[i];
        must(str_cut(&value, '=', &name)); /* the configuration is checked */
        add_setting(s, arena, name, value);
    }
    for (size_t i = 0; i < others_count; i++)
        add_setting(s, arena, others[i].name, others[i].value);
}

void settings_request_add_session(struct settings_request *s, const struct session *session, struct arena *arena)
{
    struct insert_setting *of_url = s->settings;
    size_t of_url_count = s->settings_count;
    clear_settings(s);
    for (size_t i = 0; i < session_settings_count(session); i++) {
        struct insert_setting setting = session_setting_at(session, i);
        struct str name = arena_dup(arena, setting.name), value = arena_dup(arena, setting.value);
        if (str_starts(name, STR("param_"))) /* the first one found counts */
            add_param(s, arena, str_from(name, STR("param_").len), value);
        else
            add_setting(s, arena, name, value);
    }
    for (size_t i = 0; i < of_url_count; i++)
        add_setting(s, arena, of_url[i].name, of_url[i].value);
}

/* --- values ------------------------------------------------------------------------------------------------------- */

static bool parse_bool(struct str value, bool *out, struct err *err)
{
    if (str_is(value, "1") || str_eq_nocase(value, STR("true"))) {
        *out = true;
        return true;
    }
    if (str_is(value, "0") || str_eq_nocase(value, STR("false"))) {
        *out = false;
        return true;
    }
    return err_set(err, ERR_CANNOT_PARSE_BOOL, "Cannot parse bool from string '%.*s'", (int)MIN(value.len, 60u),
                   value.data);
}

static bool not_a_number(struct str rest, struct err *err)
{
    return err_set(err, ERR_CANNOT_PARSE_INPUT_ASSERTION_FAILED, "Cannot parse input: expected 'eof' before: '%.*s'",
                   (int)MIN(rest.len, 60u), rest.data);
}

/* k, M, G, T with 1000; Ki, Mi, Gi, Ti with 1024. */
static bool suffix_factor(struct str suffix, uint64_t *factor)
{
    static const char letters[] = "kmgt";
    if (suffix.len == 0) {
        *factor = 1;
        return true;
    }
    if (suffix.len > 2 || (suffix.len == 2 && suffix.data[1] != 'i'))
        return false;
    for (size_t i = 0; letters[i] != '\0'; i++) {
        if (tolower((unsigned char)suffix.data[0]) != letters[i])
            continue;
        *factor = 1;
        for (size_t power = 0; power <= i; power++)
            *factor *= suffix.len == 2 ? 1024 : 1000;
        return true;
    }
    return false;
}

static bool number_start(struct str value, struct err *err)
{
    if (value.len == 0)
        return err_set(err, ERR_ATTEMPT_TO_READ_AFTER_EOF, "Attempt to read after eof");
    if (value.data[0] == '-' || value.data[0] == '+')
        return err_set(err, ERR_CANNOT_PARSE_NUMBER, "Unsigned type must not contain '%c' symbol", value.data[0]);
    return true;
}

static bool parse_uint(struct str value, uint64_t *out, struct err *err)
{
    if (!number_start(value, err))
        return false;
    size_t digits = 0;
    while (digits < value.len && value.data[digits] >= '0' && value.data[digits] <= '9')
        digits++;
    uint64_t number, factor;
    if (digits == 0 || !suffix_factor(str_from(value, digits), &factor))
        return not_a_number(str_from(value, digits), err);
    if (!str_to_u64(str_sub(value, 0, digits), &number) || number > UINT64_MAX / factor)
        return not_a_number(value, err);
    *out = number * factor;
    return true;
}

/* A count of units, perhaps with a fraction, as nanoseconds. */
static bool parse_time(struct str value, uint64_t unit_ns, uint64_t *out, struct err *err)
{
    double number;
    if (!number_start(value, err))
        return false;
    if ((value.data[0] < '0' || value.data[0] > '9') && value.data[0] != '.')
        return not_a_number(value, err);
    if (!str_to_double(value, &number) || !(number >= 0))
        return not_a_number(value, err);
    double ns = number * (double)unit_ns;
    *out = ns >= 9.0e18 ? UINT64_C(9000000000000000000) : (uint64_t)ns;
    return true;
}

static bool parse_deduplicate(struct str value, enum deduplicate_mode *out, struct err *err)
{
    static const char *const names[] = { "disable", "enable", "backward_compatible_choice" };
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        if (str_is(value, names[i])) {
            *out = (enum deduplicate_mode)i;
            return true;
        }
    }
    return err_set(err, ERR_BAD_ARGUMENTS,
                   "Unexpected value of DeduplicateInsertMode: '%.*s'. Must be one of ['disable', 'enable', "
                   "'backward_compatible_choice']",
                   (int)MIN(value.len, 60u), value.data);
}

static bool parse_ack(const struct settings_request *s, struct str value, enum ack_level *out, struct err *err)
{
    for (enum ack_level level = ACK_BUFFERED; level <= ACK_STORED; level++) {
        if (!str_is(value, ack_name(level)))
            continue;
        if (level == ACK_SPOOLED && s->spool == SPOOL_OFF)
            return err_set(err, ERR_BAD_ARGUMENTS,
                           "sluice_ack=spooled cannot be reached: this daemon runs without a spool (spool.mode)");
        *out = level;
        return true;
    }
    return err_set(err, ERR_BAD_ARGUMENTS,
                   "Unexpected value of sluice_ack: '%.*s'. Must be one of ['buffered', 'spooled', 'stored']",
                   (int)MIN(value.len, 60u), value.data);
}

static bool parse_real(struct str value, double *out, struct err *err)
{
    if (value.len == 0)
        return err_set(err, ERR_ATTEMPT_TO_READ_AFTER_EOF, "Attempt to read after eof");
    return str_to_double(value, out) || not_a_number(value, err);
}

static bool apply_own(struct settings_request *s, const struct own_setting *own, struct str value, struct err *err)
{
    void *field = (char *)s + own->offset;
    switch (own->kind) {
    case KIND_BOOL:
        return parse_bool(value, field, err);
    case KIND_UINT:
        return parse_uint(value, field, err);
    case KIND_POSITIVE:
        if (!parse_uint(value, field, err))
            return false;
        return *(uint64_t *)field > 0 || err_set(err, ERR_BAD_ARGUMENTS, "A setting's value has to be greater than 0");
    case KIND_SECONDS:
        return parse_time(value, NS_PER_S, field, err);
    case KIND_MS:
        return parse_time(value, NS_PER_MS, field, err);
    case KIND_REAL:
        return parse_real(value, field, err);
    case KIND_TEXT:
        *(struct str *)field = value;
        return true;
    case KIND_DEDUPLICATE:
        return parse_deduplicate(value, field, err);
    case KIND_ACK:
        return parse_ack(s, value, field, err);
    }
    must(false);
    return false;
}

static bool unknown_setting(struct str name, struct err *err)
{
    struct strbuf shown = { 0 };
    text_add_printable(&shown, name, 100);
    struct str close = config_closest_setting(name);
    if (close.len > 0)
        err_set(err, ERR_UNKNOWN_SETTING, "Unknown setting '%s': Maybe you meant ['" STR_FMT "']", strbuf_cstr(&shown),
                STR_ARG(close));
    else
        err_set(err, ERR_UNKNOWN_SETTING, "Unknown setting '%s'", strbuf_cstr(&shown));
    strbuf_fini(&shown);
    return false;
}

static bool check_float(struct str value, struct err *err)
{
    double number;
    return str_to_double(value, &number) ||
           err_set(err, ERR_CANNOT_PARSE_NUMBER, "Cannot read floating point value here: %.*s",
                   (int)MIN(value.len, 60u), value.data);
}

/* A setting of the engine without a meaning here: nonsense is refused all the same. */
static bool check_ignored(const struct engine_setting *setting, struct str value, struct err *err)
{
    struct str type = str_of(setting->type);
    bool flag_value;
    uint64_t number;
    if (str_starts(value, STR("auto")) && !str_is(type, "String")) /* a word that many of them take */
        return true;
    if (str_is(type, "Bool"))
        return parse_bool(value, &flag_value, err);
    if (str_is(type, "UInt64") || str_starts(str_of(setting->default_text), STR("auto(")))
        return parse_uint(value, &number, err);
    if (str_is(type, "Int64") || str_is(type, "Milliseconds"))
        return parse_uint(str_starts(value, STR("-")) ? str_from(value, 1) : value, &number, err);
    if (str_is(type, "Float") || str_is(type, "Double") || str_is(type, "Seconds"))
        return check_float(value, err);
    return true; /* texts, and words that only the engine knows */
}

static void settle_storing(struct settings_request *s, struct str name)
{
    s->storing.any_partitions = !s->throw_on_partitions;
    s->storing.keep_all_rows = !s->optimize_on_insert;
    if (str_is(name, "max_partitions_per_insert_block"))
        s->storing.partitions_given = true;
}

bool settings_request_apply(struct settings_request *s, struct str name, struct str value, struct err *err)
{
    for (size_t i = 0; i < ARRAY_COUNT(own_settings); i++) {
        if (!str_is(name, own_settings[i].name))
            continue;
        if (!apply_own(s, &own_settings[i], value, err))
            return false;
        settle_storing(s, name);
        return true;
    }
    switch (format_settings_set(&s->format, name, value, err)) {
    case FORMAT_SETTING_SET:
        return true;
    case FORMAT_SETTING_BAD:
        return false;
    case FORMAT_SETTING_NOT_MINE:
        break;
    }
    const struct engine_setting *setting = engine_setting_find(name);
    return setting == NULL ? unknown_setting(name, err) : check_ignored(setting, value, err);
}

/* A number, however the setting spells it. */
static bool as_number(struct str value, double *out)
{
    bool truth;
    uint64_t whole;
    struct err ignored;
    if (parse_uint(value, &whole, &ignored))
        *out = (double)whole;
    else if (parse_bool(value, &truth, &ignored))
        *out = truth;
    else
        return str_to_double(value, out);
    return true;
}

/* The list's entry NAME=VALUE for the setting; the last one counts. */
static bool bound_of(struct config_list list, struct str name, struct str *value)
{
    for (size_t i = list.count; i-- > 0;) {
        struct str rest = list.items[i], of;
        if (str_cut(&rest, '=', &of) && str_eq(of, name)) {
            *value = rest;
            return true;
        }
    }
    return false;
}

/* Of which 0 means that there is none. */
static bool is_cap(struct str name)
{
    return str_starts(name, STR("max_"));
}

static bool is_fixed(const struct settings_request *s, struct str name, struct str value)
{
    struct str has;
    bool fixed = false;
    for (size_t i = 0; i < s->bounds->fixed.count; i++)
        fixed = fixed || str_eq(s->bounds->fixed.items[i], name);
    return fixed &&
           !(bound_of(s->bounds->settings, name, &has) && str_eq(has, value)); /* the same again is no change */
}

bool settings_request_may_set(const struct settings_request *s, struct str name, struct str value, struct err *err)
{
    struct str bound;
    double number = 0, limit = 0;
    if (s->bounds == NULL)
        return true;
    if (str_is(name, "async_insert_busy_timeout_ms")) /* another name of */
        name = STR("async_insert_busy_timeout_max_ms");
    if (is_fixed(s, name, value))
        return err_set(err, ERR_SETTING_CONSTRAINT_VIOLATION, "Setting " STR_FMT " should not be changed",
                       STR_ARG(name));
    if (bound_of(s->bounds->least, name, &bound) && as_number(bound, &limit) &&
        (!as_number(value, &number) || number < limit))
        return err_set(err, ERR_SETTING_CONSTRAINT_VIOLATION, "Setting " STR_FMT " shouldn't be less than " STR_FMT,
                       STR_ARG(name), STR_ARG(bound));
    if (bound_of(s->bounds->most, name, &bound) && as_number(bound, &limit) &&
        (!as_number(value, &number) || number > limit || (number == 0 && is_cap(name))))
        return err_set(err, ERR_SETTING_CONSTRAINT_VIOLATION, "Setting " STR_FMT " shouldn't be greater than " STR_FMT,
                       STR_ARG(name), STR_ARG(bound));
    return true;
}

static bool asks_for_async(const struct settings_request *s)
{
    bool asked = false;
    for (size_t i = 0; i < s->settings_count; i++)
        if (str_is(s->settings[i].name, "async_insert"))
            asked = s->async_insert;
    return asked;
}

/* A time of 0 is refused where the sender asks for the queue; where the queue is only our default it asks for none. */
static bool check_together(struct settings_request *s, struct err *err)
{
    if (s->limits.wait_ns_max == 0 && !asks_for_async(s))
        s->async_insert = false;
    if (!s->async_insert)
        return true;
    if (s->limits.wait_ns_max == 0)
        return err_set(err, ERR_INVALID_SETTING_VALUE, "Setting 'async_insert_busy_timeout_max_ms' can't be zero");
    if (s->limits.adaptive && !(s->increase_rate > 0))
        return err_set(err, ERR_INVALID_SETTING_VALUE,
                       "Setting 'async_insert_busy_timeout_increase_rate' must be greater than zero");
    if (s->limits.adaptive && !(s->decrease_rate > 0))
        return err_set(err, ERR_INVALID_SETTING_VALUE,
                       "Setting 'async_insert_busy_timeout_decrease_rate' must be greater than zero");
    return true;
}

/* The engine lets a minimum above the maximum pass and ignores it. */
static void settle(struct settings_request *s)
{
    if (s->limits.wait_ns_min > s->limits.wait_ns_max)
        s->limits.wait_ns_min = s->limits.wait_ns_max;
    if (s->limits.inserts_max == 0)
        s->limits.inserts_max = UINT64_MAX;
    if (s->ack != ACK_NONE)
        s->wait = s->ack == ACK_STORED;
    s->spooled = s->spool == SPOOL_ALWAYS || (s->ack == ACK_SPOOLED && s->spool == SPOOL_ON);
}

static bool is_about_file(struct str name)
{
    return str_ends(name, STR("_structure")) || str_ends(name, STR("_types")) || str_ends(name, STR("_format"));
}

bool settings_request_apply_all(struct settings_request *s, bool readonly, struct err *err)
{
    for (size_t i = 0; i < s->settings_count; i++) {
        if ((readonly || s->readonly != 0) && str_is(s->settings[i].name, "readonly"))
            return err_set(err, ERR_READONLY, "Cannot modify 'readonly' setting in readonly mode");
        if (i >= s->profile_count && !settings_request_may_set(s, s->settings[i].name, s->settings[i].value, err))
            return false;
        if (!settings_request_apply(s, s->settings[i].name, s->settings[i].value, err) &&
            !(s->is_form && err->code == ERR_UNKNOWN_SETTING && is_about_file(s->settings[i].name)))
            return false;
    }
    if (!check_together(s, err))
        return false;
    settle(s);
    return true;
}

static bool out_of_range(struct str value, const char *type, struct err *err)
{
    return err_set(err, ERR_CANNOT_CONVERT_TYPE, "Field value " STR_FMT " is out of range of %s type",
                   STR_ARG(str_sub(value, 0, 60)), type);
}

/* A clause knows numbers from texts: a number has to lie in the setting's range, and its fraction is cut off. */
static bool convert_number(struct str name, struct str *value, struct arena *arena, struct err *err)
{
    const struct engine_setting *setting = engine_setting_find(name);
    struct str type = setting == NULL ? STR_EMPTY : str_of(setting->type);
    double number;
    if (setting != NULL && str_starts(str_of(setting->default_text), STR("auto(")))
        type = STR("UInt64");
    if (!str_to_double(*value, &number))
        return true;
    if (str_is(type, "String") || str_is(type, "Enum"))
        return err_set(err, ERR_BAD_GET, "Bad get: has a number, requested String");
    if (str_is(type, "Bool"))
        return number == 0 || number == 1 || out_of_range(*value, "bool", err);
    bool is_signed = str_is(type, "Int64");
    if (!is_signed && !str_is(type, "UInt64") && !str_is(type, "Milliseconds"))
        return true;
    if (is_signed ? number < -0x1p63 || number >= 0x1p63 : number < 0 || number >= 0x1p64)
        return out_of_range(*value, is_signed ? "long" : "unsigned long", err);
    if (str_find_char(*value, '.') != STR_NONE || str_find_char(*value, 'e') != STR_NONE)
        *value = str_of(is_signed ? arena_printf(arena, "%lld", (long long)number)
                                  : arena_printf(arena, "%llu", (unsigned long long)number));
    return true;
}

bool settings_request_apply_clause(struct settings_request *s, const struct insert_setting *clause, size_t count,
                                   struct arena *arena, struct err *err)
{
    for (size_t i = 0; i < count; i++) {
        struct str name = arena_dup(arena, clause[i].name), value = arena_dup(arena, clause[i].value);
        if (clause[i].is_number && !convert_number(name, &value, arena, err))
            return false;
        if (!settings_request_may_set(s, name, value, err) || !settings_request_apply(s, name, value, err))
            return false;
        add_setting(s, arena, name, value);
    }
    if (!check_together(s, err))
        return false;
    settle(s);
    return true;
}

bool settings_request_deduplicates(const struct settings_request *s)
{
    switch (s->deduplicate) {
    case DEDUPLICATE_DISABLE:
        return false;
    case DEDUPLICATE_ENABLE:
        return true;
    case DEDUPLICATE_COMPATIBLE:
        return s->async_insert ? s->async_deduplicate : s->sync_deduplicate;
    }
    must(false);
    return false;
}
