/* must.h: assertions that stay on in every build, and the few macros everything uses.
 *
 * must() is for broken promises of our own code: it prints the fact, file and line and aborts. What the world does
 * wrong (input, disk, network) is a struct err instead (err.h). */
#ifndef SLUICE_BASE_MUST_H
#define SLUICE_BASE_MUST_H
#include <stddef.h>
#include <stdint.h>

#define must_use __attribute__((warn_unused_result))
#define ARRAY_COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

_Noreturn void must_fail(const char *fact, const char *file, int line);

#define must(fact) ((fact) ? (void)0 : must_fail(#fact, __FILE__, __LINE__))

/* For facts that are costly to check: on in debug and sanitizer builds only. */
#ifdef SLUICE_SLOW_CHECKS
#define must_slow(fact) must(fact)
#else
#define must_slow(fact) ((void)sizeof(fact))
#endif

/* Allocation below a cap never fails: out of memory ends the process. Release with free(). n == 0 is allowed. */
void *mem_alloc(size_t bytes) __attribute__((malloc, returns_nonnull));
void *mem_zalloc(size_t bytes) __attribute__((malloc, returns_nonnull));
void *mem_realloc(void *old, size_t bytes) __attribute__((returns_nonnull));
char *mem_strdup(const char *text) __attribute__((returns_nonnull));
/* For a process that takes and returns megabytes many times a second: freed memory stays with it, instead of coming
 * back from the kernel as zeroed pages. A flush of 10,000 rows took about a thousand page faults without this. Once, at
 * the start. budget: what the process may take in all; of a small one only small pieces stay, the others go back at
 * once, and grow without a copy. */
void mem_keep_freed(uint64_t budget);
#define NEW(type) ((type *)mem_zalloc(sizeof(type)))
#endif
