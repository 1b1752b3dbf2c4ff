/* table_insert.c: rows become parts.
 *
 *   members -> constraints met -> identities claimed -> rows sorted and given out to partitions -> one file each
 * (encoded outside any lock)
 *           -> all renamed -> all opened -> directories synced -> published: now visible, tokens known
 *
 * The files of one insert are one flush: their footers say which and how many, so that recovery takes all or none.
 * Before the directories are synced everything can be undone; when a sync fails nobody knows, and the table refuses
 * inserts until the files in question are certainly gone. */
#include <stdlib.h>

#include "base/crash_points.h"
#include "base/log.h"
#include "storage/delta_schema.h"
#include "storage/table_impl.h"

#define NO_PIECE SIZE_MAX

struct piece { /* what goes to one partition */
    struct partition_key *key;
    uint32_t *rows; /* in their final order */
    size_t rows_count;
    struct block made; /* of a Replacing or Summing table: what its rule leaves of the rows; else not used */
    bool is_made;
    struct synced_dir *dir;
    struct part_writer *writer;
    struct part *part;
    struct part_token *tokens;
    size_t tokens_count;
    struct ranges spooled;
};

static void piece_fini(struct piece *piece)
{
    free(piece->rows);
    free(piece->tokens);
    ranges_fini(&piece->spooled);
    if (piece->is_made)
        block_fini(&piece->made);
    part_writer_free(piece->writer);
    part_unref(piece->part);
}

struct flush {
    struct table *table;
    const struct table_def *def;
    const struct table_insert_options *options;
    struct block view; /* the stored columns of the caller's block, lent */
    struct table_member *members;
    size_t members_count;
    struct token_claim *claims; /* of members that have an identity */
    size_t *claim_members;
    size_t claims_count;
    bool claimed;
    uint32_t *partition_of;         /* of each row */
    struct hash128 *partitions_sum; /* of each member: of the ids of the partitions it goes to */
    struct partition_key *keys;
    size_t keys_count;
    struct piece *pieces;
    size_t pieces_count;
    struct hash128 flush_id;
    struct flight *flight;
    int64_t wall_ns;
};

/* ---- members ---- */

static const struct table_def *def_of(struct table *t, const struct schema *schema)
{
    const struct table_def *found = NULL;
    mutex_lock(&t->lock);
    if (t->def->schema == schema)
        found = t->def;
    for (size_t i = t->defs_old_count; i-- > 0 && found == NULL;)
        if (t->defs_old[i]->schema == schema)
            found = t->defs_old[i];
    mutex_unlock(&t->lock);
    return found;
}

/* Of the names of the partitions in any order; zero without a partition key. */
static struct hash128 partition_hash(const struct flush *f, size_t key)
{
    return f->def->partition == NULL ? (struct hash128){ 0, 0 } : hash128(str_of(f->keys[key].id));
}

/* A token counts among the inserts that go to the same partitions. Where the rows are not the same each time, nor are
 * the partitions: then the token stands alone. */
static struct hash128 token_identity(const struct flush *f, size_t index)
{
    const struct table_member *member = &f->members[index];
    struct hash128 partitions = member->differs ? (struct hash128){ 0, 0 } : f->partitions_sum[index];
    struct strbuf text = { 0 };
    strbuf_add_text(&text, f->def->uuid);
    strbuf_add_char(&text, 0);
    strbuf_add_bytes(&text, &partitions, sizeof partitions);
    strbuf_add(&text, member->token);
    struct hash128 identity = hash128(strbuf_view(&text));
    strbuf_fini(&text);
    return identity;
}

/* A token names the insert; without one its content does, where the caller says so. */
static bool member_identity(const struct flush *f, size_t index, struct token_claim *claim)
{
    const struct table_member *member = &f->members[index];
    *claim = (struct token_claim){ 0 };
    if (member->token.len > 0) {
        claim->identity = token_identity(f, index);
        claim->kind = DEDUP_TOKEN;
        return true;
    }
    claim->identity = member->content;
    claim->kind = DEDUP_CONTENT;
    return member->content_known;
}

