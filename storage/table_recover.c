/* table_recover.c: what a table holds, found out from its files alone.
 *
 *   1  read tokens.log: identities, complete flushes, cuts
 *   2  list the partitions; `_tmp_` goes, every *.parquet is opened, what does not open is damaged; footers of what a
 *      wider part will cover are not kept: there can be many
 *   3  cut parts are no more; wider parts cover narrower ones; a flush that is not all there is no more
 *   4  write tokens.log anew: with it every removal that follows can be repeated
 *   5  set damaged files aside, remove what is no more and what a DETACH or ATTACH left, sync every directory
 *
 * Nothing is removed before step 4 is on disk, and each step gives the same result when it is run again, so a crash
 * anywhere in here is harmless. A disk without room for step 4 puts it off, and the removals with it, to the cleaning.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/crash_points.h"
#include "base/log.h"
#include "base/map.h"
#include "storage/table_impl.h"

enum fate { FATE_ACTIVE, FATE_COVERED, FATE_CUT, FATE_INCOMPLETE };

struct found {
    struct part *part;
    enum fate fate;
};
struct damaged {
    char *path, *label;
    struct part_name name; /* zero where it has none */
    char *partition_dir;
    struct err why;
};

struct recovery {
    struct table *table;
    struct found *parts; /* by partition directory, then widest first */
    size_t parts_count, parts_cap;
    struct part **wide; /* of one partition while it is read: those that no other covers by its name */
    size_t wide_count;
    struct damaged *damaged;
    size_t damaged_count;
    struct token_entry *tokens;
    size_t tokens_count, tokens_cap;
    struct tokens_log_record *cuts;
    size_t cuts_count;
    struct map flushes; /* identities of complete flushes: bytes -> itself */
    char **dirs;        /* partition directories */
    size_t dirs_count;
    bool has_log;
    uint64_t last_block;
};

/* ---- 1: the log ---- */

static void add_token(struct recovery *r, const struct token_entry *entry)
{
    if (r->tokens_count == r->tokens_cap) {
        r->tokens_cap = r->tokens_cap == 0 ? 64 : r->tokens_cap * 2;
        r->tokens = mem_realloc(r->tokens, r->tokens_cap * sizeof *r->tokens);
    }
    r->tokens[r->tokens_count++] = *entry;
}

static struct str flush_key(const struct hash128 *id)
{
    return str_make(id, sizeof *id);
}

static void note_complete(struct recovery *r, struct hash128 id)
{
    map_put(&r->flushes, flush_key(&id), r);
}

static void forget_tokens(struct recovery *r, uint64_t partition)
{
    size_t kept = 0;
    for (size_t i = 0; i < r->tokens_count; i++)
        if (partition != 0 && r->tokens[i].partition != partition)
            r->tokens[kept++] = r->tokens[i];
    r->tokens_count = kept;
}

static void add_cut(struct recovery *r, const struct tokens_log_record *record)
{
    r->cuts = mem_realloc(r->cuts, (r->cuts_count + 1) * sizeof *r->cuts);
    r->cuts[r->cuts_count++] = *record;
    r->last_block = MAX(r->last_block, record->block);
}

static void take_record(void *context, const struct tokens_log_record *record)
{
    struct recovery *r = context;
    struct token_entry entry = { .identity = record->identity,
                                 .kind = record->kind == TOKENS_LOG_TOKEN ? DEDUP_TOKEN : DEDUP_CONTENT,
                                 .wall_ns = record->wall_ns,
                                 .partition = record->partition };
    switch (record->kind) {
    case TOKENS_LOG_TOKEN:
    case TOKENS_LOG_CONTENT:
        add_token(r, &entry);
        break;
    case TOKENS_LOG_FLUSH:
        note_complete(r, record->identity);
        break;
    case TOKENS_LOG_CUT:
        forget_tokens(r, record->partition);
        add_cut(r, record);
        break;
    case TOKENS_LOG_GONE:
        add_cut(r, record);
        break;
    }
}

