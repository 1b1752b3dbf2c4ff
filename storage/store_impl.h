/* store_impl.h: the inside of the store, shared by store.c, store_catalog.c and store_ddl.c. */
#ifndef SLUICE_STORAGE_STORE_IMPL_H
#define SLUICE_STORAGE_STORE_IMPL_H
#include "base/map.h"
#include "base/sync.h"
#include "storage/ddl_statement.h"
#include "storage/store.h"
#include "storage/table_impl.h"

struct database {
    char *name, *dir, *comment; /* dir: whole path */
    struct map tables;          /* by name: struct table *, one reference each */
};

struct store {
    struct table_env env;
    char *dir, *tables_dir;
    struct fs_file *lock_file;
    struct store_backup_more backup_more;
    uint64_t merge_threads, bytes_max, scrub_interval_ns, scrub_bytes_per_s;
    struct mutex ddl;  /* LOCK_DDL: one change of the catalog at a time, with its I/O */
    struct mutex lock; /* LOCK_STORE; guards the maps and what follows */
    struct map databases;
    size_t merge_turn;
    uint64_t merges_running;
};

/* ---- store_catalog.c: databases and tables as directories ---- */
must_use bool catalog_open(struct store *store, struct err *err); /* reads and recovers all of them */
void catalog_close(struct store *store);
/* NULL where there is none; the pointer is good under LOCK_DDL. */
struct database *catalog_database(struct store *store, struct str name);
must_use bool catalog_create_database(struct store *store, struct str name, struct str comment, struct err *err);
must_use bool catalog_drop_database(struct store *store, struct database *database, struct err *err);
/* def is taken over in any case. With replace a table of that name is dropped in the same move. */
must_use bool catalog_create_table(struct store *store, struct database *database, struct table_def *def, bool replace,
                                   struct err *err);
must_use bool catalog_drop_table(struct store *store, struct database *database, struct table *table, struct err *err);
must_use bool catalog_rename_table(struct store *store, struct table *table, struct database *from, struct database *to,
                                   struct str name, struct err *err);
must_use bool catalog_exchange_tables(struct store *store, struct table *a, struct database *database_a,
                                      struct table *b, struct database *database_b, struct err *err);
/* Writes table.sql of a changed definition. */
must_use bool catalog_write_def(struct store *store, const char *table_dir, const struct table_def *def,
                                struct err *err);

enum { FORMAT_BYTES_MAX = 4096, SQL_BYTES_MAX = 4 * 1024 * 1024 };
/* Text of DATA/FORMAT. Errors: NOT_IMPLEMENTED for a newer one, CORRUPTED_DATA. */
must_use bool store_check_format(struct str text, struct err *err);
/* The statement in a database.sql, after its checksum. */
must_use bool catalog_database_sql(struct str text, struct str *sql, struct err *err);

/* ---- store_backup.c ---- */
/* DATA/backups/NAME: all tables; under LOCK_DDL. Errors: BAD_ARGUMENTS, BACKUP_ALREADY_EXISTS, disk errors. */
must_use bool store_backup(struct store *store, struct str name, struct err *err);
/* Removes what a crash left of one. */
must_use bool store_backup_sweep(struct store *store, struct err *err);
/* Every file that the manifest lists, against what it says; quick: only the manifest itself. */
void store_backup_check(struct fs *fs, const char *dir, bool quick,
                        void (*found)(void *context, const char *path, const char *why), void *context);

/* ---- store_cap.c ---- */
/* Removes the oldest parts of these tables until what is left is within the cap. */
void store_keep_cap(struct table *const *tables, size_t count, uint64_t bytes_max);
#endif
