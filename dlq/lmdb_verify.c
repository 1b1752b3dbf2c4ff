/* lmdb_verify.c: every dead letter, its record and its file, against their checksums, without changing anything.
 *
 * LMDB may crash in an environment that is damaged, so a child reads it and writes what it finds into a pipe, a line
 * each: "damage\tPATH\tWHY", "leftover\tPATH\tWHY", and at last "letters\tCOUNT". Pages have no checksums of their own;
 * what no record lies in is not looked at. */
#include <errno.h>
#include <lmdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/map.h"
#include "dlq/dlq.h"
#include "dlq/letter.h"
#include "dlq/lmdb_env.h"

enum { EXIT_TOLD = 0, EXIT_UNREADABLE = 1, REPORT_BYTES_MAX = 1 << 20 };

struct reading {
    struct fs *fs;
    const char *dir;
    FILE *out;
    uint64_t letters;
    struct map files; /* names that letters speak of */
};

static void tell(struct reading *r, const char *kind, const char *name, const char *why)
{
    fprintf(r->out, "%s\t%s/%s\t%s\n", kind, r->dir, name, why);
}

static void check_letter(struct reading *r, uint64_t id, struct str record)
{
    struct arena *arena = arena_new(4096);
    struct strbuf content = { 0 };
    struct letter letter;
    struct letter_file file = { 0 };
    struct err err = { 0 };
    char name[64], path[PATH_BYTES];
    snprintf(name, sizeof(name), "letter %016llx", (unsigned long long)id);
    bool ok = letter_decode(id, record, true, arena, &letter, &file, &err);
    if (ok && file.bytes > 0)
        map_put(&r->files, str_of(file.name), r);
    if (ok && file.bytes > 0)
        ok = path_join(path, r->dir, "", file.name, &err) &&
             fs_read_file(r->fs, path, (size_t)file.bytes + 1, &content, &err) &&
             letter_decode_file(strbuf_view(&content), &file, arena, &letter, &err);
    if (!ok)
        tell(r, "damage", name, err.text);
    r->letters++;
    strbuf_fini(&content);
    arena_free(arena);
}

static void check_record(struct reading *r, struct str key, struct str value)
{
    uint64_t id, next_id, txn_number;
    if (letter_key_id(key, &id))
        check_letter(r, id, value);
    else if (!str_is(key, "M") || !lmdb_meta_decode(value, &next_id, &txn_number))
        tell(r, "damage", "data.mdb", "a record that does not check");
}

static void check_names(struct reading *r)
{
    static const char *const known[] = { "data.mdb", "lock.mdb" };
    struct fs_names names = { 0 };
    struct err err = { 0 };
    if (!fs_list(r->fs, r->dir, &names, &err))
        tell(r, "damage", "", err.text);
    for (size_t i = 0; i < names.count; i++) {
        struct str name = str_of(names.names[i]);
        bool ours = map_get(&r->files, name) != NULL;
        for (size_t k = 0; k < ARRAY_COUNT(known); k++)
            ours = ours || str_is(name, known[k]);
        if (!ours)
            tell(r, "leftover", names.names[i], "no letter speaks of it");
    }
    fs_names_fini(&names);
}

static int read_env(struct reading *r)
{
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi dbi;
    MDB_cursor *cursor;
    MDB_val key, value;
    int rc = mdb_env_create(&env);
    if (rc == 0)
        rc = mdb_env_set_mapsize(env, LMDB_MAP_BYTES);
    if (rc == 0)
        rc = mdb_env_open(env, r->dir, MDB_RDONLY | MDB_NOLOCK, 0);
    if (rc == 0)
        rc = mdb_txn_begin(env, NULL, MDB_RDONLY, &txn);
    if (rc == 0 && (rc = lmdb_read_free_pages(txn)) == MDB_NOTFOUND)
        rc = mdb_dbi_open(txn, NULL, 0, &dbi);
    if (rc == 0)
        rc = mdb_cursor_open(txn, dbi, &cursor);
    while (rc == 0 && (rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == 0)
        check_record(r, str_of_val(key), str_of_val(value));
    return rc;
}

static _Noreturn void read_and_exit(struct reading *r)
{
    static const int crashes[] = { SIGBUS, SIGSEGV, SIGABRT, SIGFPE, SIGILL };
    for (size_t i = 0; i < ARRAY_COUNT(crashes); i++)
        signal(crashes[i], SIG_DFL);
    int rc = read_env(r);
    if (rc == MDB_NOTFOUND)
        check_names(r); /* else it is not known whose files they are */
    else
        tell(r, "damage", "data.mdb", mdb_strerror(rc));
    fprintf(r->out, "letters\t%llu\n", (unsigned long long)r->letters);
    bool told = fflush(r->out) == 0;
    _exit(told ? EXIT_TOLD : EXIT_UNREADABLE);
}

static void take_line(struct str line, dlq_found_fn *found, void *context, uint64_t *letters)
{
    struct str kind, path;
    if (!str_cut(&line, '\t', &kind))
        return;
    if (str_is(kind, "letters")) {
        (void)str_to_u64(line, letters); /* ours */
        return;
    }
    if (!str_cut(&line, '\t', &path))
        return;
    struct strbuf where = { 0 }, why = { 0 };
    strbuf_add(&where, path);
    strbuf_add(&why, line);
    found(context, str_is(kind, "damage"), strbuf_cstr(&where), strbuf_cstr(&why));
    strbuf_fini(&where);
    strbuf_fini(&why);
}

/* To its end; takes the descriptor. */
static void read_lines(int fd, struct strbuf *out)
{
    char piece[4096];
    FILE *in = fdopen(fd, "r");
    strbuf_init(out, REPORT_BYTES_MAX);
    if (in == NULL) {
        close(fd);
        return; /* the child dies of its broken pipe, which is told */
    }
    for (size_t got; (got = fread(piece, 1, sizeof(piece), in)) > 0;)
        strbuf_add_bytes(out, piece, got);
    fclose(in);
}

bool dlq_lmdb_verify(struct fs *fs, const char *dir, dlq_found_fn *found, void *context, uint64_t *letters,
                     struct err *err)
{
    char path[PATH_BYTES];
    int ends[2], status = 0;
    struct strbuf lines = { 0 };
    struct str line;
    *letters = 0;
    if (!path_join(path, dir, "", "data.mdb", err))
        return false;
    if (!fs_exists(fs, path))
        return true; /* no letter ever */
    if (pipe(ends) != 0)
        return err_set_errno(err, ERR_CANNOT_OPEN_FILE, errno, "pipe");
    pid_t child = fork();
    if (child == 0) {
        struct reading reading = { .fs = fs, .dir = dir, .out = fdopen(ends[1], "w") };
        if (reading.out == NULL)
            _exit(EXIT_UNREADABLE);
        read_and_exit(&reading);
    }
    close(ends[1]);
    read_lines(ends[0], &lines);
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    struct str rest = strbuf_view(&lines);
    while (str_cut(&rest, '\n', &line))
        take_line(line, found, context, letters);
    strbuf_fini(&lines);
    if (child < 0)
        return err_set_errno(err, ERR_CANNOT_OPEN_FILE, errno, "fork");
    if (!WIFEXITED(status) || WEXITSTATUS(status) != EXIT_TOLD)
        found(context, true, path, "LMDB cannot read it");
    return true;
}
