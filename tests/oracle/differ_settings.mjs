// The formats of differ_formats.mjs, and settings for a body: those it is written with and those it is read with.

const FLAG = ['0', '1']
const COMMON = {
  date_time_input_format: ['basic', 'best_effort', 'best_effort_us'], input_format_null_as_default: FLAG,
  input_format_skip_unknown_fields: FLAG, input_format_defaults_for_omitted_fields: FLAG,
  input_format_allow_errors_num: ['1', '2'], input_format_allow_errors_ratio: ['0.5', '1'],
  input_format_force_null_for_omitted_fields: FLAG, input_format_column_name_matching_mode: ['match_case', 'ignore_case', 'auto'],
  date_time_overflow_behavior: ['saturate', 'throw', 'ignore'], input_format_ipv4_default_on_conversion_error: FLAG,
  input_format_ipv6_default_on_conversion_error: FLAG, bool_true_representation: ['yes', 'ja', 'T'],
  bool_false_representation: ['no', 'F'], session_timezone: ['Asia/Tokyo', 'America/New_York'],
  input_format_import_nested_json: FLAG, input_format_max_rows_to_read_for_schema_inference: ['1'],
  cast_ipv4_ipv6_default_on_conversion_error: FLAG, schema_inference_make_columns_nullable: FLAG,
}
const JSON_SETTINGS = {
  input_format_json_read_numbers_as_strings: FLAG, input_format_json_read_bools_as_strings: FLAG,
  input_format_json_read_bools_as_numbers: FLAG, input_format_json_read_objects_as_strings: FLAG,
  input_format_json_read_arrays_as_strings: FLAG, input_format_json_named_tuples_as_objects: FLAG,
  input_format_json_ignore_unknown_keys_in_named_tuple: FLAG, input_format_json_defaults_for_missing_elements_in_named_tuple: FLAG,
  input_format_json_empty_as_default: FLAG, input_format_json_map_as_array_of_tuples: FLAG,
  input_format_json_throw_on_bad_escape_sequence: FLAG, input_format_json_max_depth: ['2', '5'],
  input_format_json_compact_allow_variable_number_of_columns: FLAG, input_format_json_validate_types_from_metadata: FLAG,
  input_format_json_try_infer_numbers_from_strings: FLAG, input_format_json_ignore_unnecessary_fields: FLAG,
  format_json_object_each_row_column_for_object_name: ['a', 'b'], input_format_json_use_metadata: FLAG,
  input_format_json_infer_incomplete_types_as_strings: FLAG, type_json_skip_duplicated_paths: FLAG,
}
const NAMES = { input_format_with_names_use_header: FLAG, input_format_with_types_use_header: FLAG }
const CSV = {
  input_format_csv_detect_header: FLAG, input_format_csv_empty_as_default: FLAG, input_format_csv_trim_whitespaces: FLAG,
  input_format_csv_allow_variable_number_of_columns: FLAG, input_format_csv_use_default_on_bad_values: FLAG,
  input_format_csv_allow_whitespace_or_tab_as_delimiter: FLAG, input_format_csv_allow_cr_end_of_line: FLAG,
  input_format_csv_enum_as_number: FLAG, input_format_csv_arrays_as_nested_csv: FLAG,
  input_format_csv_deserialize_separate_columns_into_tuple: FLAG, input_format_csv_skip_trailing_empty_lines: FLAG,
  input_format_csv_skip_first_lines: ['0', '1', '2'], format_csv_delimiter: [';', '\t', '|', ' ', ':'],
  format_csv_allow_single_quotes: FLAG, format_csv_allow_double_quotes: FLAG, format_csv_null_representation: ['nil', '', 'NULL'],
  input_format_csv_use_best_effort_in_schema_inference: FLAG, input_format_csv_try_infer_numbers_from_strings: FLAG, ...NAMES,
}
const TSV = {
  input_format_tsv_detect_header: FLAG, input_format_tsv_empty_as_default: FLAG, input_format_tsv_enum_as_number: FLAG,
  input_format_tsv_allow_variable_number_of_columns: FLAG, input_format_tsv_skip_trailing_empty_lines: FLAG,
  input_format_tsv_skip_first_lines: ['0', '1', '2'], input_format_tsv_crlf_end_of_line: FLAG,
  format_tsv_null_representation: ['nil', '', 'NULL'], ...NAMES,
}
const CUSTOM = {
  format_custom_escaping_rule: ['Escaped', 'Quoted', 'CSV', 'JSON', 'Raw', 'XML'], format_custom_field_delimiter: [',', '|', '; ', '\t', ' '],
  format_custom_row_before_delimiter: ['<', '('], format_custom_row_after_delimiter: ['\n', '>\n', ')', '\r\n'],
  format_custom_row_between_delimiter: [',', '\n', ''], format_custom_result_before_delimiter: ['[', 'x\n'],
  format_custom_result_after_delimiter: [']', 'end'], input_format_custom_detect_header: FLAG,
  input_format_custom_allow_variable_number_of_columns: FLAG, input_format_custom_skip_trailing_empty_lines: FLAG,
  ...NAMES, input_format_csv_empty_as_default: FLAG, input_format_tsv_empty_as_default: FLAG, format_csv_allow_single_quotes: FLAG,
}
const VALUES = {
  input_format_values_interpret_expressions: FLAG, input_format_values_deduce_templates_of_expressions: FLAG,
  input_format_values_accurate_types_of_literals: FLAG,
}
const PARQUET = {
  input_format_parquet_case_insensitive_column_matching: FLAG, input_format_parquet_allow_missing_columns: FLAG,
}
const ARROW = {
  input_format_arrow_case_insensitive_column_matching: FLAG, input_format_arrow_allow_missing_columns: FLAG,
}
const WRITE_JSON = {
  output_format_json_quote_64bit_integers: FLAG, output_format_json_quote_64bit_floats: FLAG,
  output_format_json_quote_denormals: FLAG, output_format_json_quote_decimals: FLAG, output_format_json_escape_forward_slashes: FLAG,
  output_format_json_named_tuples_as_objects: FLAG, output_format_json_map_as_array_of_tuples: FLAG,
  output_format_json_array_of_rows: FLAG, output_format_json_validate_utf8: FLAG, output_format_json_pretty_print: FLAG,
  date_time_output_format: ['simple', 'iso', 'unix_timestamp'],
}
const WRITE_TEXT = {
  output_format_csv_crlf_end_of_line: FLAG, output_format_tsv_crlf_end_of_line: FLAG,
  date_time_output_format: ['simple', 'iso', 'unix_timestamp'],
}
const WRITE_PARQUET = {
  output_format_parquet_compression_method: ['none', 'snappy', 'lz4', 'zstd', 'gzip', 'brotli'], output_format_parquet_version: ['1.0', '2.4', '2.6', '2.latest'],
  output_format_parquet_string_as_string: FLAG, output_format_parquet_fixed_string_as_fixed_byte_array: FLAG,
  output_format_parquet_datetime_as_uint32: FLAG, output_format_parquet_enum_as_byte_array: FLAG,
  output_format_parquet_date_as_uint16: FLAG, output_format_parquet_use_custom_encoder: FLAG,
  output_format_parquet_compliant_nested_types: FLAG, output_format_parquet_max_dictionary_size: ['0', '100'],
  output_format_parquet_data_page_size: ['10'], output_format_parquet_row_group_size: ['1'],
}
const WRITE_ARROW = {
  output_format_arrow_low_cardinality_as_dictionary: FLAG, output_format_arrow_string_as_string: FLAG,
  output_format_arrow_compression_method: ['none', 'lz4_frame', 'zstd'], output_format_arrow_fixed_string_as_fixed_byte_array: FLAG,
  output_format_arrow_use_64_bit_indexes_for_dictionary: FLAG, output_format_arrow_use_signed_indexes_for_dictionary: FLAG,
}
const WRITE_NATIVE = {
  output_format_native_encode_types_in_binary_format: FLAG, low_cardinality_allow_in_native_format: FLAG,
  output_format_native_write_json_as_string: FLAG,
}
const READ_NATIVE = { input_format_native_allow_types_conversion: FLAG, input_format_native_decode_types_in_binary_format: FLAG }
const WRITE_BINARY = { output_format_binary_encode_types_in_binary_format: FLAG }
const READ_BINARY = { input_format_binary_decode_types_in_binary_format: FLAG, ...NAMES }

