/* auto_replay.c: see auto_replay.h. */
#include "gateway/auto_replay.h"

#include "base/hash.h"
#include "base/log.h"
#include "config/config.h"
#include "dlq/dlq.h"
#include "gateway/gateway.h"
#include "gateway/replay.h"
#include "gateway/rules.h"

enum { PAGE = 256 };
static const uint64_t round_ns_max = 10 * NS_PER_S;

static bool passes(int code)
{
    return err_verdict((enum err_code)code) == ERR_RETRY;
}

bool auto_replay_wants(const struct letter *letter, const struct auto_replay_policy *policy, int64_t *due_wall_ns)
{
    if (!passes(letter->code) || letter->attempts >= policy->attempts_max)
        return false;
    int64_t tried_ns = letter->last_wall_ns - letter->first_wall_ns; /* below 0 where the clock was set back */
    uint64_t pause_ns = MAX(tried_ns > 0 ? (uint64_t)tried_ns : 0, policy->pause_ns_min);
    pause_ns = MIN(pause_ns, MAX(policy->pause_ns_max, policy->pause_ns_min));
    const uint64_t chance[] = { letter->id, letter->attempts };
    pause_ns += hash64(str_make(chance, sizeof(chance))) % (pause_ns / 2 + 1);
    *due_wall_ns = letter->last_wall_ns + (int64_t)pause_ns;
    return true;
}

/* Most of the time there is nothing: no list has to be read to know it. */
static bool any_passes(struct dlq *dlq)
{
    struct dlq_stats stats;
    dlq_get_stats(dlq, &stats);
    for (size_t i = 0; i < stats.causes.count; i++)
        if (stats.causes.entries[i].letters > 0 &&
            (stats.causes.entries[i].code == 0 || passes(stats.causes.entries[i].code)))
            return true;
    return false;
}

static void replay_ids(struct auto_replay *replay, const uint64_t *ids, size_t count)
{
    struct arena *arena = arena_new(4096);
    struct letter_choice choice = { ids, count };
    struct replay_verdicts verdicts = { 0 };
    struct err err = { 0 };
    size_t stored = 0;
    if (!replay_letters(replay->gateway, &choice, &replay->stopping, arena, &verdicts, &err))
        log_warn("dead letters are not replayed: code=%d reason=\"%s\"", (int)err.code, err.text);
    for (size_t i = 0; i < verdicts.count; i++)
        stored += str_is(str_of(verdicts.verdicts[i].verdict), "stored") ||
                  str_is(str_of(verdicts.verdicts[i].verdict), "duplicate");
    log_info("dead letters replayed by themselves: tried=%zu stored=%zu", verdicts.count, stored);
    arena_free(arena);
}

/* The due letters of the page after after_id, which moves on; at the end of the list it is 0 again. */
static bool find_due(struct auto_replay *replay, const struct auto_replay_policy *policy, uint64_t ids[PAGE],
                     size_t *due_count)
{
    struct gateway *gateway = replay->gateway;
    struct arena *arena = arena_new(65536);
    struct letter *letters = NULL;
    struct err err = { 0 };
    size_t count = 0;
    int64_t wall_ns = clock_wall_ns(gateway->clock), due_ns;
    bool ok = dlq_list(gateway->dlq, replay->after_id, PAGE, arena, &letters, &count, &err);
    if (!ok)
        log_warn("dead letters are not listed: code=%d reason=\"%s\"", (int)err.code, err.text);
    *due_count = 0;
    for (size_t i = 0; i < count; i++)
        if (auto_replay_wants(&letters[i], policy, &due_ns) && due_ns <= wall_ns)
            ids[(*due_count)++] = letters[i].id;
    replay->after_id = count == PAGE ? letters[count - 1].id : 0;
    arena_free(arena);
    return ok;
}

static struct auto_replay_policy policy_now(struct gateway *gateway)
{
    struct rules *rules = gateway_rules(gateway);
    const struct config *config = rules->config;
    struct auto_replay_policy policy = { .attempts_max = config->dlq_replay_attempts,
                                         .pause_ns_min = config->dlq_replay_min,
                                         .pause_ns_max = config->dlq_replay_max };
    rules_unref(rules);
    return policy;
}

uint64_t auto_replay_step(struct auto_replay *replay, uint64_t now_ns)
{
    struct gateway *gateway = replay->gateway;
    struct auto_replay_policy policy = policy_now(gateway);
    uint64_t ids[PAGE], round_ns = MIN(round_ns_max, policy.pause_ns_min);
    size_t count = 0;
    if (policy.attempts_max == 0 || !any_passes(gateway->dlq) || !find_due(replay, &policy, ids, &count))
        return now_ns + round_ns;
    if (count > 0)
        replay_ids(replay, ids, count);
    return replay->after_id == 0 ? now_ns + round_ns : now_ns;
}
