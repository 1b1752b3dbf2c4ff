/* table_detach.c: parts that are put beside the table, into TABLE/_detached/PARTITION/, and come back from there.
 *
 *   DETACH   linked into _detached, synced -> cut off (one record in tokens.log) -> the first name goes
 *   ATTACH   written anew under a new block number, with the random digits of its source -> renamed, synced -> the
 *            source removed, synced -> visible
 *
 * A file in _detached whose random digits a part has is therefore the leftover of one or the other that ended early: it
 * is never attached, and removed at the next start. */
#include <stdlib.h>

#include "base/crash_points.h"
#include "base/log.h"
#include "storage/delta_schema.h"
#include "storage/table_impl.h"

static const char detached_dir[] = "_detached";

static bool is_wanted(const struct part *part, const struct part_choice *choice)
{
    if (choice->one_part) {
        struct strbuf name = { 0 };
        part_engine_name(part->partition.id, &part->name, &name);
        bool same = str_eq(strbuf_view(&name), choice->name);
        strbuf_fini(&name);
        return same;
    }
    return choice->all || str_is(choice->name, part->partition.id) ||
           (!choice->by_id && str_is(choice->name, part->partition.text));
}

static struct strbuf detached_path(const struct table *t, const char *partition_dir)
{
    struct strbuf path = table_path(t, detached_dir, partition_dir);
    return path;
}

/* ---- DETACH and DROP ---- */

/* The active parts of the choice, referenced. */
static size_t choose_active(struct table *t, const struct part_choice *choice, struct part ***parts)
{
    struct part_set *set = table_snapshot(t);
    size_t count = 0;
    *parts = mem_alloc(set->count * sizeof **parts);
    for (size_t i = 0; i < set->count; i++)
        if (is_wanted(set->parts[i], choice))
            (*parts)[count++] = part_ref(set->parts[i]);
    part_set_unref(set);
    return count;
}

static bool link_name(struct table *t, const struct part *part, char out[PATH_BYTES], struct err *err)
{
    struct strbuf dir = detached_path(t, part->partition.dir);
    bool ok = path_join(out, strbuf_cstr(&dir), "", strrchr(part->path, '/') + 1, err);
    strbuf_fini(&dir);
    return ok;
}

static bool link_one(struct table *t, const struct part *part, struct err *err)
{
    struct strbuf dir = detached_path(t, part->partition.dir);
    char path[PATH_BYTES];
    bool ok = fs_make_dirs(t->env->fs, strbuf_cstr(&dir), err) && link_name(t, part, path, err) &&
              (fs_link(t->env->fs, part->path, path, err) || err->code == ERR_FILE_ALREADY_EXISTS) &&
              fs_sync_dir(t->env->fs, strbuf_cstr(&dir), err); /* a name is never used for another file */
    strbuf_fini(&dir);
    return ok;
}

/* The record that cuts the parts off may be in the log although that failed: the second names go once the log is known
 * to be without it, and nothing else happens to the table before. */
static void take_back_names(struct table *t, struct part *const *parts, size_t count)
{
    struct err err = { 0 };
    for (size_t i = 0; i < count; i++) {
        char path[PATH_BYTES];
        if (link_name(t, parts[i], path, &err) && fs_exists(t->env->fs, path))
            table_add_doubt(t, path, NULL, NULL);
    }
    table_log_begin(t);
    if (!table_log_mend(t, &err) || !table_settle_doubts(t))
        log_error("a DETACH that failed cannot be taken back yet: table=%s error=%s", t->full_name, err.text);
    table_log_end(t);
}

static bool cut_chosen(struct table *t, const struct part_choice *choice, struct part *const *parts, size_t count,
                       enum part_reason reason, struct err *err)
{
    if (!choice->one_part)
        return table_cut(t, choice->all ? STR_EMPTY : str_of(parts[0]->partition.id), reason, err);
    table_log_begin(t);
    bool ok = table_remove_parts(t, parts, count, reason, err);
    table_log_end(t);
    return ok;
}