static bool read_log(struct recovery *r, struct err *err)
{
    struct table *t = r->table;
    struct strbuf path = table_path(t, "_sluice", "tokens.log"), bytes = { 0 };
    struct tokens_log_report report = { 0 };
    struct err why = { 0 };
    r->has_log = fs_read_file(t->env->fs, strbuf_cstr(&path), LOG_BYTES_MAX, &bytes, &why);
    bool ok = r->has_log || why.code == ERR_FILE_DOESNT_EXIST; /* only then it is known that there is none */
    if (r->has_log)
        tokens_log_read(strbuf_view(&bytes), take_record, r, &report);
    else if (!ok)
        *err = why;
    if (ok && (report.bad_header || report.damaged > 0)) {
        err_set(&why, ERR_CORRUPTED_DATA, "%zu records of it do not check", report.damaged);
        log_error("tokens.log is damaged, some retries may not be recognised: table=%s records_read=%zu damaged=%zu",
                  t->full_name, report.records, report.damaged);
        ok = !report.bad_header || table_set_aside(t->env, strbuf_cstr(&path), t->full_name, &why, err);
    }
    strbuf_fini(&path);
    strbuf_fini(&bytes);
    return ok;
}

/* ---- 2: the files ---- */

static bool is_damage(const struct err *err)
{
    return err->code == ERR_CORRUPTED_DATA || err->code == ERR_NOT_IMPLEMENTED ||
           err->code == ERR_CANNOT_READ_FROM_FILE_DESCRIPTOR;
}

static void add_damaged(struct recovery *r, const char *path, const char *dir, const struct part_name *name,
                        const struct err *why)
{
    r->damaged = mem_realloc(r->damaged, (r->damaged_count + 1) * sizeof *r->damaged);
    struct damaged *d = &r->damaged[r->damaged_count++];
    struct strbuf label = { 0 };
    strbuf_addf(&label, "%s partition %s", r->table->full_name, dir);
    *d = (struct damaged){
        .path = mem_strdup(path), .label = strbuf_take(&label), .partition_dir = mem_strdup(dir), .why = *why
    };
    if (name != NULL)
        d->name = *name;
}

/* In a partition the widest come first. */
static void keep_if_wide(struct recovery *r, struct part *part)
{
    for (size_t i = 0; i < r->wide_count; i++)
        if (part->name.first >= r->wide[i]->name.first && part->name.last <= r->wide[i]->name.last) {
            part_forget_file(part);
            return;
        }
    r->wide[r->wide_count++] = part;
}

static bool take_file(struct recovery *r, const char *dir_path, const char *dir, const char *name, struct err *err)
{
    struct table *t = r->table;
    struct part_name parsed;
    struct part *part = NULL;
    struct err why = { 0 };
    char path[PATH_BYTES];
    if (!path_join(path, dir_path, "", name, err))
        return false;
    if (!part_name_parse(str_of(name), &parsed)) {
        log_warn("file that is no part is passed over: path=%s", path);
        return true;
    }
    r->last_block = MAX(r->last_block, parsed.last);
    bool ok = part_open(t->env->fs, dir_path, str_of(name), NULL, &part, &why);
    if (ok && strcmp(part->table_uuid, t->def->uuid) != 0) {
        part_unref(part);
        ok = err_set(&why, ERR_CORRUPTED_DATA, "part %s belongs to another table", path);
    }
    if (!ok) {
        if (!is_damage(&why)) {
            *err = why;
            return false;
        }
        add_damaged(r, path, dir, &parsed, &why);
        return true;
    }
    if (r->parts_count == r->parts_cap) {
        r->parts_cap = r->parts_cap == 0 ? 64 : r->parts_cap * 2;
        r->parts = mem_realloc(r->parts, r->parts_cap * sizeof *r->parts);
    }
    r->parts[r->parts_count++] = (struct found){ part, FATE_ACTIVE };
    keep_if_wide(r, part);
    return true;
}

static uint64_t width_of(const char *name)
{
    struct part_name parsed;
    return part_name_parse(str_of(name), &parsed) ? parsed.last - parsed.first : 0;
}

static int compare_widths(const void *a, const void *b)
{
    uint64_t x = width_of(*(char *const *)a), y = width_of(*(char *const *)b);
    return x == y ? 0 : x > y ? -1 : 1;
}

