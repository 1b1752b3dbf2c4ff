/* dies.c: fork, a pipe for the output, wait. Cores are switched off: the death is on purpose. */
#include "support/dies.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/must.h"

static _Noreturn void run_child(void (*call)(void *context), void *context, int out)
{
    must(prctl(PR_SET_DUMPABLE, 0) == 0);
    must(dup2(out, STDOUT_FILENO) >= 0 && dup2(out, STDERR_FILENO) >= 0);
    signal(SIGABRT, SIG_DFL); /* cmocka and the sanitizers catch it */
    call(context);
    _exit(0);
}

int dies(void (*call)(void *context), void *context, struct strbuf *out)
{
    int pipe_fds[2], status;
    char bytes[4096];
    ssize_t n;
    must(pipe(pipe_fds) == 0);
    pid_t child = fork();
    must(child >= 0);
    if (child == 0)
        run_child(call, context, pipe_fds[1]);
    close(pipe_fds[1]);
    while ((n = read(pipe_fds[0], bytes, sizeof(bytes))) != 0) {
        must(n > 0 || errno == EINTR);
        if (n > 0 && out != NULL)
            strbuf_add_bytes(out, bytes, (size_t)n);
    }
    close(pipe_fds[0]);
    must(waitpid(child, &status, 0) == child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : -WEXITSTATUS(status);
}