static bool refuse_row(const struct flush *f, struct table_member *member, const struct table_constraint *constraint,
                       size_t row, enum row_verdict verdict)
{
    struct strbuf values = { 0 };
    struct str expr = constraint->text;
    if (verdict == ROW_GIVES_NULL) /* as the engine words it */
        return err_set(&member->err, ERR_VIOLATED_CONSTRAINT,
                       "Constraint `" STR_FMT "` for table %s is violated. Expression: (" STR_FMT
                       "). Constraint expression returns nullable column that contains null value",
                       STR_ARG(constraint->name), f->table->full_name, STR_ARG(expr));
    row_check_print_values(constraint->check, &f->view, row, &values);
    err_set(&member->err, ERR_VIOLATED_CONSTRAINT,
            "Constraint `" STR_FMT "` for table %s is violated at row %zu. Expression: (" STR_FMT
            "). Column values: " STR_FMT,
            STR_ARG(constraint->name), f->table->full_name, row - member->row_first + 1, STR_ARG(expr),
            STR_ARG(strbuf_view(&values)));
    strbuf_fini(&values);
    return false;
}

static bool meets(const struct flush *f, struct table_member *member, const struct table_constraint *constraint,
                  int64_t wall_ns)
{
    size_t row = member->row_first;
    enum row_verdict verdict;
    if (constraint->is_assumed)
        return true;
    if (!row_check_test(constraint->check, &f->view, &row, row + member->rows, wall_ns, f->table->env->rng, &verdict,
                        &member->err))
        return err_wrap(&member->err, "constraint " STR_FMT, STR_ARG(constraint->name));
    return verdict == ROW_MEETS || refuse_row(f, member, constraint, row, verdict);
}

/* A member with a row that violates a constraint fails alone. */
static void check_constraints(struct flush *f)
{
    if (f->def->constraints_count == 0)
        return;
    int64_t wall_ns = clock_wall_ns(f->table->env->clock);
    for (size_t i = 0; i < f->members_count; i++)
        for (size_t c = 0; c < f->def->constraints_count && !f->members[i].failed; c++)
            f->members[i].failed = !meets(f, &f->members[i], &f->def->constraints[c], wall_ns);
}

static uint64_t partitions_max(const struct flush *f)
{
    if (f->options->any_partitions)
        return 0;
    return f->options->partitions_given ? f->options->partitions_max : f->def->settings.max_partitions_per_insert_block;
}

/* Where each member goes. One that goes to too many partitions fails alone. */
static void look_at_partitions(struct flush *f)
{
    uint64_t limit = partitions_max(f);
    size_t *seen = mem_zalloc(f->keys_count * sizeof *seen);
    f->partitions_sum = mem_zalloc(f->members_count * sizeof *f->partitions_sum);
    for (size_t i = 0; i < f->members_count; i++) {
        struct table_member *member = &f->members[i];
        uint64_t count = 0;
        for (size_t row = member->row_first; row < member->row_first + member->rows; row++) {
            size_t key = f->partition_of[row];
            if (seen[key] == i + 1)
                continue;
            seen[key] = i + 1;
            count++;
            f->partitions_sum[i] = hash128_add(f->partitions_sum[i], partition_hash(f, key));
        }
        if (limit > 0 && count > limit && !member->failed)
            member->failed = !err_set(&member->err, ERR_TOO_MANY_PARTS,
                                      "Too many partitions for single INSERT block (more than %llu). The limit is "
                                      "controlled by 'max_partitions_per_insert_block' setting",
                                      (unsigned long long)limit);
    }
    free(seen);
}

