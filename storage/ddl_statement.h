/* ddl_statement.h: one DDL statement as values, between its text and what the store does with it. Everything lives in
 * the arena it was parsed into. */
#ifndef SLUICE_STORAGE_DDL_STATEMENT_H
#define SLUICE_STORAGE_DDL_STATEMENT_H
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "format/lexer.h"
#include "format/schema.h"
#include "storage/ddl.h"

struct column_spec {
    struct str name;
    struct str type_text; /* empty: that of the default */
    enum default_kind default_kind;
    struct str default_text; /* canonical; empty for a bare EPHEMERAL */
    struct str comment, codec_text, ttl_text;
    unsigned field_id; /* 0: to be given */
};

/* What a CREATE TABLE says, not yet checked against itself. ALTER changes one of these. */
struct table_spec {
    struct str database, name, uuid; /* uuid empty: to be given */
    struct column_spec *columns;
    size_t columns_count, columns_cap;
    struct str *extras; /* INDEX, PROJECTION, canonical */
    size_t extras_count;
    struct table_constraint *constraints;
    size_t constraints_count, constraints_cap;
    struct str engine;
    struct str *engine_args; /* canonical */
    size_t engine_args_count;
    struct str partition_text, order_text, primary_text, ttl_text, comment;
    struct table_setting *settings; /* as given, in order */
    size_t settings_count;
    unsigned version, next_field_id;
    bool has_columns, has_engine;
    bool temporary;                   /* database empty: it lives in a session */
    struct str as_database, as_table; /* CREATE TABLE ... AS other */
};

struct table_name {
    struct str database, table; /* database never empty once parsed */
};

enum ddl_kind {
    DDL_NONE, /* no DDL: not ours */
    DDL_CREATE_DATABASE,
    DDL_CREATE_TABLE,
    DDL_DROP_DATABASE,
    DDL_DROP_TABLE,
    DDL_TRUNCATE,
    DDL_RENAME,
    DDL_RENAME_DATABASE,
    DDL_EXCHANGE,
    DDL_ALTER,
    DDL_OPTIMIZE,
    DDL_BACKUP,
    DDL_STOP_MERGES,
    DDL_START_MERGES
};
enum alter_kind {
    ALTER_ADD_COLUMN,
    ALTER_DROP_COLUMN,
    ALTER_RENAME_COLUMN,
    ALTER_MODIFY_COLUMN,
    ALTER_COMMENT_COLUMN,
    ALTER_MODIFY_TTL,
    ALTER_REMOVE_TTL,
    ALTER_MODIFY_COMMENT,
    ALTER_MODIFY_SETTING,
    ALTER_RESET_SETTING,
    ALTER_ADD_INDEX,
    ALTER_DROP_INDEX,
    ALTER_ADD_CONSTRAINT,
    ALTER_DROP_CONSTRAINT,
    /* these change parts, not the definition */
    ALTER_DROP_PARTITION,
    ALTER_DETACH_PARTITION,
    ALTER_ATTACH_PARTITION
};
struct alter_command {
    enum alter_kind kind;
    struct column_spec *columns; /* ADD COLUMN: one, or the columns of a Nested; MODIFY COLUMN: one */
    size_t columns_count;
    bool if_exists, if_not_exists, first;
    struct str after;
    /* COMMENT COLUMN, MODIFY TTL, MODIFY COMMENT, ADD INDEX; RENAME COLUMN: the new name; DROP INDEX, DROP CONSTRAINT:
     * its name */
    struct str column, text;
    struct table_constraint constraint; /* ADD CONSTRAINT */
    struct table_setting *settings;     /* RESET SETTING: without values */
    size_t settings_count;
    bool partition_all, partition_by_id, one_part;
    struct str partition; /* text of the value, or the id; the name of one part */
};

struct ddl_statement {
    enum ddl_kind kind;
    bool if_exists, if_not_exists, or_replace, temporary, final, all_tables;
    struct table_spec *spec;  /* CREATE TABLE */
    struct str comment;       /* CREATE DATABASE; BACKUP: its name */
    struct table_name *names; /* tables (DROP may name several); pairs for RENAME and EXCHANGE */
    size_t names_count;
    struct alter_command *alters;
    size_t alters_count;
    bool has_partition; /* OPTIMIZE ... PARTITION */
    struct alter_command partition;
};

/* kind DDL_NONE where the statement is none of ours. The texts of *out live in arena. */
must_use bool ddl_parse(struct str query, struct str database, struct arena *arena, struct ddl_statement *out,
                        struct err *err);

/* ---- pieces, for ddl_*.c only ---- */
struct ddl_parser {
    struct lexer lexer;
    struct arena *arena;
    struct err *err;
    struct str database; /* where a name has none */
};
must_use bool ddl_fail(struct ddl_parser *p, const char *expected);
must_use bool ddl_want_word(struct ddl_parser *p, const char *word);
must_use bool ddl_want_symbol(struct ddl_parser *p, const char *symbol);
must_use bool ddl_take_name(struct ddl_parser *p, struct str *out);
must_use bool ddl_take_table(struct ddl_parser *p, struct table_name *out);
must_use bool ddl_take_string(struct ddl_parser *p, struct str *out);
bool ddl_take_words(struct ddl_parser *p, const char *first, const char *second); /* both or none */
/* a = 1, b = 'x' */
must_use bool ddl_take_settings(struct ddl_parser *p, struct table_setting **settings, size_t *count);
/* One column declaration; Nested becomes several. Appended to *columns. */
must_use bool ddl_take_column(struct ddl_parser *p, struct table_spec *spec, bool *is_primary);
/* What follows INDEX: name expr TYPE t(args) [GRANULARITY n]; all of it, canonical. */
must_use bool ddl_take_index(struct ddl_parser *p, struct str *out);
/* What follows CONSTRAINT: name CHECK expr, name ASSUME expr. Errors: also NOT_IMPLEMENTED (subqueries). */
must_use bool ddl_take_constraint(struct ddl_parser *p, struct table_constraint *out);
/* ( columns, indexes, ... ), the bracket included. */
must_use bool ddl_take_columns(struct ddl_parser *p, struct table_spec *spec);
/* ENGINE and the clauses after it. */
must_use bool ddl_take_engine(struct ddl_parser *p, struct table_spec *spec);
must_use bool ddl_take_ttl(struct ddl_parser *p, struct str *out);
must_use bool ddl_take_alters(struct ddl_parser *p, struct ddl_statement *out);
must_use bool ddl_take_partition(struct ddl_parser *p, struct alter_command *out);

/* ---- from a spec to a table and back ---- */
/* Checks everything and builds the immutable definition in an arena of its own. */
must_use bool table_def_build(const struct table_spec *spec, struct table_def **def, struct err *err);
/* A spec that builds def again; borrows from def. */
void table_spec_of(const struct table_def *def, struct arena *arena, struct table_spec *spec);
/* Room for n more columns at place `at`; the new ones are zeroed. */
struct column_spec *table_spec_insert(struct table_spec *spec, struct arena *arena, size_t at, size_t n);
/* Errors: QUERY_IS_TOO_LARGE. */
must_use bool table_spec_add_constraint(struct table_spec *spec, struct arena *arena,
                                        const struct table_constraint *constraint, struct err *err);
/* The commands that change the definition, applied in order. Errors: DUPLICATE_COLUMN, NO_SUCH_COLUMN_IN_TABLE, ... */
must_use bool table_spec_alter(struct table_spec *spec, const struct alter_command *commands, size_t count,
                               struct arena *arena, struct err *err);
#endif
