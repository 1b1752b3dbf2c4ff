/* rules.h: what one reading of the configuration says: the settings, and the users made of it.
 *
 * Counted. A reload puts others in their place (gateway_set_rules); the old ones go with the last that looks at them:
 * polling threads and their plans hold one reference each. Any thread; the settings never change. */
#ifndef SLUICE_GATEWAY_RULES_H
#define SLUICE_GATEWAY_RULES_H

struct auth;
struct config;
struct rules;

struct rules {
    _Atomic unsigned refs;
    struct config *config; /* nobody changes it */
    struct auth *auth;
};

/* Takes the configuration over. One reference. */
struct rules *rules_new(struct config *config);
struct rules *rules_ref(struct rules *rules);
void rules_unref(struct rules *rules); /* NULL is fine */
#endif