static void claim_identities(struct flush *f)
{
    const struct table_settings *s = &f->def->settings;
    if (s->non_replicated_deduplication_window == 0 || s->non_replicated_deduplication_window_seconds == 0)
        return;
    f->claims = mem_alloc(f->members_count * sizeof *f->claims);
    f->claim_members = mem_alloc(f->members_count * sizeof *f->claim_members);
    for (size_t i = 0; i < f->members_count; i++) {
        struct table_member *member = &f->members[i];
        struct token_claim claim;
        if (member->rows == 0 || !member_identity(f, i, &claim))
            continue;
        if (member->failed) { /* a retry of what was stored is a success all the same */
            if (tokens_known(f->table->tokens, claim.identity, claim.kind)) {
                member->failed = false;
                member->duplicate = true;
            }
            continue;
        }
        f->claims[f->claims_count] = claim;
        f->claim_members[f->claims_count++] = i;
    }
    tokens_claim(f->table->tokens, f->claims, f->claims_count);
    f->claimed = true;
    for (size_t i = 0; i < f->claims_count; i++)
        f->members[f->claim_members[i]].duplicate = f->claims[i].known;
}

/* ---- rows to partitions ---- */

static bool view_block(struct flush *f, const struct block *block, struct err *err)
{
    const struct schema *stored = f->def->stored;
    if (block->columns_count != f->def->schema->columns_count || block->rows > UINT32_MAX)
        return err_set(err, ERR_LOGICAL_ERROR, "insert into %s: the block is not one of its schema",
                       f->table->full_name);
    block_init(&f->view, stored->columns_count);
    f->view.rows = block->rows;
    for (size_t i = 0; i < stored->columns_count; i++) {
        f->view.columns[i] = block->columns[f->def->stored_columns[i]];
        f->view.names[i] = stored->columns[i].name;
        if (f->view.columns[i].rows != block->rows)
            return err_set(err, ERR_LOGICAL_ERROR, "insert into %s: column " STR_FMT " has %zu rows of %zu",
                           f->table->full_name, STR_ARG(f->view.names[i]), f->view.columns[i].rows, block->rows);
    }
    for (size_t i = 0; i < f->members_count; i++) {
        struct table_member *member = &f->members[i];
        if (member->row_first > block->rows || member->rows > block->rows - member->row_first)
            return err_set(err, ERR_LOGICAL_ERROR, "insert into %s: a member's rows are not in the block",
                           f->table->full_name);
        member->duplicate = member->failed = false;
        member->rows_written = 0;
    }
    return true;
}

static void drop_view(struct flush *f)
{
    for (size_t i = 0; i < f->view.columns_count; i++)
        f->view.columns[i] = (struct column){ 0 }; /* the caller's */
    block_fini(&f->view);
}

static uint8_t *kept_rows(const struct flush *f)
{
    uint8_t *kept = mem_zalloc(f->view.rows);
    for (size_t i = 0; i < f->members_count; i++)
        if (!f->members[i].failed && !f->members[i].duplicate && f->members[i].rows > 0)
            memset(kept + f->members[i].row_first, 1, f->members[i].rows);
    return kept;
}

static uint64_t blocks_for(uint64_t size, uint64_t of_block)
{
    return size == 0 ? UINT64_MAX : (size - 1) / MAX(of_block, UINT64_C(1)) + 1;
}

/* Rows, in the order they came in, that make one part of a partition: a block, or as many as are joined into one. */
static uint64_t rows_of_part(const struct flush *f)
{
    const struct table_insert_options *options = f->options;
    uint64_t rows = options->block_rows;
    if (rows == 0 || rows >= f->view.rows)
        return MAX(f->view.rows, UINT64_C(1));
    uint64_t bytes = block_bytes(&f->view) / f->view.rows * rows;
    uint64_t blocks = MIN(blocks_for(options->join_rows, rows), blocks_for(options->join_bytes, bytes));
    return rows * (blocks == UINT64_MAX ? 1 : MIN(blocks, f->view.rows / rows + 1));
}

