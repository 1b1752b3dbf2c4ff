/* sql_fn.h: every function the SQL knows, for the table in sql_functions.c. Inside storage/sql_*.c only. */
#ifndef SLUICE_STORAGE_SQL_FN_H
#define SLUICE_STORAGE_SQL_FN_H
#include "format/string_ops.h"
#include "format/text_value.h"
#include "format/timezone.h"
#include "storage/sql_run.h"

enum sql_result_kind {                  /* of a function whose spec says all about its arguments */
                       SQL_RESULT_BIND, /* bind says */
                       SQL_RESULT_UINT8,
                       SQL_RESULT_UINT16,
                       SQL_RESULT_UINT32,
                       SQL_RESULT_UINT64,
                       SQL_RESULT_INT64,
                       SQL_RESULT_FLOAT64,
                       SQL_RESULT_STRING,
                       SQL_RESULT_FIRST,  /* as the first argument */
                       SQL_RESULT_STRINGS /* Array(String) */
};

/* sql_functions.c */
bool sql_function_bind(struct sql_resolver *r, struct sql_node *node, const struct sql_function *function,
                       struct err *err);
bool sql_aggregate_bind(struct sql_resolver *r, struct sql_node *node, const struct sql_aggregate *aggregate,
                        const struct sql_combinators *combinators, struct err *err);

/* sql_resolve.c */
void sql_node_set_column(struct sql_resolver *r, const struct sql_select *select, struct sql_node *node,
                         struct sql_table *table, size_t column);

/* sql_bridge.c */
/* Binds a call of a function that the expressions of columns have; its arguments, lambdas apart, are resolved. */
bool sql_bridge_bind(struct sql_resolver *r, struct sql_node *node, struct err *err);
bool sql_bridge_is_volatile(const struct sql_call *call);

/* sql_window.c */
bool sql_window_knows(struct str name); /* a function that is one only with OVER */
/* The OVER of a call: what it names and computes by. */
bool sql_resolve_over(struct sql_resolver *r, struct sql_node *node, struct err *err);
bool sql_window_bind(struct sql_resolver *r, struct sql_node *node, struct err *err); /* of a function it knows */
bool sql_window_moves(const struct sql_window *window);

/* sql_bind.c */
/* IN, EXISTS, interval arithmetic, count(*): *taken when it was one of them. */
bool sql_resolve_special(struct sql_resolver *r, struct sql_node *node, bool *taken, struct err *err);
/* Makes *node something SQLite can test for truth. */
bool sql_condition(struct sql_resolver *r, struct sql_node **node, struct err *err);
bool sql_enter_node(struct sql_resolver *r, struct err *err);
enum sql_compare { SQL_EQ, SQL_NE, SQL_LT, SQL_GT, SQL_LE, SQL_GE };
bool sql_node_is_simple(const struct sql_node *node); /* a column or a constant: may be printed twice */
sql_bind_fn sql_bind_compare, sql_bind_arithmetic, sql_bind_logic, sql_bind_not, sql_bind_negate, sql_bind_if,
    sql_bind_multi_if, sql_bind_case, sql_bind_coalesce, sql_bind_null_if, sql_bind_is_null, sql_bind_array,
    sql_bind_tuple, sql_bind_map, sql_bind_array_element, sql_bind_tuple_element, sql_bind_cast, sql_bind_convert,
    sql_bind_identity, sql_bind_type_name, sql_bind_session, sql_bind_setting, sql_bind_now, sql_bind_least,
    sql_bind_not_distinct, sql_bind_nullable;
sql_scalar_fn sql_run_compare, sql_run_arithmetic, sql_run_negate;

/* sql_join.c: what ANY, SEMI, ANTI and ASOF say of the join of that table, whose ON is resolved. */
bool sql_resolve_strictness(struct sql_resolver *r, struct sql_select *select, size_t index, struct err *err);

/* sql_imply.c: adds to a resolved condition what it implies of columns. */
void sql_imply(struct sql_resolver *r, struct sql_node **condition);

/* sql_fn_text.c */
sql_bind_fn sql_bind_texts;
sql_scalar_fn sql_run_length, sql_run_text, sql_run_side, sql_run_concat, sql_run_substring, sql_run_position,
    sql_run_replace, sql_run_affix, sql_run_trim, sql_run_split, sql_run_hex, sql_run_base64, sql_run_like,
    sql_run_readable, sql_run_reinterpret, sql_run_hash, sql_run_repeat;

/* sql_fn_number.c */
sql_bind_fn sql_bind_round, sql_bind_abs, sql_bind_bits;
sql_scalar_fn sql_run_math, sql_run_round, sql_run_abs, sql_run_bits, sql_run_float_test, sql_run_uuid;

/* sql_fn_time.c */
sql_bind_fn sql_bind_time_part, sql_bind_time_start, sql_bind_date_trunc, sql_bind_date_diff, sql_bind_unix,
    sql_bind_best_effort, sql_bind_time_zone;
sql_scalar_fn sql_run_time_part, sql_run_time_start, sql_run_add, sql_run_date_diff, sql_run_unix, sql_run_format_time,
    sql_run_best_effort, sql_run_interval;
/* x + n units: type of the result into node; args are {x, n}. */
bool sql_bind_add(struct sql_resolver *r, struct sql_node *node, int unit, bool subtract, struct err *err);
sql_bind_fn sql_bind_add_function, sql_bind_start_of_interval;

/* sql_fn_array.c */
sql_bind_fn sql_bind_has, sql_bind_map_part, sql_bind_array_concat, sql_bind_range;
sql_scalar_fn sql_run_array, sql_run_tuple, sql_run_map, sql_run_array_element, sql_run_map_element,
    sql_run_tuple_element, sql_run_has, sql_run_map_part, sql_run_array_concat, sql_run_array_join_text, sql_run_range;
#endif
