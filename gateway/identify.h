/* identify.h: who sends a request. Where a password has a slow hash the request waits for it on a pool of its own, and
 * its route begins again. The polling thread's. */
#ifndef SLUICE_GATEWAY_IDENTIFY_H
#define SLUICE_GATEWAY_IDENTIFY_H
#include "base/err.h"
#include "base/must.h"
#include "gateway/request.h"

struct config_user;
struct settings_request;

/* s: what the URL says. False with request->slow_password: identify_slowly() is the next step; else err, as auth_check
 * has it. *user lives as long as home->rules. */
must_use bool identify(struct request *request, const struct settings_request *s, const struct config_user **user,
                       struct err *err);
enum request_step identify_slowly(struct request *request);
#endif