/* One sort of the block, then its rows are given out in that order. */
static void make_pieces(struct flush *f)
{
    uint64_t part_rows = rows_of_part(f);
    size_t parts = (size_t)((f->view.rows + part_rows - 1) / part_rows), slots = f->keys_count * parts;
    size_t *counts = mem_zalloc(slots * sizeof *counts), *piece_of = mem_zalloc(slots * sizeof *counts);
    uint32_t *order = mem_alloc(f->view.rows * sizeof *order);
    uint8_t *kept = kept_rows(f);
    block_sort(&f->view, f->def->order_stored, f->def->order_columns_count, order);
    for (size_t row = 0; row < f->view.rows; row++)
        counts[f->partition_of[row] * parts + row / part_rows] += kept[row];
    f->pieces = mem_zalloc(slots * sizeof *f->pieces);
    for (size_t slot = 0; slot < slots; slot++) {
        if (counts[slot] == 0)
            continue;
        piece_of[slot] = f->pieces_count;
        struct piece *piece = &f->pieces[f->pieces_count++];
        piece->key = &f->keys[slot / parts];
        piece->rows = mem_alloc(counts[slot] * sizeof *piece->rows);
    }
    for (size_t i = 0; i < f->view.rows; i++) {
        uint32_t row = order[i];
        if (!kept[row])
            continue;
        struct piece *piece = &f->pieces[piece_of[f->partition_of[row] * parts + row / part_rows]];
        piece->rows[piece->rows_count++] = row;
    }
    free(counts);
    free(piece_of);
    free(order);
    free(kept);
}

static void give_token(struct piece *piece, const struct token_claim *claim, int64_t wall_ns)
{
    piece->tokens = mem_realloc(piece->tokens, (piece->tokens_count + 1) * sizeof *piece->tokens);
    piece->tokens[piece->tokens_count++] =
        (struct part_token){ .identity = claim->identity, .wall_ns = wall_ns, .kind = claim->kind };
}

/* Each part's footer remembers the identities of the members that have rows in it, and their places in the spool. */
static void give_identities(struct flush *f)
{
    size_t *piece_of = mem_alloc(f->keys_count * sizeof *piece_of);
    size_t *seen = mem_zalloc(f->keys_count * sizeof *seen);
    size_t c = 0;
    for (size_t i = 0; i < f->keys_count; i++)
        piece_of[i] = NO_PIECE;
    for (size_t i = 0; i < f->pieces_count; i++)
        piece_of[f->pieces[i].key - f->keys] = i;
    for (size_t i = 0; i < f->members_count; i++) {
        const struct table_member *member = &f->members[i];
        while (c < f->claims_count && f->claim_members[c] < i)
            c++;
        bool claims = c < f->claims_count && f->claim_members[c] == i;
        size_t rows = member->failed || member->duplicate ? 0 : member->rows;
        for (size_t row = member->row_first; row < member->row_first + rows; row++) {
            size_t key = f->partition_of[row];
            if (seen[key] == i + 1 || piece_of[key] == NO_PIECE)
                continue;
            seen[key] = i + 1;
            struct piece *piece = &f->pieces[piece_of[key]];
            if (claims)
                give_token(piece, &f->claims[c], f->wall_ns);
            if (member->spool_sequence != 0)
                ranges_add(&piece->spooled, member->spool_sequence, member->spool_sequence);
        }
    }
    free(piece_of);
    free(seen);
}

/* ---- writing ---- */

static void make_meta(const struct flush *f, size_t index, const struct part_name *name, struct part_meta *meta)
{
    const struct piece *piece = &f->pieces[index];
    *meta = (struct part_meta){ .name = *name,
                                .created_wall_ns = f->wall_ns,
                                .newest_wall_ns = f->wall_ns,
                                .schema_version = f->def->schema->version,
                                .flush_id = f->flush_id,
                                .flush_index = (unsigned)index,
                                .flush_count = (unsigned)f->pieces_count,
                                .tokens_count = piece->tokens_count,
                                .spool_id = __atomic_load_n(&f->table->env->spool_id, __ATOMIC_RELAXED) };
    memcpy(meta->table_uuid, f->def->uuid, sizeof meta->table_uuid);
    must(partition_key_copy(&meta->partition, piece->key));
    meta->tokens = mem_alloc(piece->tokens_count * sizeof *meta->tokens);
    if (piece->tokens_count > 0)
        memcpy(meta->tokens, piece->tokens, piece->tokens_count * sizeof *meta->tokens);
    ranges_join(&meta->spooled, &piece->spooled);
}

