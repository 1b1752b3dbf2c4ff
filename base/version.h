/* version.h: what this build calls itself. */
#ifndef SLUICE_BASE_VERSION_H
#define SLUICE_BASE_VERSION_H

#define SLUICE_VERSION "0.1.0"
#ifndef SLUICE_BUILD
#define SLUICE_BUILD "unknown" /* the packagers' build id, -DSLUICE_BUILD=... */
#endif
#endif