bool table_take_out(struct table *t, const struct part_choice *choice, bool detach, struct err *err)
{
    struct part **parts = NULL;
    if (!table_exclusive_begin(t, false, err))
        return false;
    size_t count = choose_active(t, choice, &parts), linked = 0;
    bool ok =
        count > 0 || !choice->one_part ||
        err_set(err, ERR_NO_SUCH_DATA_PART, "No part " STR_FMT " in table %s", STR_ARG(choice->name), t->full_name);
    for (; ok && detach && linked < count; linked++)
        ok = link_one(t, parts[linked], err);
    if (ok && detach)
        CRASH_POINT("table.linked");
    if (ok && (count > 0 || choice->all))
        ok = cut_chosen(t, choice, parts, count, detach ? PART_REASON_DETACHED : PART_REASON_DROPPED, err);
    if (linked > 0 && !ok)
        take_back_names(t, parts, linked);
    table_exclusive_end(t);
    for (size_t i = 0; i < count; i++)
        part_unref(parts[i]);
    free(parts);
    return ok;
}

/* ---- what lies in _detached ---- */

/* Calls each for every file there that has the name of a part: the directory's path and name, and the file's. */
static bool each_file(struct table *t,
                      bool (*each)(void *context, const char *path, const char *dir, const char *name, struct err *err),
                      void *context, struct err *err)
{
    struct strbuf top = table_path(t, detached_dir, "");
    struct fs_names dirs = { 0 };
    struct err why = { 0 };
    bool ok = fs_list(t->env->fs, strbuf_cstr(&top), &dirs, &why) || why.code == ERR_FILE_DOESNT_EXIST;
    if (!ok)
        *err = why;
    for (size_t i = 0; i < dirs.count && ok; i++) {
        struct strbuf path = detached_path(t, dirs.names[i]);
        struct fs_names files = { 0 };
        struct part_name ignored;
        ok = fs_list(t->env->fs, strbuf_cstr(&path), &files, err);
        for (size_t k = 0; k < files.count && ok; k++)
            if (part_name_parse(str_of(files.names[k]), &ignored))
                ok = each(context, strbuf_cstr(&path), dirs.names[i], files.names[k], err);
        fs_names_fini(&files);
        strbuf_fini(&path);
    }
    fs_names_fini(&dirs);
    strbuf_fini(&top);
    return ok;
}

static bool remove_file(struct table *t, const char *dir, const char *name, struct err *err)
{
    char path[PATH_BYTES];
    return path_join(path, dir, "", name, err) && fs_unlink(t->env->fs, path, err) && fs_sync_dir(t->env->fs, dir, err);
}

struct forget {
    struct table *table;
    struct part *const *parts;
    size_t count;
};

static bool forget_file(void *context, const char *path, const char *dir, const char *name, struct err *err)
{
    const struct forget *forget = context;
    struct part_name parsed;
    (void)dir;
    must(part_name_parse(str_of(name), &parsed));
    for (size_t i = 0; i < forget->count; i++) {
        if (forget->parts[i]->name.random != parsed.random)
            continue;
        log_info("leftover of a DETACH or ATTACH removed: path=%s/%s", path, name);
        return remove_file(forget->table, path, name, err);
    }
    return true;
}

bool table_forget_detached(struct table *t, struct part *const *parts, size_t count, struct err *err)
{
    struct forget forget = { t, parts, count };
    return each_file(t, forget_file, &forget, err);
}

/* ---- ATTACH ---- */

struct attach {
    struct table *table;
    const struct part_choice *choice;
    size_t attached;
};

static bool write_anew(struct table *t, struct part *source, const struct part_name *name, struct synced_dir *dir,
                       struct part_writer **writer, struct err *err)
{
    uint64_t expired = 0;
    struct merge_progress progress = { 0 };
    int64_t memory = table_take_merge_memory(t->env);
    struct merge_job job = { .fs = t->env->fs,
                             .clock = t->env->clock,
                             .budget = &t->env->merge_budget,
                             .rng = t->env->rng,
                             .def = table_def(t),
                             .dir = dir->path,
                             .sources = &source,
                             .sources_count = 1,
                             .memory = (uint64_t)memory,
                             .wall_ns = clock_wall_ns(t->env->clock),
                             .name = name,
                             .progress = &progress };
    bool ok = merge_run(&job, writer, &expired, err);
    table_give_merge_memory(t->env, memory);
    return ok;
}

static bool commit_attach(struct table *t, struct part_writer *writer, struct synced_dir *dir, struct part **part,
                          struct err *err)
{
    if (!part_writer_rename(writer, err) || !part_writer_part(writer, part, err) || !table_sync_dir(t, dir, err))
        return false;
    CRASH_POINT("table.attached");
    return true;
}