static bool write_once(struct flush *f, size_t index, const struct block *block, struct err *err)
{
    struct piece *piece = &f->pieces[index];
    struct table_env *env = f->table->env;
    uint64_t number = f->flight->first + index;
    struct part_name name = { .first = number, .last = number, .random = rng_next(env->rng) };
    struct parquet_options options = { .profile = f->def->settings.profile,
                                       .codec = f->def->settings.codec,
                                       .text_is_bytes = delta_text_is_binary(&f->def->settings),
                                       .sort_columns = f->def->order_stored,
                                       .sort_columns_count = f->def->order_columns_count,
                                       .blooms = f->def->blooms,
                                       .blooms_count = f->def->blooms_count };
    struct part_meta meta;
    struct part_writer *writer = NULL;
    if (!part_writer_open(env->fs, piece->dir->path, &name, f->def->stored, &options, &writer, err))
        return false;
    make_meta(f, index, &name, &meta);
    bool ok = part_writer_add(writer, block, err) && part_writer_finish(writer, &meta, err);
    part_meta_fini(&meta);
    if (ok)
        piece->writer = writer;
    else
        part_writer_free(writer);
    return ok;
}

static void init_like(struct block *block, const struct block *like)
{
    block_init(block, like->columns_count);
    for (size_t i = 0; i < like->columns_count; i++) {
        column_init(&block->columns[i], like->columns[i].type);
        block->names[i] = like->names[i];
    }
}

/* A piece of which the engine's rule leaves nothing is no part: a retry comes to nothing again. */
static void collapse_pieces(struct flush *f)
{
    size_t kept = 0;
    for (size_t i = 0; i < f->pieces_count; i++) {
        struct piece *piece = &f->pieces[i];
        struct block rows;
        struct collapse *collapse = collapse_new(&f->def->rule, &f->view);
        init_like(&rows, &f->view);
        init_like(&piece->made, &f->view);
        block_gather(&rows, &f->view, piece->rows, piece->rows_count);
        collapse_add(collapse, &rows, &piece->made);
        collapse_end(collapse, &piece->made);
        piece->is_made = true;
        collapse_free(collapse);
        block_fini(&rows);
        if (piece->made.rows > 0)
            f->pieces[kept++] = *piece;
        else
            piece_fini(piece);
    }
    f->pieces_count = kept;
}

static bool is_identity(const struct flush *f, const struct piece *piece)
{
    if (piece->rows_count != f->view.rows)
        return false;
    for (size_t i = 0; i < piece->rows_count; i++)
        if (piece->rows[i] != i)
            return false;
    return true;
}

/* A file that could not be synced is lost; it is written once more under another name. */
static bool write_piece(struct flush *f, size_t index, struct err *err)
{
    struct piece *piece = &f->pieces[index];
    const struct block *block = &f->view;
    struct block gathered;
    bool as_it_is = piece->is_made || is_identity(f, piece);
    if (!table_dir(f->table, piece->key->dir, &piece->dir, err))
        return false;
    if (piece->is_made)
        block = &piece->made;
    if (!as_it_is) {
        init_like(&gathered, &f->view);
        block_gather(&gathered, &f->view, piece->rows, piece->rows_count);
        block = &gathered;
    }
    bool ok = write_once(f, index, block, err);
    if (!ok && err_verdict(err->code) == ERR_RETRY && err->code != ERR_NOT_ENOUGH_SPACE) {
        log_warn("part is written anew: table=%s error=%s", f->table->full_name, err->text);
        ok = write_once(f, index, block, err);
    }
    if (!as_it_is)
        block_fini(&gathered);
    return ok;
}

