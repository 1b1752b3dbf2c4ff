/* fuzz_rows_json.c: JSON by row, by column and as a document. */
#include "rows_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const formats[] = { "JSONEachRow",
                                           "JSONCompactEachRow",
                                           "JSONStringsEachRow",
                                           "JSONCompactEachRowWithNames",
                                           "JSON",
                                           "JSONCompact",
                                           "JSONObjectEachRow",
                                           "JSONColumns",
                                           "JSONCompactColumns",
                                           "JSONColumnsWithMetadata" };
    return rows_fuzz(data, size, formats, ARRAY_COUNT(formats));
}
