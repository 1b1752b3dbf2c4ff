/* guarded.h: input for parsers that ends at an unmapped page, so that reading one byte past it crashes the test. The
 * copies live until the process ends. */
#ifndef SLUICE_TESTS_SUPPORT_GUARDED_H
#define SLUICE_TESTS_SUPPORT_GUARDED_H
#include "base/str.h"

struct str guarded(const char *text);
struct str guarded_str(struct str bytes);
struct str guarded_again(struct str bytes); /* in the place of the one before, for tests of very many */
#endif
