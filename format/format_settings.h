/* format_settings.h: the settings that change how bytes become rows or rows become bytes, under ClickHouse's names and
 * with the defaults of 26.7. One table (FORMAT_SETTINGS) makes the struct, the defaults, the setter and
 * system.settings. */
#ifndef SLUICE_FORMAT_FORMAT_SETTINGS_H
#define SLUICE_FORMAT_FORMAT_SETTINGS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

/* Kinds: BOOL bool; UINT uint64_t; REAL double (Float); TEXT struct str (must outlive the struct); ENUM int, whose
 * values are an alternative list "a|b|c" counted from 0. X(kind, name, default, values) */
/* clang-format off */
#define FORMAT_SETTINGS(X) \
    X(BOOL, input_format_skip_unknown_fields, true, "") \
    X(ENUM, date_time_input_format, 1, "basic|best_effort|best_effort_us") \
    X(BOOL, input_format_null_as_default, true, "") \
    X(BOOL, input_format_defaults_for_omitted_fields, true, "") \
    X(UINT, input_format_allow_errors_num, 0, "") \
    X(REAL, input_format_allow_errors_ratio, 0, "") \
    X(BOOL, input_format_import_nested_json, false, "") \
    X(BOOL, input_format_with_names_use_header, true, "") \
    X(BOOL, input_format_with_types_use_header, true, "") \
    X(BOOL, input_format_binary_decode_types_in_binary_format, false, "") \
    X(BOOL, input_format_native_allow_types_conversion, true, "") \
    X(BOOL, input_format_native_decode_types_in_binary_format, false, "") \
    X(BOOL, input_format_csv_detect_header, true, "") \
    X(BOOL, input_format_tsv_detect_header, true, "") \
    X(BOOL, input_format_csv_empty_as_default, true, "") \
    X(BOOL, input_format_tsv_empty_as_default, false, "") \
    X(BOOL, input_format_csv_allow_variable_number_of_columns, false, "") \
    X(BOOL, input_format_tsv_allow_variable_number_of_columns, false, "") \
    X(BOOL, input_format_csv_trim_whitespaces, true, "") \
    X(BOOL, input_format_csv_use_default_on_bad_values, false, "") \
    X(BOOL, input_format_csv_allow_whitespace_or_tab_as_delimiter, false, "") \
    X(BOOL, input_format_csv_allow_cr_end_of_line, false, "") \
    X(BOOL, input_format_csv_enum_as_number, false, "") \
    X(BOOL, input_format_tsv_enum_as_number, false, "") \
    X(BOOL, input_format_csv_arrays_as_nested_csv, false, "") \
    X(BOOL, input_format_csv_deserialize_separate_columns_into_tuple, true, "") \
    X(BOOL, input_format_csv_skip_trailing_empty_lines, false, "") \
    X(BOOL, input_format_tsv_skip_trailing_empty_lines, false, "") \
    X(UINT, input_format_csv_skip_first_lines, 0, "") \
    X(UINT, input_format_tsv_skip_first_lines, 0, "") \
    X(BOOL, input_format_tsv_crlf_end_of_line, false, "") \
    X(TEXT, format_csv_delimiter, ",", "") \
    X(BOOL, format_csv_allow_single_quotes, false, "") \
    X(BOOL, format_csv_allow_double_quotes, true, "") \
    X(TEXT, format_csv_null_representation, "\\N", "") \
    X(TEXT, format_tsv_null_representation, "\\N", "") \
    X(TEXT, bool_true_representation, "true", "") \
    X(TEXT, bool_false_representation, "false", "") \
    X(BOOL, input_format_json_read_numbers_as_strings, true, "") \
    X(BOOL, input_format_json_read_bools_as_strings, true, "") \
    X(BOOL, input_format_json_read_objects_as_strings, true, "") \
    X(BOOL, input_format_json_read_arrays_as_strings, true, "") \
    X(BOOL, input_format_json_read_bools_as_numbers, true, "") \
    X(BOOL, input_format_json_named_tuples_as_objects, true, "") \
    X(BOOL, input_format_json_ignore_unknown_keys_in_named_tuple, true, "") \
    X(BOOL, input_format_json_defaults_for_missing_elements_in_named_tuple, true, "") \
    X(BOOL, input_format_json_ignore_unnecessary_fields, true, "") \
    X(BOOL, input_format_json_empty_as_default, false, "") \
    X(BOOL, input_format_json_map_as_array_of_tuples, false, "") \
    X(BOOL, input_format_json_throw_on_bad_escape_sequence, true, "") \
    X(UINT, input_format_json_max_depth, 1000, "") \
    X(BOOL, input_format_json_compact_allow_variable_number_of_columns, false, "") \
    X(ENUM, input_format_column_name_matching_mode, 0, "auto|match_case|ignore_case") \
    X(BOOL, input_format_arrow_case_insensitive_column_matching, false, "") \
    X(BOOL, input_format_arrow_allow_missing_columns, true, "") \
    X(BOOL, input_format_parquet_case_insensitive_column_matching, false, "") \
    X(BOOL, input_format_parquet_allow_missing_columns, true, "") \
    X(BOOL, input_format_parquet_verify_checksums, true, "") \
    X(BOOL, input_format_force_null_for_omitted_fields, false, "") \
    X(BOOL, input_format_json_validate_types_from_metadata, true, "") \
    X(TEXT, format_json_object_each_row_column_for_object_name, "", "") \
    X(ENUM, format_custom_escaping_rule, 0, "Escaped|Quoted|CSV|JSON|Raw|XML|None") \
    X(TEXT, format_custom_field_delimiter, "\t", "") \
    X(TEXT, format_custom_row_before_delimiter, "", "") \
    X(TEXT, format_custom_row_after_delimiter, "\n", "") \
    X(TEXT, format_custom_row_between_delimiter, "", "") \
    X(TEXT, format_custom_result_before_delimiter, "", "") \
    X(TEXT, format_custom_result_after_delimiter, "", "") \
    X(BOOL, input_format_custom_detect_header, true, "") \
    X(BOOL, input_format_custom_allow_variable_number_of_columns, false, "") \
    X(BOOL, input_format_custom_skip_trailing_empty_lines, false, "") \
    X(BOOL, input_format_values_interpret_expressions, true, "") \
    X(BOOL, input_format_values_deduce_templates_of_expressions, true, "") \
    X(BOOL, input_format_values_accurate_types_of_literals, true, "") \
    X(BOOL, input_format_ipv4_default_on_conversion_error, false, "") \
    X(BOOL, input_format_ipv6_default_on_conversion_error, false, "") \
    X(ENUM, date_time_overflow_behavior, 0, "ignore|saturate|throw") \
    X(TEXT, session_timezone, "", "") \
    X(BOOL, output_format_json_quote_64bit_integers, false, "") \
    X(BOOL, output_format_json_quote_64bit_floats, false, "") \
    X(BOOL, output_format_json_quote_denormals, false, "") \
    X(BOOL, output_format_json_quote_decimals, false, "") \
    X(BOOL, output_format_json_escape_forward_slashes, true, "") \
    X(BOOL, output_format_json_named_tuples_as_objects, true, "") \
    X(BOOL, output_format_json_map_as_array_of_tuples, false, "") \
    X(BOOL, output_format_json_array_of_rows, false, "") \
    X(BOOL, output_format_csv_crlf_end_of_line, false, "") \
    X(BOOL, output_format_tsv_crlf_end_of_line, false, "") \
    X(ENUM, date_time_output_format, 0, "simple|iso|unix_timestamp") \
    X(BOOL, insert_allow_materialized_columns, false, "")
/* clang-format on */

struct format_settings {
#define FORMAT_SETTING_BOOL bool
#define FORMAT_SETTING_UINT uint64_t
#define FORMAT_SETTING_REAL double
#define FORMAT_SETTING_TEXT struct str
#define FORMAT_SETTING_ENUM int
#define X(kind, name, value, values) FORMAT_SETTING_##kind name;
    FORMAT_SETTINGS(X)
#undef X
};

const struct format_settings *format_settings_default(void);

enum format_setting_result { FORMAT_SETTING_SET, FORMAT_SETTING_NOT_MINE, FORMAT_SETTING_BAD };
/* TEXT values are borrowed. BAD: err is set (19, 27, 32, 36, 72 or 467 as the engine does). */
enum format_setting_result format_settings_set(struct format_settings *s, struct str name, struct str value,
                                               struct err *err);
/* Names, for system.settings and the known names: NULL at the end of the table. */
const char *format_setting_name(size_t index);
struct str format_setting_default_text(size_t index);
#endif
