/* crash.h: `sluice crash-test`: a daemon of its own that is killed under load, and what became of every insert.
 *
 * crash_daemon starts and kills, crash_load inserts and writes down what was answered, crash_check compares that with
 * the rows and dead letters that are found afterwards. Every insert can be made again from its numbers alone: who sent
 * it, the how-manieth it was, and the seed of the run. */
#ifndef SLUICE_CLI_CRASH_H
#define SLUICE_CLI_CRASH_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/str.h"
#include "base/strbuf.h"
#include "base/sync.h"

/* ---- the daemon: one thread ---- */

struct crash_daemon {
    const char *program; /* sluiced */
    const char *data_dir, *port_file, *log_file;
    pid_t pid;  /* 0: none */
    int status; /* of waitpid, once it has ended */
    uint16_t port, admin_port;
};
/* Starts it; crash_point NULL, or NAME:N for a build that has crash points. False when there can be no child. */
bool crash_daemon_start(struct crash_daemon *daemon, const char *crash_point);
/* Waits until it listens (true), has ended, or deadline_ns has come. */
bool crash_daemon_listens(struct crash_daemon *daemon, uint64_t deadline_ns);
/* Whether it has ended; *status says how then. */
bool crash_daemon_ended(struct crash_daemon *daemon);
/* Sends the signal, unless it has ended, and waits for its end. */
void crash_daemon_end(struct crash_daemon *daemon, int signal_number);

/* ---- inserts, and what was answered ---- */

enum { CRASH_PIECES_MAX = 3, CRASH_TOKEN_BYTES = 40 };
enum crash_level { CRASH_STORED, CRASH_SPOOLED, CRASH_BUFFERED, CRASH_LEVELS }; /* the best first */
enum crash_answer { CRASH_UNKNOWN, CRASH_ACKNOWLEDGED, CRASH_REFUSED };

/* What an insert is, by its numbers. */
struct crash_plan {
    enum crash_level level; /* asked for */
    unsigned pieces;        /* rows, each of another partition */
    bool poisoned;          /* its last row is no row: nothing of it may be stored */
    bool retried;           /* has a token, and is sent until there is an answer; else sent once */
};
struct crash_plan crash_plan(uint64_t seed, uint32_t client, uint32_t sequence);
uint64_t crash_value(uint64_t seed, uint32_t client, uint32_t sequence, unsigned piece);
void crash_token(uint32_t client, uint32_t sequence, char token[CRASH_TOKEN_BYTES]);

struct crash_insert {
    uint8_t answer, level;           /* enum crash_answer; the level that was promised */
    uint8_t found[CRASH_PIECES_MAX]; /* how often each of its rows is there */
    bool in_letters;
    uint32_t life; /* of the daemon that answered */
    uint64_t answered_ns;
};
struct crash_client {
    struct crash_insert *inserts;
    size_t count, cap;
    uint64_t requests;
};

/* What the clients share with whoever kills: where the daemon is, and whether there is one. */
struct crash_world {
    struct mutex lock; /* LOCK_REQUEST; guards what follows */
    struct cond changed;
    uint16_t port;    /* 0: no daemon */
    uint32_t life;    /* how many there were before this one */
    bool ending;      /* no new inserts */
    bool no_spool;    /* the daemon does not serve that level */
    uint32_t senders; /* that have not come to their end */
};
void crash_world_init(struct crash_world *world, uint32_t senders);
void crash_world_fini(struct crash_world *world);
void crash_world_set(struct crash_world *world, uint16_t port, uint32_t life);
void crash_world_end(struct crash_world *world);
bool crash_world_sending(struct crash_world *world);

struct crash_sender {
    struct crash_world *world;
    struct crash_client *client;
    uint64_t seed;
    uint32_t number;
};
/* Inserts until the world ends; the body of a thread. */
void *crash_send(void *sender);

/* ---- the comparison: pure ---- */

struct crash_lives {
    const uint64_t *ended_ns; /* when each was killed; the last one was stopped in order */
    uint32_t count;
};
struct crash_counts {
    uint64_t acknowledged[CRASH_LEVELS], refused, unknown, rows, letters;
    uint64_t lost;            /* acknowledged as stored or spooled, or as buffered by a daemon that was not killed */
    uint64_t doubled;         /* some row is there more than once */
    uint64_t resurrected;     /* was refused, or can be no row, and is there */
    uint64_t partial;         /* some of its rows are there, others are not */
    uint64_t altered;         /* rows that nobody sent */
    uint64_t buffered_lost;   /* acknowledged as buffered, and lost in a kill: what that level allows */
    uint64_t buffered_age_ns; /* the longest that one of these had been buffered */
};
struct crash_check {
    struct crash_client *clients;
    uint32_t clients_count;
    uint64_t seed;
    struct crash_counts counts;
};
/* A row that is there: "client\tsequence\tpiece\tpieces\tvalue". */
void crash_check_row(struct crash_check *check, struct str row);
/* The token of a dead letter that is there. */
void crash_check_letter(struct crash_check *check, struct str token);
/* When all have been seen: completes the counts. */
void crash_check_judge(struct crash_check *check, const struct crash_lives *lives);
static inline bool crash_counts_good(const struct crash_counts *counts)
{
    return counts->lost + counts->doubled + counts->resurrected + counts->partial + counts->altered == 0;
}
#endif
