/* crash_daemon.c: see crash.h. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "cli/crash.h"

enum { ENVIRONMENT_MAX = 512 };

/* The environment of this process, and one variable more where there is one. */
static void add_environment(char *environment[ENVIRONMENT_MAX], char *variable)
{
    size_t count = 0;
    for (size_t i = 0; environ[i] != NULL && count < ENVIRONMENT_MAX - 2; i++)
        environment[count++] = environ[i];
    if (variable != NULL)
        environment[count++] = variable;
    environment[count] = NULL;
}

/* In the child, of which other threads are gone: nothing here takes a lock. It has a process group of its own, so that
 * Ctrl-C is for the one who asked, and ends with him. */
static _Noreturn void become_daemon(const struct crash_daemon *daemon, char *const *environment, int log)
{
    char *const arguments[] = { "sluiced",
                                "--data-dir",
                                (char *)(uintptr_t)daemon->data_dir,
                                "--listen",
                                "127.0.0.1:0",
                                "--admin-listen",
                                "127.0.0.1:0",
                                "--port-file",
                                (char *)(uintptr_t)daemon->port_file,
                                "--set",
                                "async_insert_busy_timeout_min_ms=5",
                                "--set",
                                "async_insert_busy_timeout_max_ms=20",
                                NULL };
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)setpgid(0, 0);
    if (dup2(log, STDERR_FILENO) >= 0)
        execve(daemon->program, arguments, environment);
    _exit(127);
}

bool crash_daemon_start(struct crash_daemon *daemon, const char *crash_point)
{
    char *environment[ENVIRONMENT_MAX];
    struct strbuf variable = { 0 };
    struct err err = { 0 };
    if (!fs_remove(fs_posix(), daemon->port_file, &err))
        return false;
    FILE *log = fopen(daemon->log_file, "ae");
    if (log == NULL)
        return false;
    strbuf_addf(&variable, "SLUICE_CRASH_POINT=%s", crash_point != NULL ? crash_point : "");
    add_environment(environment, crash_point != NULL ? variable.data : NULL);
    pid_t pid = fork();
    if (pid == 0)
        become_daemon(daemon, environment, fileno(log));
    daemon->pid = pid > 0 ? pid : 0;
    daemon->status = 0;
    strbuf_fini(&variable);
    return fclose(log) == 0 && pid > 0;
}

bool crash_daemon_ended(struct crash_daemon *daemon)
{
    if (daemon->pid != 0 && waitpid(daemon->pid, &daemon->status, WNOHANG) == daemon->pid)
        daemon->pid = 0;
    return daemon->pid == 0;
}

/* "data=PORT" and "admin=PORT"; the file appears whole. */
static bool read_ports(struct crash_daemon *daemon)
{
    struct strbuf text = { 0 };
    struct err err = { 0 };
    uint64_t data = 0, admin = 0;
    bool ok = fs_read_file(fs_posix(), daemon->port_file, 4096, &text, &err);
    struct str rest = strbuf_view(&text), line, name;
    while (ok && str_cut(&rest, '\n', &line))
        if (str_cut(&line, '=', &name))
            ok = str_to_u64(line, str_is(name, "data") ? &data : &admin);
    strbuf_fini(&text);
    daemon->port = (uint16_t)data;
    daemon->admin_port = (uint16_t)admin;
    return ok && data != 0;
}

static void pause_a_little(void)
{
    struct timespec pause = { 0, 2 * (long)NS_PER_MS };
    nanosleep(&pause, NULL);
}

bool crash_daemon_listens(struct crash_daemon *daemon, uint64_t deadline_ns)
{
    while (!crash_daemon_ended(daemon) && clock_mono_ns(clock_real()) < deadline_ns) {
        if (fs_exists(fs_posix(), daemon->port_file))
            return read_ports(daemon);
        pause_a_little();
    }
    return false;
}

void crash_daemon_end(struct crash_daemon *daemon, int signal_number)
{
    if (daemon->pid == 0)
        return;
    kill(daemon->pid, signal_number);
    while (waitpid(daemon->pid, &daemon->status, 0) != daemon->pid)
        ;
    daemon->pid = 0;
}
