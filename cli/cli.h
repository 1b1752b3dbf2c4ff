/* cli.h: what the verbs of the `sluice` command share: options, the table of verbs, one HTTP call, printing.
 *
 * Exit status: 0 done, 1 the daemon refused or something failed, 2 bad command line. Errors go to stderr as what, why,
 * what next. One thread. */
#ifndef SLUICE_CLI_CLI_H
#define SLUICE_CLI_CLI_H
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/must.h"
#include "base/str.h"
#include "base/strbuf.h"

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

struct cli {
    const char *url;                  /* --url, SLUICE_URL; default http://127.0.0.1:8124; or unix:PATH */
    const char *admin_url;            /* --admin-url, SLUICE_ADMIN_URL; default http://127.0.0.1:8125 */
    const char *user, *password;      /* --user, SLUICE_USER; SLUICE_PASSWORD */
    const char *ca_file;              /* SSL_CERT_FILE: whom to trust with https; NULL: whom the system does */
    const char *cert_file, *key_file; /* SLUICE_TLS_CERT, SLUICE_TLS_KEY: who we are with https; NULL: nobody */
    const char *database;             /* --database */
    const char *editor;               /* EDITOR; default vi */
    const char *temp_dir;             /* TMPDIR; default /tmp */
    const char *state_home, *home;    /* XDG_STATE_HOME, HOME, or NULL */
    bool json;                        /* -o json */
    int argc;                         /* what is left: the verb's own arguments, without the verb */
    char **argv;
};

struct verb {
    const char *name;  /* "dlq list" has two words */
    const char *usage; /* arguments */
    const char *help;  /* one line */
    const char *example;
    int (*run)(struct cli *cli);
};
extern const struct verb cli_verbs[];
extern const size_t cli_verbs_count;

/* Prints "sluice: what" to stderr; returns EXIT_FAILED or EXIT_USAGE. */
int cli_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
int cli_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The value of an option of the verb ("--format"), taken out of argv; NULL when absent. *bad: it stood there without
 * one. */
const char *cli_take_option(struct cli *cli, const char *name, bool *bad);
bool cli_take_flag(struct cli *cli, const char *name);
/* Refuses what is left over: false (and says so) when argv holds an unknown option, or more than max words. */
bool cli_arguments_ok(struct cli *cli, int min, int max);

/* ---- one call to the daemon ---- */
struct reply {
    long status; /* 0: no answer; error says why, and what that means */
    struct strbuf body;
    char error[256];
    char ack[16], batch[64], query_id[64], exception_code[16];
    char format[64]; /* of the rows in body; empty where the statement has no result */
    uint64_t read_rows, written_rows, result_rows;
    bool duplicate;
    bool stopped; /* goes_on() said so; status is 0 */
};
enum body_source { BODY_NONE, BODY_BYTES, BODY_FILE };
struct call {
    const char *base;       /* url or admin_url */
    const char *path;       /* "/", "/metrics" */
    const char *parameters; /* "a=b&c=d", encoded; NULL */
    const char *method;     /* NULL: POST with a body, GET without */
    enum body_source source;
    struct str bytes;
    void *file;                     /* FILE * read to its end */
    long timeout_s;                 /* 0: 300 */
    bool (*goes_on)(void *context); /* asked at least once a second; NULL: until the answer is there */
    void *context;
};
void cli_call(struct cli *cli, const struct call *call, struct reply *reply);
void reply_fini(struct reply *reply);
/* A statement; parameters as above. False when there was no 2xx: the error has been printed. */
must_use bool cli_statement(struct cli *cli, struct str statement, const char *parameters, struct reply *reply);
/* Appends &name=value, encoded. */
void cli_add_parameter(struct strbuf *parameters, const char *name, struct str value);
/* A name or text as SQL: `name`, 'text'. */
void cli_add_name(struct strbuf *sql, struct str name);
void cli_add_text(struct strbuf *sql, struct str text);
/* "table" or "db.table" as a condition on the columns database and table. */
void cli_add_table_condition(struct cli *cli, struct strbuf *sql, struct str table);

/* The sum of the samples of one family on a metrics page; label: only of those that have it (NAME="VALUE"), or NULL. */
double cli_sum_metric(struct str page, const char *name, const char *label);

/* ---- printing ---- */
/* A statement that answers rows: its answer as JSON, with "meta" and "data". NULL: the error has been printed. */
json_t *cli_rows(struct cli *cli, struct str statement);
/* {"KEY":[{...}]} on a line. */
void cli_print_json(const char *key, json_t *rows);
/* Runs a SELECT and prints it: a table for people, or JSON with -o json. empty: what to say without rows. *count, where
 * not NULL, becomes the number of rows. */
int cli_list(struct cli *cli, const char *key, struct str select, const char *empty, size_t *count);

/* ---- verbs ---- */
int verb_insert(struct cli *cli);
int verb_query(struct cli *cli);
int verb_flush(struct cli *cli);
int verb_status(struct cli *cli);
int verb_tables(struct cli *cli);
int verb_parts(struct cli *cli);
int verb_dlq_list(struct cli *cli);
int verb_dlq_show(struct cli *cli);
int verb_dlq_replay(struct cli *cli);
int verb_dlq_edit(struct cli *cli);
int verb_dlq_export(struct cli *cli);
int verb_dlq_import(struct cli *cli);
int verb_dlq_drop(struct cli *cli);
int verb_load_upclick(struct cli *cli);
int verb_backup(struct cli *cli);
int verb_restore(struct cli *cli);
int verb_top(struct cli *cli);
int verb_reload(struct cli *cli);
int verb_drain(struct cli *cli);
int verb_config_show(struct cli *cli);
int verb_doctor(struct cli *cli);
int verb_inserts(struct cli *cli);
int verb_support_bundle(struct cli *cli);
int verb_user_hash(struct cli *cli);
int verb_completion(struct cli *cli);
int verb_verify(struct cli *cli);
int verb_spool_list(struct cli *cli);
int verb_spool_verify(struct cli *cli);
int verb_dlq_compact(struct cli *cli);
int verb_crash_test(struct cli *cli);
#endif