static bool list_partition(struct recovery *r, const char *dir, struct err *err)
{
    struct fs *fs = r->table->env->fs;
    struct strbuf path = table_path(r->table, dir, "");
    struct fs_names names = { 0 };
    bool ok = fs_list(fs, strbuf_cstr(&path), &names, err);
    if (names.count > 1)
        qsort(names.names, names.count, sizeof names.names[0], compare_widths);
    r->wide = mem_alloc(names.count * sizeof *r->wide);
    r->wide_count = 0;
    for (size_t i = 0; i < names.count && ok; i++) {
        struct str name = str_of(names.names[i]);
        char file[PATH_BYTES];
        if (str_starts(name, STR("_tmp_")))
            ok = path_join(file, strbuf_cstr(&path), "", names.names[i], err) && fs_unlink(fs, file, err);
        else if (str_ends(name, STR(".parquet")))
            ok = take_file(r, strbuf_cstr(&path), dir, names.names[i], err);
    }
    free(r->wide);
    fs_names_fini(&names);
    strbuf_fini(&path);
    return ok;
}

/* What a rewrite of table.sql or tokens.log left behind. */
static bool clear_own_dir(struct table *t, struct err *err)
{
    struct fs *fs = t->env->fs;
    struct strbuf path = table_path(t, "_sluice", "");
    struct fs_names names = { 0 };
    bool ok = fs_list(fs, strbuf_cstr(&path), &names, err);
    for (size_t i = 0; i < names.count && ok; i++) {
        char file[PATH_BYTES];
        if (str_starts(str_of(names.names[i]), STR("_tmp_")))
            ok = path_join(file, strbuf_cstr(&path), "", names.names[i], err) && fs_unlink(fs, file, err);
    }
    fs_names_fini(&names);
    strbuf_fini(&path);
    return ok;
}

static bool list_table(struct recovery *r, struct err *err)
{
    struct table *t = r->table;
    struct fs_names names = { 0 };
    bool ok = clear_own_dir(t, err) && fs_list(t->env->fs, t->dir, &names, err);
    r->dirs = mem_zalloc(names.count * sizeof *r->dirs);
    for (size_t i = 0; i < names.count && ok; i++) {
        const char *name = names.names[i];
        struct fs_stat stat;
        char path[PATH_BYTES];
        if (name[0] == '_' && !str_starts(str_of(name), STR("__HIVE")) && !str_starts(str_of(name), STR("_tmp_")))
            continue; /* _sluice, _delta_log */
        ok = path_join(path, t->dir, "", name, err) && fs_get_stat(t->env->fs, path, &stat, err);
        if (!ok)
            break;
        if (str_starts(str_of(name), STR("_tmp_"))) {
            ok = stat.type == FS_DIR ? fs_remove_tree(t->env->fs, path, err) : fs_unlink(t->env->fs, path, err);
        } else if (stat.type == FS_DIR) {
            r->dirs[r->dirs_count++] = mem_strdup(name);
            ok = list_partition(r, name, err);
        }
    }
    fs_names_fini(&names);
    return ok;
}

/* ---- 3: what each part is ---- */

static int compare_found(const void *a, const void *b)
{
    const struct part *x = ((const struct found *)a)->part, *y = ((const struct found *)b)->part;
    int order = strcmp(x->partition.dir, y->partition.dir);
    uint64_t wide_x = x->name.last - x->name.first, wide_y = y->name.last - y->name.first;
    if (order != 0)
        return order;
    if (wide_x != wide_y)
        return wide_x > wide_y ? -1 : 1;
    if (x->name.level != y->name.level)
        return x->name.level > y->name.level ? -1 : 1;
    if (x->name.first != y->name.first)
        return x->name.first < y->name.first ? -1 : 1;
    return x->name.random < y->name.random ? -1 : x->name.random > y->name.random;
}

static bool is_cut(const struct part *part, const struct tokens_log_record *cut)
{
    uint64_t first = cut->kind == TOKENS_LOG_GONE ? cut->identity.lo : 0;
    return (cut->partition == 0 || cut->partition == tokens_partition(part->partition.dir)) &&
           part->name.first >= first && part->name.last <= cut->block;
}

static void mark_cuts(struct recovery *r)
{
    for (size_t i = 0; i < r->parts_count; i++)
        for (size_t c = 0; c < r->cuts_count; c++)
            if (is_cut(r->parts[i].part, &r->cuts[c]))
                r->parts[i].fate = FATE_CUT;
}

/* A part with sources still there has its every byte checked before they may go. */
static bool covers_anything(struct recovery *r, size_t at)
{
    const struct part *wide = r->parts[at].part;
    for (size_t i = at + 1; i < r->parts_count; i++) {
        const struct found *other = &r->parts[i];
        if (strcmp(other->part->partition.dir, wide->partition.dir) != 0)
            return false;
        if (other->fate == FATE_ACTIVE && other->part->name.first >= wide->name.first &&
            other->part->name.last <= wide->name.last)
            return true;
    }
    return false;
}

