/* temp_dir.c: mkdtemp, and removal through the fs that the tests test anyway. */
#include "support/temp_dir.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/must.h"

void temp_dir_make(char path[PATH_BYTES])
{
    const char *parent = getenv("TMPDIR");
    int n = snprintf(path, PATH_BYTES, "%s/sluice-test-XXXXXX", parent == NULL || parent[0] == '\0' ? "/tmp" : parent);
    must(n > 0 && n < PATH_BYTES);
    must(mkdtemp(path) != NULL);
}

void temp_dir_remove(const char *path)
{
    struct err err;
    if (!fs_remove_tree(fs_posix(), path, &err))
        fprintf(stderr, "temp_dir_remove: %s\n", err.text);
}
