/* sandbox.h: the process gives up what it does not need: with Landlock it opens, makes and runs nothing outside a few
 * directories, whoever takes it over. Containers get it too; the packaged unit has more (docs/SECURITY.md). */
#ifndef SLUICE_GATEWAY_SANDBOX_H
#define SLUICE_GATEWAY_SANDBOX_H
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/must.h"

struct sandbox;

struct sandbox *sandbox_new(void);
void sandbox_free(struct sandbox *sandbox); /* NULL is fine */
/* What stays allowed below path, which may also be a file. One that is not there is passed over. */
void sandbox_read(struct sandbox *sandbox, const char *path);
void sandbox_write(struct sandbox *sandbox, const char *path);
/* From now on, for the calling thread and those that it starts; there is no way back. *level: Landlock's version in the
 * kernel; 0: it has none that will do, nothing happened. Errors: BAD_ARGUMENTS, with what the kernel refused. */
must_use bool sandbox_enter(struct sandbox *sandbox, int *level, struct err *err);
#endif