static void cover(struct recovery *r, size_t at)
{
    const struct part *wide = r->parts[at].part;
    for (size_t i = at + 1; i < r->parts_count; i++) {
        struct found *other = &r->parts[i];
        const struct part *part = other->part;
        if (strcmp(part->partition.dir, wide->partition.dir) != 0)
            return;
        if (other->fate != FATE_ACTIVE || part->name.last < wide->name.first || part->name.first > wide->name.last)
            continue;
        if (part->name.first >= wide->name.first && part->name.last <= wide->name.last) {
            other->fate = FATE_COVERED;
            if (part->flush_count > 1)
                note_complete(r, part->flush_id); /* only complete flushes are merged */
        } else {
            log_error("parts overlap, rows may be double: path=%s other=%s", wide->path, part->path);
        }
    }
}

static void remove_found(struct recovery *r, size_t at)
{
    part_unref(r->parts[at].part);
    memmove(&r->parts[at], &r->parts[at + 1], (r->parts_count - at - 1) * sizeof *r->parts);
    r->parts_count--;
}

/* Each part that is still active when its turn comes, the widest first, stays so; without a footer, because its cover
 * turned out to be damaged, it gets it again. */
static bool mark_covered(struct recovery *r, struct err *err)
{
    if (r->parts_count > 1)
        qsort(r->parts, r->parts_count, sizeof *r->parts, compare_found);
    for (size_t i = 0; i < r->parts_count; i++) {
        struct part *part = r->parts[i].part;
        struct err why = { 0 };
        if (r->parts[i].fate != FATE_ACTIVE)
            continue;
        bool opened = part->file != NULL || part_remember_file(part, &why);
        if (!opened && !is_damage(&why)) {
            *err = why;
            return false;
        }
        if (opened && !covers_anything(r, i))
            continue;
        if (opened && parquet_verify(part->file, &why)) {
            cover(r, i);
            continue;
        }
        add_damaged(r, part->path, part->partition.dir, &part->name, &why);
        remove_found(r, i);
        i--;
    }
    return true;
}

struct flush_count {
    unsigned count, present;
    struct hash128 id;
    uint64_t first;
};

static void count_flushes(struct recovery *r, struct map *counts)
{
    for (size_t i = 0; i < r->parts_count; i++) {
        const struct part *part = r->parts[i].part;
        if (part->flush_count <= 1)
            continue;
        struct flush_count *flush = map_get(counts, flush_key(&part->flush_id));
        if (flush == NULL) {
            flush = NEW(struct flush_count);
            flush->count = part->flush_count;
            flush->id = part->flush_id;
            flush->first = part->name.first - part->flush_index;
            map_put(counts, flush_key(&part->flush_id), flush);
        }
        flush->present++;
    }
}

/* A damaged file whose number is one of the flush's was there, and damage is no reason to take its siblings away. */
static void count_damaged(struct recovery *r, struct map *counts)
{
    size_t at = 0;
    struct str key;
    void *value;
    while (map_next(counts, &at, &key, &value)) {
        struct flush_count *flush = value;
        for (size_t i = 0; i < r->damaged_count; i++)
            if (r->damaged[i].name.level == 0 && r->damaged[i].name.first >= flush->first &&
                r->damaged[i].name.first < flush->first + flush->count)
                flush->present++;
        if (flush->present >= flush->count)
            note_complete(r, flush->id);
        free(flush);
    }
}

static void mark_incomplete(struct recovery *r)
{
    struct map counts = { 0 };
    count_flushes(r, &counts);
    count_damaged(r, &counts);
    map_fini(&counts);
    for (size_t i = 0; i < r->parts_count; i++) {
        struct found *found = &r->parts[i];
        if (found->fate == FATE_ACTIVE && found->part->flush_count > 1 &&
            map_get(&r->flushes, flush_key(&found->part->flush_id)) == NULL)
            found->fate = FATE_INCOMPLETE;
    }
}

/* ---- 4: what is kept in memory, and the log ---- */

/* What was cut may still be named in the Delta log, which nobody has read yet. */
static bool stays_cut(const struct table *t, enum fate fate)
{
    return fate == FATE_CUT && t->def->settings.publish;
}