/* The source goes before anybody sees, and merges, the part that has its digits. */
static void forget_source(struct table *t, const char *dir, const char *name)
{
    struct err err = { 0 };
    if (!remove_file(t, dir, name, &err))
        log_error("attached part stays in _detached until the next start: path=%s/%s error=%s", dir, name, err.text);
}

/* Where the commit fails nobody knows whether the disk has the new file: it goes before anything else is taken. */
static bool attach_part(struct table *t, struct part *source, const char *from_dir, const char *from_name,
                        struct err *err)
{
    struct flight *flight = table_take_blocks(t, 1);
    struct part_name name = { flight->first, flight->first, source->name.level, source->name.random };
    struct part_writer *writer = NULL;
    struct synced_dir *dir = NULL;
    struct part *part = NULL;
    bool ok = table_dir(t, source->partition.dir, &dir, err) && write_anew(t, source, &name, dir, &writer, err);
    if (ok && !commit_attach(t, writer, dir, &part, err)) {
        unsigned *doubts = NEW(unsigned);
        table_add_doubt(t, part_writer_path(writer), flight, doubts);
        flight = NULL;
        ok = false;
    }
    if (ok) {
        struct part_log_row row = { .event = PART_EVENT_NEW, .wall_ns = part->created_wall_ns };
        forget_source(t, from_dir, from_name);
        table_publish(t, &part, 1, NULL, 0, 0);
        part_log_add(t->env->part_log, table_def(t), part, row);
        log_info("part attached: table=%s path=%s rows=%llu", t->full_name, part->path, (unsigned long long)part->rows);
    }
    if (flight != NULL)
        table_end_flight(t, flight);
    part_unref(part);
    part_writer_free(writer);
    return ok;
}

static bool is_leftover(struct table *t, const struct part *detached)
{
    bool found = false;
    mutex_lock(&t->lock);
    for (size_t i = 0; i < t->current->count; i++)
        found = found || t->current->parts[i]->name.random == detached->name.random;
    for (size_t i = 0; i < t->old_count; i++) /* a cut part that waits for its removal is no obstacle */
        found = found ||
                (t->old[i]->removed_mono_ns != TABLE_PARTS_CUT_NS && t->old[i]->name.random == detached->name.random);
    mutex_unlock(&t->lock);
    return found;
}

static bool attach_file(void *context, const char *path, const char *dir, const char *name, struct err *err)
{
    struct attach *attach = context;
    struct table *t = attach->table;
    struct part *part = NULL;
    (void)dir;
    if (!part_open(t->env->fs, path, str_of(name), NULL, &part, err))
        return false;
    bool wanted = is_wanted(part, attach->choice) && !is_leftover(t, part), ok = true;
    if (wanted && strcmp(part->table_uuid, table_def(t)->uuid) != 0)
        ok = err_set(err, ERR_BAD_ARGUMENTS, "part %s belongs to another table", part->path);
    else if (wanted)
        ok = (!table_def(t)->settings.publish || delta_part_text_check(table_def(t), part, err)) &&
             attach_part(t, part, path, name, err);
    attach->attached += wanted && ok;
    part_unref(part);
    return ok;
}

bool table_attach(struct table *t, const struct part_choice *choice, struct err *err)
{
    struct attach attach = { .table = t, .choice = choice };
    if (!table_commit_begin(t, err))
        return false;
    bool ok = each_file(t, attach_file, &attach, err);
    if (ok && attach.attached == 0 && choice->one_part)
        ok = err_set(err, ERR_BAD_DATA_PART_NAME, "Detached part \"" STR_FMT "\" not found.", STR_ARG(choice->name));
    table_commit_end(t);
    return ok;
}

/* ---- system.detached_parts ---- */

struct detached {
    struct table *table;
    struct part **parts;
    size_t count;
};

static bool add_detached(void *context, const char *path, const char *dir, const char *name, struct err *err)
{
    struct detached *detached = context;
    struct part *part = NULL;
    (void)dir;
    if (!part_open(detached->table->env->fs, path, str_of(name), NULL, &part, err))
        return false;
    detached->parts = mem_realloc(detached->parts, (detached->count + 1) * sizeof(struct part *));
    detached->parts[detached->count++] = part;
    return true;
}

bool table_detached(struct table *t, struct part ***parts, size_t *count, struct err *err)
{
    struct detached detached = { .table = t };
    bool ok = each_file(t, add_detached, &detached, err);
    *parts = detached.parts;
    *count = detached.count;
    return ok;
}
