/* runtime.h: the daemon: configuration -> options -> objects; steps -> threads; and the order in which it all stops. */
#ifndef SLUICE_GATEWAY_RUNTIME_H
#define SLUICE_GATEWAY_RUNTIME_H
#include <stdbool.h>

#include "base/err.h"
#include "base/must.h"

struct config;
struct strbuf;

/* Exit status of the daemon. */
enum runtime_exit {
    RUNTIME_CLEAN = 0,
    RUNTIME_FAILED = 1,
    RUNTIME_USAGE = 2,
    RUNTIME_DATA_FORMAT = 3,
    RUNTIME_DATA_LOCKED = 4,
    RUNTIME_UNFINISHED = 5, /* stopped at the deadline: inserts are only spooled, or waiters were sent away */
    RUNTIME_CONFIG = 78
};

struct runtime_environment {
    const char *config_file;        /* which need not be there */
    const char *port_file;          /* NULL: none */
    const char *notify_socket;      /* systemd's; NULL: none */
    unsigned long long watchdog_us; /* 0: none */
    const char *credentials_dir;    /* systemd's; NULL: none */
    struct {                        /* listening sockets that systemd handed over; 0: none */
        int data, tls, admin;
    } inherited;
    /* Loads the configuration again, as config_load does. */
    bool (*load_again)(void *context, struct config **config, struct strbuf *problems);
    void *load_context;
};

/* Runs until a signal ends it; takes the configuration over. All signals have to be blocked by the caller before any
 * thread starts. */
enum runtime_exit runtime_run(struct config *config, const struct runtime_environment *environment);
#endif
