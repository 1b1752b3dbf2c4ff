/* backup.h: what a backup holds beside tables: the spool, then the dead letters. */
#ifndef SLUICE_GATEWAY_BACKUP_H
#define SLUICE_GATEWAY_BACKUP_H
#include "gateway/gateway.h"

/* Once the store, the dead letters and the spool are open, and before the first statement. */
void backup_include_waiting(struct gateway *gateway);
#endif
