/* temp_dir.h: a directory of a test's own under $TMPDIR or /tmp. */
#ifndef SLUICE_TESTS_SUPPORT_TEMP_DIR_H
#define SLUICE_TESTS_SUPPORT_TEMP_DIR_H
#include "base/fs.h"

void temp_dir_make(char path[PATH_BYTES]); /* new and empty; stops the test where that fails */
void temp_dir_remove(const char *path);    /* with everything in it */
#endif
