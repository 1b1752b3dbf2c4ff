/* Arrow bodies, as a file and as a stream. */
#include "rows_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const formats[] = { "ArrowStream", "Arrow" };
    return rows_fuzz(data, size, formats, ARRAY_COUNT(formats));
}
