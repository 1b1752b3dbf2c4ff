/* identify.c: see identify.h. */
#include "gateway/identify.h"

#include "gateway/pool.h"
#include "gateway/rules.h"
#include "gateway/settings_request.h"

bool identify(struct request *request, const struct settings_request *s, const struct config_user **user,
              struct err *err)
{
    struct auth_claim claim = { .header_user = request->h_user,
                                .header_key = request->h_key,
                                .authorization = request->h_authorization,
                                .authorization_given = request->authorization_given,
                                .url_user = s->user,
                                .url_password = s->password,
                                .url_user_given = s->user_given,
                                .peer = str_of(request->peer),
                                .loopback = request->loopback,
                                .certificate = request->certificate,
                                .tried = request->tried };
    enum auth_answer answer = auth_check(request->home->rules->auth, &claim, request->home->now_ns, request->arena,
                                         user, &request->attempt, err);
    request->slow_password = answer == AUTH_SLOW;
    return answer == AUTH_KNOWN;
}

static bool try_password(struct request *request)
{
    auth_try(request->rules->auth, &request->attempt, clock_mono_ns(request->gateway->clock));
    request->tried = true;
    return true;
}

/* Back on the polling thread. A reload meanwhile has other passwords. */
static enum request_step password_tried(struct request *request)
{
    bool tried = request->tried;
    request->tried = tried && request->rules == request->home->rules;
    rules_unref(request->rules);
    request->rules = NULL;
    if (tried)
        return request_begin_again(request);
    struct err err = request->verdict.err; /* there was no room for it */
    if (err.code == ERR_OK)
        err_set(&err, ERR_TOO_MANY_SIMULTANEOUS_QUERIES, "The server is stopping: send this again, elsewhere or later");
    return request_fail(request, &err);
}

enum request_step identify_slowly(struct request *request)
{
    enum request_step step = request_to_pool(request, request->gateway->password_pool, try_password);
    request->rules = rules_ref(request->home->rules);
    request->resumed = password_tried;
    return step;
}
