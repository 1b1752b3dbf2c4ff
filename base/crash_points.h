/* crash_points.h: every place where a test may kill the process, and the macro that marks it.
 *
 * In builds with SLUICE_CRASH_POINTS the environment's SLUICE_CRASH_POINT=NAME or NAME:N kills the process with SIGKILL
 * when it comes to the place for the N-th time (1 where N is left out). In all others CRASH_POINT() is nothing. A lint
 * holds this list and the source together. */
#ifndef SLUICE_BASE_CRASH_POINTS_H
#define SLUICE_BASE_CRASH_POINTS_H
/* clang-format off */
#define CRASH_POINTS(X) \
    X("part.created")      /* an empty temporary file */ \
    X("part.written")      /* bytes appended to the temporary name, not synced */ \
    X("part.synced")       /* synced, not renamed */ \
    X("part.renamed")      /* under its final name, directory not synced */ \
    X("part.committed")    /* directory synced, nobody told */ \
    X("merge.written")     /* merged part complete under its temporary name */ \
    X("merge.renamed")     /* merged part hides its sources */ \
    X("merge.tokens")      /* the sources' tokens are in tokens.log */ \
    X("merge.removed")     /* one source unlinked */ \
    X("table.created")     /* a new table under its temporary name */ \
    X("table.renamed")     /* a table's directory has its new name, not synced */ \
    X("table.dropped")     /* a table under its temporary name, not yet removed */ \
    X("table.cut")         /* parts are cut off in tokens.log, still on disk */ \
    X("table.linked")      /* parts to be detached have their second name */ \
    X("table.attached")    /* an attached part is under its final name, its source still there */ \
    X("table.gone")        /* single parts are gone by tokens.log, still on disk */ \
    X("scrub.logged")      /* the identities of a damaged part are safe, its file still there */ \
    X("recover.removed")   /* a leftover file is gone, the rest of recovery to come */ \
    X("durable.written")   /* fs_write_durably: temporary file safe, not renamed */ \
    X("durable.committed") /* fs_write_durably: renamed and synced */ \
    X("delta.committed")   /* a version of a Delta log is there and synced, nobody told */ \
    X("delta.checkpoint")  /* a checkpoint is there, _last_checkpoint still names the one before */ \
    X("delta.cleaned")     /* one old file of a Delta log is gone */ \
    X("spool.created")     /* a segment under its temporary name, not synced */ \
    X("spool.renamed")     /* a segment has its name, its directory is not synced */ \
    X("spool.appended")    /* a commit is appended, not synced */ \
    X("spool.synced")      /* a commit is safe, nobody told */ \
    X("spool.told")        /* its inserts are told and buffered */ \
    X("spool.rotated")     /* a segment has its end, the next one is not there */ \
    X("spool.removed")     /* a segment is unlinked, its directory not synced */ \
    X("spool.set_aside")   /* a damaged range is copied */ \
    X("spool.cleaned")     /* a start has removed what was left of making a segment */ \
    X("flush.settled")     /* a spooled batch is stored, refused or kept as letters; the spool does not know */ \
    X("letters.added")     /* a dead letter is committed, the insert not yet let go */ \
    X("replay.stored")     /* the rows of a dead letter are stored, the letter not yet dropped */ \
    X("backup.waiting")    /* a backup has spool and letters, no table */ \
    X("backup.tables")     /* a backup has all but its MANIFEST, under its temporary name */
/* clang-format on */

#ifdef SLUICE_CRASH_POINTS
void crash_point_hit(const char *name); /* must: name is in the list */
#define CRASH_POINT(name) crash_point_hit(name)
#else
#define CRASH_POINT(name) ((void)sizeof(name))
#endif
#endif
