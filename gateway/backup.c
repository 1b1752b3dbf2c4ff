/* backup.c: see backup.h. The spool is held until the tables are frozen: what a part has of it is named in the part. */
#include "gateway/backup.h"

#include <stdio.h>
#include <stdlib.h>

#include "buffer/spool.h"
#include "dlq/dlq.h"
#include "storage/store.h"

static bool add_spool(struct gateway *gateway, struct store_backup *backup, struct err *err)
{
    struct spool_file *files = NULL;
    size_t count = 0;
    bool ok = true;
    spool_hold(gateway->spool, &files, &count);
    for (size_t i = 0; i < count && ok; i++) {
        char path[PATH_BYTES];
        snprintf(path, sizeof path, "spool/%s", files[i].name);
        ok = store_backup_copy(backup, path, files[i].bytes, err) ||
             err->code == ERR_FILE_DOESNT_EXIST; /* it went just now: all in it is done */
    }
    free(files);
    return ok;
}

static bool add_letters(struct gateway *gateway, struct store_backup *backup, struct err *err)
{
    char dir[PATH_BYTES];
    return store_backup_make_dir(backup, "dlq", dir, err) && dlq_lmdb_backup(gateway->dlq, dir, err) &&
           store_backup_list_dir(backup, "dlq", err);
}

static bool add_waiting(void *context, struct store_backup *backup, struct err *err)
{
    return add_spool(context, backup, err) && add_letters(context, backup, err);
}

static void tables_are_frozen(void *context)
{
    spool_release(((struct gateway *)context)->spool);
}

void backup_include_waiting(struct gateway *gateway)
{
    store_set_backup_more(gateway->store, &(struct store_backup_more){ add_waiting, tables_are_frozen, gateway });
}
