/* replay_main.c: gives every file of the directories named as arguments to a fuzz target, once. Under sanitizers this
 * keeps what fuzzing has found from coming back; it is an error if there was nothing to replay. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_BYTES_MAX = 64 << 20 };

static bool replay_file(const char *dir, const char *name, struct err *err)
{
    struct strbuf bytes = { 0 };
    char path[PATH_BYTES];
    bool ok = false;
    if (!path_join(path, dir, "", name, err) || !fs_read_file(fs_posix(), path, INPUT_BYTES_MAX, &bytes, err))
        goto done;
    /* An exact copy, so that reading past the end is seen. */
    uint8_t *copy = mem_alloc(bytes.len);
    for (size_t i = 0; i < bytes.len; i++)
        copy[i] = (uint8_t)bytes.data[i];
    LLVMFuzzerTestOneInput(copy, bytes.len);
    free(copy);
    ok = true;
done:
    strbuf_fini(&bytes);
    return ok;
}

static bool replay_dir(const char *dir, size_t *replayed, struct err *err)
{
    struct fs_names names = { 0 };
    bool ok = fs_list(fs_posix(), dir, &names, err);
    for (size_t i = 0; ok && i < names.count; i++) {
        ok = replay_file(dir, names.names[i], err);
        *replayed += ok;
    }
    fs_names_fini(&names);
    return ok;
}

int main(int argc, char **argv)
{
    size_t replayed = 0;
    for (int i = 1; i < argc; i++) {
        struct err err = { 0 };
        if (!replay_dir(argv[i], &replayed, &err)) {
            fprintf(stderr, "%s: %s\n", argv[i], err.text);
            return EXIT_FAILURE;
        }
    }
    printf("%zu inputs replayed\n", replayed);
    return replayed == 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
