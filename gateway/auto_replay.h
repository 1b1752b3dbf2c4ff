/* auto_replay.h: letters whose cause passes by itself (too many parts, a full disk, no memory) are replayed until they
 * are stored, or until attempts run out and a person has to look.
 *
 * The pause before the next attempt is as long as all before it took together, between a least and a longest one, and
 * up to half more by chance: so it doubles, and what failed together does not come back together. */
#ifndef SLUICE_GATEWAY_AUTO_REPLAY_H
#define SLUICE_GATEWAY_AUTO_REPLAY_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct gateway;
struct letter;

struct auto_replay_policy {
    uint64_t attempts_max; /* of the flush and of replays together; 0: never */
    uint64_t pause_ns_min, pause_ns_max;
};
/* Pure. Whether the letter may be tried by itself at all, and when: in wall time, from its own times and id alone. */
bool auto_replay_wants(const struct letter *letter, const struct auto_replay_policy *policy, int64_t *due_wall_ns);

struct auto_replay {
    struct gateway *gateway;
    atomic_bool stopping; /* no more waiting for verdicts */
    uint64_t after_id;    /* letters up to it were looked at in this round */
};
/* Looks at a page of letters and replays those that are due. Returns when to run again. One thread. */
uint64_t auto_replay_step(struct auto_replay *replay, uint64_t now_ns);
#endif