/* ---- committing ---- */

/* Takes back files that are renamed but not synced. False when that cannot be known to have worked. */
static bool undo(struct flush *f, size_t renamed)
{
    struct err err = { 0 };
    struct fs *fs = f->table->env->fs;
    bool ok = true;
    for (size_t i = 0; i < MIN(renamed + 1, f->pieces_count); i++) /* a rename that failed may have happened */
        ok = fs_remove(fs, part_writer_path(f->pieces[i].writer), &err) && ok;
    for (size_t i = 0; i < MIN(renamed + 1, f->pieces_count) && ok; i++)
        ok = table_sync_dir(f->table, f->pieces[i].dir, &err);
    if (!ok)
        log_error("commit cannot be taken back: table=%s error=%s", f->table->full_name, err.text);
    return ok;
}

/* The outcome is open: the numbers stay in flight, and the files have to go before anything else is taken. */
static bool leave_in_doubt(struct flush *f, size_t renamed, struct err *err)
{
    unsigned *doubts = NEW(unsigned);
    for (size_t i = 0; i < MIN(renamed + 1, f->pieces_count); i++)
        table_add_doubt(f->table, part_writer_path(f->pieces[i].writer), f->flight, doubts);
    f->flight = NULL;
    char why[sizeof err->text];
    memcpy(why, err->text, sizeof why);
    return err_set(err, ERR_UNKNOWN_EXCEPTION, "it is not known whether the rows were stored: %s", why);
}

static bool commit_files(struct flush *f, struct err *err)
{
    size_t renamed = 0;
    bool ok = true;
    for (size_t i = 0; i < f->pieces_count && ok; i++) {
        ok = part_writer_rename(f->pieces[i].writer, err);
        renamed += ok;
    }
    for (size_t i = 0; i < f->pieces_count && ok; i++)
        ok = part_writer_part(f->pieces[i].writer, &f->pieces[i].part, err);
    if (!ok)
        return undo(f, renamed) ? false : leave_in_doubt(f, renamed, err);
    for (size_t i = 0; i < f->pieces_count && ok; i++)
        ok = table_sync_dir(f->table, f->pieces[i].dir, err);
    if (!ok)
        return leave_in_doubt(f, renamed, err);
    CRASH_POINT("part.committed");
    return true;
}

static void publish(struct flush *f)
{
    struct table *t = f->table;
    struct part **parts = mem_alloc(f->pieces_count * sizeof *parts);
    for (size_t i = 0; i < f->pieces_count; i++)
        parts[i] = f->pieces[i].part;
    for (size_t i = 0; i < f->pieces_count; i++) {
        struct part_log_row row = { .event = PART_EVENT_NEW, .wall_ns = f->wall_ns };
        part_log_add(t->env->part_log, f->def, parts[i], row);
    }
    if (f->pieces_count > 1)
        table_note_flush(t, f->flush_id);
    table_publish(t, parts, f->pieces_count, NULL, 0, 0);
    table_end_flight(t, f->flight);
    f->flight = NULL;
    free(parts);
    uint64_t *partitions = mem_alloc(f->claims_count * sizeof *partitions);
    for (size_t i = 0; i < f->claims_count; i++)
        partitions[i] = tokens_partition(f->keys[f->partition_of[f->members[f->claim_members[i]].row_first]].dir);
    tokens_commit(t->tokens, f->claims, partitions, f->claims_count, clock_mono_ns(t->env->clock), f->wall_ns);
    f->claimed = false;
    free(partitions);
    metric_series_add(metric_series1(METRIC_PARTS_WRITTEN, STR("flush")), f->pieces_count);
    if (t->env->wake.wake != NULL)
        t->env->wake.wake(t->env->wake.context);
}