static void adopt_parts(struct recovery *r)
{
    struct table *t = r->table;
    struct part **active = mem_alloc(r->parts_count * sizeof *active);
    size_t count = 0;
    uint64_t now = clock_mono_ns(t->env->clock) + 2;
    t->old = mem_alloc(r->parts_count * sizeof *t->old);
    t->old_cap = r->parts_count;
    for (size_t i = 0; i < r->parts_count; i++) {
        struct part *part = r->parts[i].part;
        enum fate fate = r->parts[i].fate;
        if (fate == FATE_ACTIVE)
            active[count++] = part_ref(part);
        if (fate == FATE_COVERED || stays_cut(t, fate)) {
            part->removed_mono_ns = fate == FATE_CUT ? TABLE_PARTS_CUT_NS : now;
            part->removed_wall_ns = clock_wall_ns(t->env->clock);
            t->old[t->old_count++] = part_ref(part);
        }
        for (size_t k = 0; k < part->tokens_count && (fate == FATE_ACTIVE || fate == FATE_COVERED); k++) {
            struct token_entry entry = { .identity = part->tokens[k].identity,
                                         .kind = part->tokens[k].kind,
                                         .wall_ns = part->tokens[k].wall_ns,
                                         .partition = tokens_partition(part->partition.dir) };
            add_token(r, &entry);
        }
    }
    part_set_unref(t->current);
    t->current = part_set_new(active, count);
    free(active);
    tokens_load(t->tokens, r->tokens, r->tokens_count, clock_mono_ns(t->env->clock), clock_wall_ns(t->env->clock));
}

static bool write_log(struct recovery *r, struct err *err)
{
    struct table *t = r->table;
    struct strbuf none = { 0 };
    bool needed = r->has_log;
    t->cuts = r->cuts;
    t->cuts_count = r->cuts_count;
    r->cuts = NULL;
    for (size_t i = 0; i < r->parts_count; i++)
        needed = needed || r->parts[i].fate != FATE_ACTIVE || r->parts[i].part->flush_count > 1;
    return !needed || table_log_rewrite(t, &none, 0, err);
}

/* ---- 5: the disk ---- */

static bool is_dead(const struct table *t, const struct found *found)
{
    return (found->fate == FATE_CUT || found->fate == FATE_INCOMPLETE) && !stays_cut(t, found->fate);
}

/* No room for the log: the old one stays, and with it all that it hides; the cleaning writes and removes later. */
static void put_off_removal(struct recovery *r, const struct err *why)
{
    struct table *t = r->table;
    for (size_t i = 0; i < r->parts_count; i++)
        if (is_dead(t, &r->parts[i]))
            table_add_doubt(t, r->parts[i].part->path, NULL, NULL);
    log_warn("no room to write tokens.log anew, it is tried again: table=%s error=%s", t->full_name, why->text);
}

static bool set_damaged_aside(struct recovery *r, struct err *err)
{
    for (size_t i = 0; i < r->damaged_count; i++) {
        struct damaged *d = &r->damaged[i];
        if (!table_set_aside(r->table->env, d->path, d->label, &d->why, err))
            return false;
    }
    return true;
}

static bool remove_dead(struct recovery *r, struct err *err)
{
    if (!write_log(r, err)) {
        if (err->code != ERR_NOT_ENOUGH_SPACE)
            return false;
        put_off_removal(r, err);
        return true;
    }
    size_t incomplete = 0, cut = 0;
    for (size_t i = 0; i < r->parts_count; i++) {
        if (!is_dead(r->table, &r->parts[i]))
            continue;
        incomplete += r->parts[i].fate == FATE_INCOMPLETE;
        cut += r->parts[i].fate == FATE_CUT;
        if (!fs_unlink(r->table->env->fs, r->parts[i].part->path, err))
            return false;
        CRASH_POINT("recover.removed");
    }
    if (incomplete + cut > 0)
        log_info("parts removed at the start: table=%s incomplete_flushes=%zu cut=%zu", r->table->full_name, incomplete,
                 cut);
    return true;
}

static bool forget_detached(struct recovery *r, struct err *err)
{
    struct part **parts = mem_alloc(r->parts_count * sizeof *parts);
    size_t count = 0;
    for (size_t i = 0; i < r->parts_count; i++)
        if (r->parts[i].fate == FATE_ACTIVE || r->parts[i].fate == FATE_COVERED)
            parts[count++] = r->parts[i].part;
    bool ok = table_forget_detached(r->table, parts, count, err);
    free(parts);
    return ok;
}

