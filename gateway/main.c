/* main.c: sluiced: command line, environment, signals; then runtime.c. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/strbuf.h"
#include "base/version.h"
#include "config/config.h"
#include "gateway/check.h"

extern char **environ;

static uint64_t number_of(const char *text)
{
    uint64_t value;
    return text != NULL && str_to_u64(str_of(text), &value) ? value : 0;
}

/* Does stderr go to the journal? $JOURNAL_STREAM is DEVICE:INODE of the stream. */
static bool is_journal(void)
{
    const char *stream = getenv("JOURNAL_STREAM");
    struct stat stat;
    char own[64];
    if (stream == NULL || fstat(STDERR_FILENO, &stat) != 0)
        return false;
    snprintf(own, sizeof(own), "%llu:%llu", (unsigned long long)stat.st_dev, (unsigned long long)stat.st_ino);
    return strcmp(own, stream) == 0;
}

static void configure_log(const struct config *config)
{
    enum log_format format = LOG_JSON;
    if (config->log_format == 1 || (config->log_format == 0 && isatty(STDERR_FILENO)))
        format = LOG_LOGFMT;
    log_configure((enum log_level)config->log_level, format);
    log_with_priority(is_journal());
}

struct command_line {
    int argc;
    char **argv;
};

static bool load_again(void *context, struct config **config, struct strbuf *problems)
{
    const struct command_line *line = context;
    struct config_arguments arguments;
    return config_load(line->argc - 1, line->argv + 1, environ, config, &arguments, problems);
}

/* The sockets of systemd begin at descriptor 3. FileDescriptorName= says which each is; without that the first is the
 * data port, the second the admin port. */
static void take_sockets(struct runtime_environment *environment)
{
    enum { FIRST = 3, MOST = 16 };
    const char *list = getenv("LISTEN_FDNAMES");
    struct str names = str_of(list != NULL ? list : ""), name;
    if (number_of(getenv("LISTEN_PID")) != (uint64_t)getpid())
        return;
    int end = FIRST + (int)MIN(number_of(getenv("LISTEN_FDS")), (uint64_t)MOST);
    for (int fd = FIRST; fd < end; fd++) {
        name = STR_EMPTY;
        (void)str_cut(&names, ':', &name);
        if (str_is(name, "https"))
            environment->inherited.tls = fd;
        else if (str_is(name, "admin") || (!str_is(name, "http") && fd == FIRST + 1))
            environment->inherited.admin = fd;
        else if (str_is(name, "http") || fd == FIRST)
            environment->inherited.data = fd;
        else
            log_warn("inherited descriptor is not used: fd=%d name=" STR_FMT, fd, STR_ARG(name));
    }
}

/* systemd's socket activation and supervision. */
static struct runtime_environment read_environment(const struct config_arguments *arguments, struct command_line *line)
{
    struct runtime_environment environment = { .config_file = arguments->file,
                                               .port_file = arguments->port_file,
                                               .notify_socket = getenv("NOTIFY_SOCKET"),
                                               .credentials_dir = getenv("CREDENTIALS_DIRECTORY"),
                                               .load_again = load_again,
                                               .load_context = line };
    take_sockets(&environment);
    uint64_t watchdog_pid = number_of(getenv("WATCHDOG_PID"));
    if (watchdog_pid == 0 || watchdog_pid == (uint64_t)getpid())
        environment.watchdog_us = number_of(getenv("WATCHDOG_USEC"));
    return environment;
}

static enum runtime_exit check_files(const struct config *config, const struct runtime_environment *environment)
{
    struct strbuf said = { 0 };
    log_configure(LOG_WARN, LOG_LOGFMT);
    enum runtime_exit status = check_world(config, environment, &said);
    fputs(strbuf_cstr(&said), stderr);
    strbuf_fini(&said);
    return status;
}

/* One thread takes them all; but faults of our own go their usual way. */
static void block_signals(void)
{
    sigset_t set;
    sigfillset(&set);
    const int faults[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS };
    for (size_t i = 0; i < ARRAY_COUNT(faults); i++)
        sigdelset(&set, faults[i]);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
}

int main(int argc, char **argv)
{
    struct config *config = NULL;
    struct config_arguments arguments = { 0 };
    struct strbuf problems = { 0 };
    enum runtime_exit status = RUNTIME_CLEAN;
    bool ok = config_load(argc - 1, argv + 1, environ, &config, &arguments, &problems);
    if (arguments.help || arguments.version) {
        struct strbuf text = { 0 };
        if (arguments.help)
            config_help(&text);
        else
            strbuf_add_text(&text, "sluiced " SLUICE_VERSION "\n");
        fputs(strbuf_cstr(&text), stdout);
        strbuf_fini(&text);
    } else if (!ok) {
        fputs(strbuf_cstr(&problems), stderr);
        status = arguments.usage ? RUNTIME_USAGE : RUNTIME_CONFIG;
    } else if (arguments.check) {
        struct command_line line = { argc, argv };
        struct runtime_environment environment = read_environment(&arguments, &line);
        status = check_files(config, &environment);
    } else {
        struct command_line line = { argc, argv };
        struct runtime_environment environment = read_environment(&arguments, &line);
        block_signals();
        configure_log(config);
        status = runtime_run(config, &environment);
        config = NULL;
    }
    config_free(config);
    strbuf_fini(&problems);
    return (int)status;
}