// name, kind (how differ_spoil.mjs varies it), read: settings of the insert, write: of the SELECT; what is in both is given to both.
const FORMATS = [
  ...['JSONEachRow', 'JSONEachRow', 'JSONEachRow', 'JSONStringsEachRow', 'JSONCompactEachRow', 'JSONCompactStringsEachRow', 'JSONCompactEachRowWithNames',
    'JSONCompactEachRowWithNamesAndTypes', 'JSONCompactStringsEachRowWithNames', 'JSONCompactStringsEachRowWithNamesAndTypes',
    'JSONObjectEachRow', 'JSON', 'JSONCompact', 'JSONColumns', 'JSONCompactColumns', 'JSONColumnsWithMetadata']
    .map((name) => ({ name, kind: 'json', read: { ...JSON_SETTINGS, ...NAMES }, write: WRITE_JSON })),
  ...['CSV', 'CSV', 'CSV', 'CSVWithNames', 'CSVWithNamesAndTypes'].map((name) => ({ name, kind: 'csv', read: CSV, write: WRITE_TEXT })),
  ...['TabSeparated', 'TabSeparated', 'TabSeparated', 'TabSeparatedRaw', 'TabSeparatedWithNames', 'TabSeparatedWithNamesAndTypes',
    'TabSeparatedRawWithNames', 'TSKV'].map((name) => ({ name, kind: 'tsv', read: TSV, write: WRITE_TEXT })),
  ...['CustomSeparated', 'CustomSeparated', 'CustomSeparatedWithNames', 'CustomSeparatedWithNamesAndTypes']
    .map((name) => ({ name, kind: 'csv', read: CUSTOM, write: WRITE_TEXT })),
  ...['Values', 'Values', 'Values'].map((name) => ({ name, kind: 'values', read: VALUES, write: {} })),
  ...['RowBinary', 'RowBinaryWithNames', 'RowBinaryWithNamesAndTypes', 'RowBinaryWithDefaults']
    .map((name) => ({ name, output: name === 'RowBinaryWithDefaults' ? 'RowBinary' : name, kind: 'binary', read: READ_BINARY, write: WRITE_BINARY })),
  ...['Native', 'Native'].map((name) => ({ name, kind: 'binary', read: READ_NATIVE, write: WRITE_NATIVE })),
  ...['Parquet', 'Parquet'].map((name) => ({ name, kind: 'file', read: PARQUET, write: WRITE_PARQUET })),
  ...['Arrow', 'ArrowStream'].map((name) => ({ name, kind: 'file', read: ARROW, write: WRITE_ARROW })),
]

export function formatsNamed(names) {
  return names ? names.split(',').flatMap((n) => FORMATS.filter((f) => f.name === n || f.kind === n)) : FORMATS
}

const some = (rng, table, odds) =>
  Object.fromEntries(Object.entries(table).filter(() => rng.one(odds)).map(([name, values]) => [name, rng.pick(values)]))

export function settingsFor(rng, format) {
  const none = rng.one(3)
  const input = none ? {} : { ...some(rng, COMMON, 12), ...some(rng, format.read, 6) }
  const shared = Object.fromEntries(Object.entries(input).filter(([name]) => /^format_|^bool_|^session_|representation$/.test(name)))
  const output = { ...some(rng, format.write, rng.one(2) ? 3 : 1000), ...shared }
  if (output.output_format_native_encode_types_in_binary_format === '1') input.input_format_native_decode_types_in_binary_format = '1'
  if (output.output_format_binary_encode_types_in_binary_format === '1') input.input_format_binary_decode_types_in_binary_format = '1'
  return { input, output }
}