static bool store_rows(struct flush *f, struct err *err)
{
    struct table *t = f->table;
    make_pieces(f);
    if (f->def->rule.kind != COLLAPSE_NOTHING && !f->options->keep_all_rows)
        collapse_pieces(f);
    if (f->pieces_count == 0)
        return true;
    f->wall_ns = clock_wall_ns(t->env->clock);
    f->flush_id = (struct hash128){ rng_next(t->env->rng), rng_next(t->env->rng) };
    give_identities(f);
    f->flight = table_take_blocks(t, f->pieces_count);
    for (size_t i = 0; i < f->pieces_count; i++)
        if (!write_piece(f, i, err))
            return false;
    if (!commit_files(f, err))
        return false;
    publish(f);
    return true;
}

/* ---- all of it ---- */

static bool is_usable(struct table *t, struct err *err)
{
    uint64_t now = clock_mono_ns(t->env->clock);
    mutex_lock(&t->write);
    bool broken = false;
    LIST_EACH (node, &t->dirs)
        broken = broken || LIST_ENTRY(node, struct synced_dir, node)->broken;
    bool probe = broken && now >= t->probe_at_mono_ns;
    if (probe)
        t->probe_at_mono_ns = now + NS_PER_S;
    mutex_unlock(&t->write);
    mutex_lock(&t->lock);
    bool doubts = !list_empty(&t->doubts);
    mutex_unlock(&t->lock);
    if (!broken && !doubts)
        return true;
    if (probe) {
        table_log_begin(t);
        bool settled = table_log_mend(t, err) && table_settle_doubts(t);
        table_log_end(t);
        if (settled)
            return true;
    }
    return err_set(err, ERR_TABLE_IS_READ_ONLY,
                   "table %s takes no inserts until its directory can be synced again (see the log)", t->full_name);
}

static void count_members(struct flush *f)
{
    for (size_t i = 0; i < f->members_count; i++) {
        struct table_member *member = &f->members[i];
        if (!member->duplicate && !member->failed)
            member->rows_written = member->rows;
    }
}

static void flush_fini(struct flush *f)
{
    for (size_t i = 0; i < f->pieces_count; i++)
        piece_fini(&f->pieces[i]);
    free(f->pieces);
    for (size_t i = 0; i < f->keys_count; i++)
        partition_key_fini(&f->keys[i]);
    free(f->keys);
    free(f->partition_of);
    free(f->partitions_sum);
    if (f->claimed)
        tokens_release(f->table->tokens, f->claims, f->claims_count);
    if (f->flight != NULL)
        table_end_flight(f->table, f->flight);
    free(f->claims);
    free(f->claim_members);
    drop_view(f);
}

bool table_insert(struct table *t, const struct schema *schema, struct block *block, struct table_member *members,
                  size_t members_count, const struct table_insert_options *options, struct err *err)
{
    struct flush f = {
        .table = t, .def = def_of(t, schema), .options = options, .members = members, .members_count = members_count
    };
    uint64_t delay_ns = 0;
    if (f.def == NULL)
        return err_set(err, ERR_LOGICAL_ERROR, "insert into %s with a schema that is not the table's", t->full_name);
    if (!table_commit_begin(t, err))
        return false;
    if (f.def->settings.publish != table_def(t)->settings.publish) { /* its text has to be looked at anew */
        table_commit_end(t);
        return err_set(err, ERR_TABLE_IS_BEING_RESTARTED, "publication of %s has just begun or ended", t->full_name);
    }
    bool ok = is_usable(t, err) && table_check_parts(t, options, &delay_ns, err) && view_block(&f, block, err);
    if (ok) {
        f.partition_of = mem_alloc(block->rows * sizeof *f.partition_of);
        ok = partition_split(f.def->partition, block, SIZE_MAX, f.partition_of, &f.keys, &f.keys_count, err);
    }
    if (ok) {
        check_constraints(&f);
        look_at_partitions(&f);
        claim_identities(&f);
        ok = options->check_only || store_rows(&f, err);
    }
    if (ok)
        count_members(&f);
    flush_fini(&f);
    table_commit_end(t);
    return ok || err_wrap(err, "insert into %s", t->full_name);
}
