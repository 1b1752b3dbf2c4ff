/* fuzz_rows_custom.c: CustomSeparated. The first bytes choose the rule and, from a list, each delimiter. */
#include "rows_fuzz.h"

static struct str delimiter_of(uint8_t choice)
{
    static const char *const delimiters[] = { "", "\t", "\n", ",", "::", ";\n", "<r>", "\"" };
    return str_of(delimiters[choice % ARRAY_COUNT(delimiters)]);
}

static void choose_delimiters(const uint8_t *choice, struct format_settings *s)
{
    s->format_custom_escaping_rule = choice[0] % 7;
    s->input_format_custom_detect_header = (choice[0] & 64) != 0;
    s->input_format_custom_allow_variable_number_of_columns = (choice[0] & 128) != 0;
    s->format_custom_field_delimiter = delimiter_of(choice[1]);
    s->format_custom_row_before_delimiter = delimiter_of(choice[1] >> 4);
    s->format_custom_row_after_delimiter = delimiter_of(choice[2]);
    s->format_custom_row_between_delimiter = delimiter_of(choice[2] >> 4);
    s->format_custom_result_before_delimiter = delimiter_of(choice[3]);
    s->format_custom_result_after_delimiter = delimiter_of(choice[3] >> 4);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { CHOICES = 4 };
    static const char *const formats[] = { "CustomSeparated", "CustomSeparatedWithNamesAndTypes",
                                           "CustomSeparatedIgnoreSpacesWithNames" };
    struct format_settings settings;
    if (size < CHOICES + 2)
        return 0;
    rows_fuzz_settings(data[CHOICES], &settings);
    choose_delimiters(data, &settings);
    return rows_fuzz_with(data + CHOICES, size - CHOICES, formats, ARRAY_COUNT(formats), &settings);
}
