/* check.h: what a configuration says of the world, compared with the world: addresses, files, the data directory, the
 * spool. Reads only, so that it may run beside a daemon. */
#ifndef SLUICE_GATEWAY_CHECK_H
#define SLUICE_GATEWAY_CHECK_H
#include <sys/types.h>

#include "base/str.h"
#include "gateway/runtime.h"

struct strbuf;

/* The exit status of --check-config. said: a line for each problem, and for what a start would put up with. */
enum runtime_exit check_world(const struct config *config, const struct runtime_environment *environment,
                              struct strbuf *said);
/* "0660". Errors: BAD_ARGUMENTS. */
must_use bool check_mode(struct str text, unsigned *mode, struct err *err);
/* Name or number of a group; "": (gid_t)-1. Reads the system's list of groups. Errors: BAD_ARGUMENTS. */
must_use bool check_group(struct str text, gid_t *group, struct err *err);
/* The files that TLS needs, which are taken. Errors: those of tls_load. */
must_use bool check_tls(const struct config *config, const char *credentials_dir, struct err *err);
#endif
