/* settings_request.h: what one request asks for by its URL parameters, headers and SETTINGS clause, under ClickHouse's
 * names, checked as the engine checks them.
 *
 * Pure; everything in the struct lives in the arena it was read into, or borrows from the request. */
#ifndef SLUICE_GATEWAY_SETTINGS_REQUEST_H
#define SLUICE_GATEWAY_SETTINGS_REQUEST_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "buffer/insert.h"
#include "buffer/shape.h"
#include "config/config.h"
#include "format/format_settings.h"
#include "format/insert_head.h"

struct session;

enum deduplicate_mode { DEDUPLICATE_DISABLE, DEDUPLICATE_ENABLE, DEDUPLICATE_COMPATIBLE };

struct settings_request {
    /* Reserved URL parameters. */
    struct str query, query_id, database, default_format, user, password;
    bool user_given, session_timeout_given, quota_key_given, role_given;
    struct str role;
    bool compress, decompress;
    bool session_check, close_session;
    struct str session_timeout;
    uint64_t session_timeout_ns;      /* after plan_find */
    uint64_t client_protocol_version; /* of the native protocol, for Native in answers; 0: not given */
    struct insert_param *params;      /* param_NAME, without the prefix */
    size_t params_count, params_cap;
    /* Everything else is a setting, in order; the clause's come last. */
    struct insert_setting *settings;
    size_t settings_count, settings_cap;
    bool is_form;         /* the body is multipart: NAME_structure, NAME_types and NAME_format are about its files */
    size_t profile_count; /* the first of them, which the user's profile says */
    const struct config_user *bounds; /* what a request may ask for; NULL: anything */

    /* What the settings mean, after settings_request_apply. */
    bool async_insert, wait, async_deduplicate, sync_deduplicate;
    uint64_t wait_timeout_ns;
    enum deduplicate_mode deduplicate;
    struct shape_limits limits;
    double increase_rate, decrease_rate;
    struct str token, log_comment;
    enum ack_level ack;                               /* sluice_ack; ACK_NONE when not given */
    enum { SPOOL_OFF, SPOOL_ON, SPOOL_ALWAYS } spool; /* what the daemon has */
    bool spooled; /* the insert is to be in the spool before it is answered, or waits further */
    uint64_t readonly, max_query_size, max_result_rows, max_result_bytes, max_execution_ns, max_memory_usage;
    uint64_t limit, offset; /* of the answer's rows; limit 0: all */
    struct shape_storing storing;
    bool throw_on_partitions, optimize_on_insert;
    bool http_compression, skip_checksums, exception_in_output, cors, progress_headers;
    struct format_settings format;
};

/* The daemon's own values. */
void settings_request_init(struct settings_request *s, const struct config *config);
/* Splits and decodes the part of the target after '?'. Errors: POCO_EXCEPTION (too many, too long, bad escape). */
must_use bool settings_request_read_url(struct settings_request *s, struct str query_string, struct arena *arena,
                                        struct err *err);
/* Puts what a session holds before what the URL says, which wins. */
void settings_request_add_session(struct settings_request *s, const struct session *session, struct arena *arena);
/* Puts what the user's profile says before all that was read so far, which wins within the profile's bounds. user has
 * to outlive s. */
void settings_request_add_profile(struct settings_request *s, const struct config_user *user, struct arena *arena);
/* Gives meaning to one setting. Errors: UNKNOWN_SETTING, CANNOT_PARSE_BOOL, CANNOT_PARSE_NUMBER,
 * CANNOT_PARSE_INPUT_ASSERTION_FAILED, ATTEMPT_TO_READ_AFTER_EOF, BAD_ARGUMENTS. */
must_use bool settings_request_apply(struct settings_request *s, struct str name, struct str value, struct err *err);
/* May a request ask for it? Errors: SETTING_CONSTRAINT_VIOLATION. */
must_use bool settings_request_may_set(const struct settings_request *s, struct str name, struct str value,
                                       struct err *err);
/* All settings read so far, in order, then the rules between them. readonly: GET has set it already. */
must_use bool settings_request_apply_all(struct settings_request *s, bool readonly, struct err *err);
/* The statement's SETTINGS clause: wins over the URL. */
must_use bool settings_request_apply_clause(struct settings_request *s, const struct insert_setting *clause,
                                            size_t count, struct arena *arena, struct err *err);
/* Is content identity allowed for this insert? */
bool settings_request_deduplicates(const struct settings_request *s);

/* A parameter whose value differs from request to request without changing what is done with the rows: it has no place
 * in the key of a cache. raw is the undecoded name. */
bool settings_request_is_volatile(struct str raw);
/* Decodes one raw URL value into the arena. */
must_use bool settings_request_decode(struct str raw, struct arena *arena, struct str *value, struct err *err);
/* Names that Sluice gives a meaning, for system.settings: NULL at the end. */
const char *settings_request_name(size_t index);
#endif
