/* crash_check.c: see crash.h. */
#include "cli/crash.h"

#include <stdio.h>

#include "base/hash.h"
#include "base/must.h"
#include "base/rng.h"

struct crash_plan crash_plan(uint64_t seed, uint32_t client, uint32_t sequence)
{
    struct rng_seeded rng;
    rng_seeded_init(&rng, seed * 1000003 + (uint64_t)client * 4294967296u + sequence);
    struct crash_plan plan = { .level = (enum crash_level)rng_below(&rng.rng, CRASH_LEVELS),
                               .pieces = 1 + (unsigned)rng_below(&rng.rng, CRASH_PIECES_MAX),
                               .poisoned = rng_below(&rng.rng, 25) == 0 };
    plan.retried = plan.poisoned || rng_below(&rng.rng, 8) != 0;
    return plan;
}

uint64_t crash_value(uint64_t seed, uint32_t client, uint32_t sequence, unsigned piece)
{
    const uint64_t numbers[] = { client, sequence, piece };
    return hash64_seed(str_make(numbers, sizeof(numbers)), seed);
}

void crash_token(uint32_t client, uint32_t sequence, char token[CRASH_TOKEN_BYTES])
{
    snprintf(token, CRASH_TOKEN_BYTES, "crash-%u-%u", client, sequence);
}

static struct crash_insert *find(struct crash_check *check, uint64_t client, uint64_t sequence)
{
    if (client >= check->clients_count || sequence >= check->clients[client].count)
        return NULL;
    return &check->clients[client].inserts[sequence];
}

static bool cut_numbers(struct str text, char separator, uint64_t *numbers, size_t count)
{
    struct str word;
    for (size_t i = 0; i < count; i++)
        if (!str_cut(&text, separator, &word) || !str_to_u64(word, &numbers[i]))
            return false;
    return text.len == 0;
}

void crash_check_row(struct crash_check *check, struct str row)
{
    uint64_t number[5]; /* client, sequence, piece, pieces, value */
    struct crash_insert *insert = NULL;
    check->counts.rows++;
    if (cut_numbers(row, '\t', number, ARRAY_COUNT(number)))
        insert = find(check, number[0], number[1]);
    if (insert != NULL) {
        uint32_t client = (uint32_t)number[0], sequence = (uint32_t)number[1];
        struct crash_plan plan = crash_plan(check->seed, client, sequence);
        if (number[2] < plan.pieces && number[3] == plan.pieces &&
            number[4] == crash_value(check->seed, client, sequence, (unsigned)number[2])) {
            uint8_t *found = &insert->found[number[2]];
            *found = (uint8_t)MIN(*found + 1, 255);
            return;
        }
    }
    check->counts.altered++;
}

void crash_check_letter(struct crash_check *check, struct str token)
{
    struct str prefix = STR("crash-");
    uint64_t number[2];
    check->counts.letters++;
    if (!str_starts(token, prefix) || !cut_numbers(str_from(token, prefix.len), '-', number, ARRAY_COUNT(number)))
        return; /* made up by the daemon for an insert that was sent once */
    struct crash_insert *insert = find(check, number[0], number[1]);
    if (insert != NULL)
        insert->in_letters = true;
}

/* An acknowledged insert that is nowhere. */
static void judge_missing(const struct crash_insert *insert, const struct crash_lives *lives,
                          struct crash_counts *counts)
{
    if (insert->level != CRASH_BUFFERED || insert->life + 1 >= lives->count) {
        counts->lost++;
        return;
    }
    uint64_t ended_ns = lives->ended_ns[insert->life];
    counts->buffered_lost++;
    if (ended_ns > insert->answered_ns)
        counts->buffered_age_ns = MAX(counts->buffered_age_ns, ended_ns - insert->answered_ns);
}

static void judge(const struct crash_plan *plan, const struct crash_insert *insert, const struct crash_lives *lives,
                  struct crash_counts *counts)
{
    unsigned there = 0;
    bool doubled = false;
    for (unsigned i = 0; i < plan->pieces; i++) {
        there += insert->found[i] > 0;
        doubled = doubled || insert->found[i] > 1;
    }
    counts->doubled += doubled;
    counts->partial += there > 0 && there < plan->pieces;
    counts->resurrected += there > 0 && (plan->poisoned || insert->answer == CRASH_REFUSED);
    if (insert->answer == CRASH_ACKNOWLEDGED) {
        counts->acknowledged[insert->level]++;
        if (there == 0 && !insert->in_letters)
            judge_missing(insert, lives, counts);
    } else {
        counts->refused += insert->answer == CRASH_REFUSED;
        counts->unknown += insert->answer == CRASH_UNKNOWN;
    }
}

void crash_check_judge(struct crash_check *check, const struct crash_lives *lives)
{
    for (uint32_t c = 0; c < check->clients_count; c++) {
        for (uint32_t s = 0; s < check->clients[c].count; s++) {
            struct crash_plan plan = crash_plan(check->seed, c, s);
            judge(&plan, &check->clients[c].inserts[s], lives, &check->counts);
        }
    }
}