/* Every directory is synced: what is seen now may be in the cache only, and is about to be relied on. One without any
 * part goes. */
static bool sync_dirs(struct recovery *r, struct err *err)
{
    struct table *t = r->table;
    for (size_t i = 0; i < r->dirs_count; i++) {
        struct strbuf path = table_path(t, r->dirs[i], "");
        struct fs_names names = { 0 };
        struct synced_dir *dir = NULL;
        bool ok = fs_list(t->env->fs, strbuf_cstr(&path), &names, err);
        bool empty = ok && names.count == 0;
        fs_names_fini(&names);
        if (empty)
            ok = fs_rmdir(t->env->fs, strbuf_cstr(&path), err);
        else if (ok)
            ok = table_dir(t, r->dirs[i], &dir, err) && table_sync_dir(t, dir, err);
        strbuf_fini(&path);
        if (!ok)
            return false;
    }
    return table_sync_dir(t, LIST_ENTRY(t->dirs.next, struct synced_dir, node), err);
}

static void recovery_fini(struct recovery *r)
{
    for (size_t i = 0; i < r->parts_count; i++)
        part_unref(r->parts[i].part);
    free(r->parts);
    for (size_t i = 0; i < r->damaged_count; i++) {
        free(r->damaged[i].path);
        free(r->damaged[i].label);
        free(r->damaged[i].partition_dir);
    }
    free(r->damaged);
    free(r->tokens);
    free(r->cuts);
    map_fini(&r->flushes);
    for (size_t i = 0; i < r->dirs_count; i++)
        free(r->dirs[i]);
    free(r->dirs);
}

bool table_recover(struct table *t, struct err *err)
{
    struct recovery r = { .table = t };
    bool ok = read_log(&r, err) && list_table(&r, err);
    if (ok) {
        mark_cuts(&r);
        ok = mark_covered(&r, err);
    }
    if (ok) {
        mark_incomplete(&r);
        adopt_parts(&r);
        t->block_next = r.last_block + 1;
        ok = remove_dead(&r, err) && set_damaged_aside(&r, err) && forget_detached(&r, err) && sync_dirs(&r, err);
    }
    if (ok && t->old_count == 0 && list_empty(&t->doubts))
        t->cuts_count = 0; /* their files are gone, durably */
    recovery_fini(&r);
    return ok || err_wrap(err, "recover table %s", t->full_name);
}

bool table_open(struct table_env *env, const char *dir, struct table_def *def, struct table **table, struct err *err)
{
    struct table *t = table_new(env, dir, def);
    if (!table_recover(t, err)) {
        table_unref(t);
        return false;
    }
    *table = t;
    return true;
}

/* The log has told why, too: without room for the note the file goes alone. */
static bool write_note(struct table_env *env, const char *name, const struct strbuf *note, struct err *err)
{
    if (fs_write_durably(env->fs, env->damaged_dir, name, strbuf_view(note), true, err))
        return true;
    if (err->code != ERR_NOT_ENOUGH_SPACE)
        return false;
    log_warn("no room for the note about a damaged file: file=%s error=%s", name, err->text);
    return true;
}

bool table_set_aside(struct table_env *env, const char *path, const char *label, const struct err *why, struct err *err)
{
    const char *slash = strrchr(path, '/');
    struct strbuf name = { 0 }, note = { 0 };
    char target[PATH_BYTES];
    strbuf_addf(&name, "%016llx_%s", (unsigned long long)rng_next(env->rng), slash == NULL ? path : slash + 1);
    bool ok = path_join(target, env->damaged_dir, "", strbuf_cstr(&name), err);
    strbuf_add_text(&name, ".txt");
    strbuf_addf(&note, "file: %s\nof: %s\nwhy: %s\n", path, label, why->text);
    ok = ok && write_note(env, strbuf_cstr(&name), &note, err) && fs_rename(env->fs, path, target, err) &&
         fs_sync_dir(env->fs, env->damaged_dir, err);
    strbuf_fini(&name);
    strbuf_fini(&note);
    if (!ok)
        return err_wrap(err, "set aside %s", path);
    __atomic_add_fetch(&env->damaged, 1, __ATOMIC_RELAXED);
    log_error("damaged file set aside: path=%s of=\"%s\" now=%s error=%s", path, label, target, why->text);
    return true;
}
