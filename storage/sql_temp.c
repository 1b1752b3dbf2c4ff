/* sql_temp.c: the temporary files of SQLite's sorter, in memory.
 *
 * With temp_store = MEMORY the sorter keeps one linked list of all rows and sorts that, a cache miss a step; with files
 * it sorts runs that fit the cache and merges them: half the time for a million rows. So it gets files, and a file
 * system that has them in memory, counted as the rest of what the statement takes. Nothing else is opened through it.
 */
#include <sqlite3.h>
#include <string.h>

#include "base/must.h"
#include "storage/sql_run.h"

struct temp_file {
    sqlite3_file base;
    unsigned char *bytes;
    sqlite3_int64 size, cap;
    int fetched; /* pieces lent by file_fetch */
};

static struct temp_file *of(sqlite3_file *file)
{
    return (struct temp_file *)file;
}

/* ---- a file ---- */

static int file_close(sqlite3_file *file)
{
    sqlite3_free(of(file)->bytes);
    of(file)->bytes = NULL;
    return SQLITE_OK;
}

static int file_read(sqlite3_file *file, void *out, int bytes, sqlite3_int64 offset)
{
    const struct temp_file *temp = of(file);
    sqlite3_int64 there = offset >= temp->size ? 0 : MIN(temp->size - offset, (sqlite3_int64)bytes);
    if (there > 0)
        memcpy(out, temp->bytes + offset, (size_t)there);
    if (there == bytes)
        return SQLITE_OK;
    memset((char *)out + there, 0, (size_t)(bytes - there));
    return SQLITE_IOERR_SHORT_READ;
}

static int reserve(struct temp_file *temp, sqlite3_int64 size)
{
    enum { FIRST_BYTES = 64 << 10 };
    if (size <= temp->cap)
        return SQLITE_OK;
    if (temp->fetched > 0) /* it may not move; a sorter reads what it wrote before */
        return SQLITE_IOERR_WRITE;
    sqlite3_int64 cap = MAX(size + size / 2, (sqlite3_int64)FIRST_BYTES);
    unsigned char *bytes = sqlite3_realloc64(temp->bytes, (sqlite3_uint64)cap);
    if (bytes == NULL)
        return SQLITE_NOMEM;
    temp->bytes = bytes;
    temp->cap = cap;
    return SQLITE_OK;
}

static int file_write(sqlite3_file *file, const void *in, int bytes, sqlite3_int64 offset)
{
    struct temp_file *temp = of(file);
    int code = reserve(temp, offset + bytes);
    if (code != SQLITE_OK)
        return code;
    if (offset > temp->size)
        memset(temp->bytes + temp->size, 0, (size_t)(offset - temp->size));
    memcpy(temp->bytes + offset, in, (size_t)bytes);
    temp->size = MAX(temp->size, offset + bytes);
    return SQLITE_OK;
}

static int file_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    of(file)->size = MIN(of(file)->size, size);
    return SQLITE_OK;
}

static int file_sync(sqlite3_file *file, int flags)
{
    (void)file;
    (void)flags;
    return SQLITE_OK;
}

static int file_size(sqlite3_file *file, sqlite3_int64 *size)
{
    *size = of(file)->size;
    return SQLITE_OK;
}

static int file_lock(sqlite3_file *file, int lock) /* and unlock: nobody else has it */
{
    (void)file;
    (void)lock;
    return SQLITE_OK;
}

static int file_is_reserved(sqlite3_file *file, int *reserved)
{
    (void)file;
    *reserved = 0;
    return SQLITE_OK;
}

static int file_control(sqlite3_file *file, int op, void *argument)
{
    (void)file;
    (void)op;
    (void)argument;
    return SQLITE_NOTFOUND;
}

static int file_sector(sqlite3_file *file)
{
    (void)file;
    return 4096;
}

static int file_characteristics(sqlite3_file *file)
{
    (void)file;
    return 0;
}

static int file_fetch(sqlite3_file *file, sqlite3_int64 offset, int bytes, void **out)
{
    struct temp_file *temp = of(file);
    *out = NULL;
    if (offset + bytes > temp->size)
        return SQLITE_OK;
    *out = temp->bytes + offset;
    temp->fetched++;
    return SQLITE_OK;
}

static int file_unfetch(sqlite3_file *file, sqlite3_int64 offset, void *bytes)
{
    (void)offset;
    if (bytes != NULL)
        of(file)->fetched--;
    return SQLITE_OK;
}

static const sqlite3_io_methods file_methods = {
    .iVersion = 3,
    .xClose = file_close,
    .xRead = file_read,
    .xWrite = file_write,
    .xTruncate = file_truncate,
    .xSync = file_sync,
    .xFileSize = file_size,
    .xLock = file_lock,
    .xUnlock = file_lock,
    .xCheckReservedLock = file_is_reserved,
    .xFileControl = file_control,
    .xSectorSize = file_sector,
    .xDeviceCharacteristics = file_characteristics,
    .xFetch = file_fetch,
    .xUnfetch = file_unfetch,
};

/* ---- the file system ---- */

static int fs_open_temp(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out_flags)
{
    (void)vfs;
    *of(file) = (struct temp_file){ 0 };
    if (name != NULL)
        return SQLITE_CANTOPEN;
    file->pMethods = &file_methods;
    if (out_flags != NULL)
        *out_flags = flags;
    return SQLITE_OK;
}

static int fs_delete(sqlite3_vfs *vfs, const char *name, int sync)
{
    (void)vfs;
    (void)name;
    (void)sync;
    return SQLITE_OK;
}

static int fs_access(sqlite3_vfs *vfs, const char *name, int flags, int *out)
{
    (void)vfs;
    (void)name;
    (void)flags;
    *out = 0;
    return SQLITE_OK;
}

static int fs_full_path(sqlite3_vfs *vfs, const char *name, int bytes, char *out)
{
    (void)vfs;
    sqlite3_snprintf(bytes, out, "%s", name);
    return SQLITE_OK;
}

/* Randomness and time are those of the usual file system. */
static int fs_random(sqlite3_vfs *vfs, int bytes, char *out)
{
    sqlite3_vfs *usual = vfs->pAppData;
    return usual->xRandomness(usual, bytes, out);
}

static int fs_sleep(sqlite3_vfs *vfs, int microseconds)
{
    sqlite3_vfs *usual = vfs->pAppData;
    return usual->xSleep(usual, microseconds);
}

static int fs_time(sqlite3_vfs *vfs, double *out)
{
    sqlite3_vfs *usual = vfs->pAppData;
    return usual->xCurrentTime(usual, out);
}

const char *sql_temp_register(void)
{
    static sqlite3_vfs vfs = {
        .iVersion = 1,
        .szOsFile = (int)sizeof(struct temp_file),
        .mxPathname = 64,
        .zName = "sluice_temp",
        .xOpen = fs_open_temp,
        .xDelete = fs_delete,
        .xAccess = fs_access,
        .xFullPathname = fs_full_path,
        .xRandomness = fs_random,
        .xSleep = fs_sleep,
        .xCurrentTime = fs_time,
    };
    vfs.pAppData = sqlite3_vfs_find(NULL);
    must(vfs.pAppData != NULL && sqlite3_vfs_register(&vfs, 0) == SQLITE_OK);
    return vfs.zName;
}
