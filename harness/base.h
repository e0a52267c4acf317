/*
 * The ground floor: exit codes, notices, the monotonic clock, waiting for a condition, strings.
 *
 * Every function here is safe to call from any thread unless it says otherwise. Memory that cannot be had ends the
 * program with EXIT_CODE_BROKEN: no caller has a better plan.
 */
#ifndef COUNTERPROOF_BASE_H
#define COUNTERPROOF_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MUST_CHECK __attribute__((warn_unused_result))
#define PRINTF_LIKE(string, first) __attribute__((format(printf, string, first)))
#define LENGTH_OF(array) (sizeof(array) / sizeof((array)[0]))

typedef enum
{
	EXIT_CODE_PASS = 0,
	EXIT_CODE_FAIL = 1,         /* a check failed */
	EXIT_CODE_USAGE = 2,        /* usage or configuration error, nothing was started */
	EXIT_CODE_BROKEN = 3,       /* the lab could not do its work */
	EXIT_CODE_INCONCLUSIVE = 4, /* unknown, a fault never fired, nothing was exercised */
	EXIT_CODE_NO_MATCH = 5,     /* nothing matched the selection */
	EXIT_CODE_INTERRUPTED = 130
} ExitCode;


/* --- notices: one line each on stderr, prefixed `[prefix pid N]` once a prefix is set; written with one write(2) --- */

typedef enum
{
	NOTICE_ERROR = 1,
	NOTICE_WARNING,
	NOTICE_INFO,
	NOTICE_DEBUG /* shown with -v */
} NoticeLevel;

extern void notice_set_prefix(const char *prefix); /* copied; call before threads start */
extern void notice_set_level(NoticeLevel most_talkative);
extern void notice(NoticeLevel level, const char *format, ...) PRINTF_LIKE(2, 3);

/* From here on this thread's errors are what its caller wants to see, and are shown with -v only; false ends that. */
extern void notice_expect_errors(bool expected);

/* The last error this process reported, without prefix: the reason a case gives for being BROKEN. "" before any. */
extern void notice_last_error(char *buffer, size_t size);

#define report_error(...) notice(NOTICE_ERROR, __VA_ARGS__)
#define report_warning(...) notice(NOTICE_WARNING, __VA_ARGS__)
#define report_info(...) notice(NOTICE_INFO, __VA_ARGS__)
#define report_debug(...) notice(NOTICE_DEBUG, __VA_ARGS__)


/* --- standard streams --- */

/*
 * First thing in main: the next file or connection opened would otherwise get the number of a stream that the caller has
 * closed, and with it what is printed. Printing goes on failing, as on what is closed.
 */
extern void streams_hold(void);


/* --- time: CLOCK_MONOTONIC everywhere; one scale (--scale) multiplies every deadline --- */

typedef struct
{
	int64_t at_ns;
} Deadline;

extern int64_t time_now_ns(void);
extern void time_set_scale(double scale); /* call before threads start */
extern Deadline deadline_in_ms(int64_t ms);
extern bool deadline_passed(Deadline deadline);
extern int deadline_left_ms(Deadline deadline); /* for poll(2): 0 when passed, else at least 1 */
extern Deadline deadline_earlier(Deadline a, Deadline b);


/*
 * --- an interrupt (SIGINT, SIGTERM, SIGHUP unless ignored) ends the waits of the one process that catches it ---
 *
 * Forked children are not interrupted: whoever caught it decides about them. A wait that is given up reports nothing.
 */

extern void interrupt_catch(void); /* call before threads start */
extern bool interrupt_seen(void);  /* one has come; also while its signal is blocked */

/* The way out has to wait all the same: between these two, which nest, the waits of this thread are not given up. */
extern void interrupt_defer(void);
extern void interrupt_resume(void);
extern bool interrupt_presses(void); /* one has come, and waits are to be given up */


/* --- waiting: the only place that sleeps --- */

typedef struct Text Text;

typedef enum
{
	PROBE_AGAIN = 1, /* not yet */
	PROBE_DONE,
	PROBE_FAILED /* will never be; the probe has reported why */
} ProbeAnswer;

/* Looks once; appends what it saw to `seen` (emptied before each call), which is printed when the wait expires. */
typedef ProbeAnswer (*Probe)(void *context, Text *seen);

/*
 * Probe until PROBE_DONE. Backs off from 0.2 ms to 10 ms. false: the probe failed, or the deadline passed, which is
 * reported with `what` and the last observation, or an interrupt has come.
 */
extern bool wait_until(const char *what, Deadline deadline, Probe probe, void *context) MUST_CHECK;

/* Yield the processor for a while between two attempts of a retry loop; never to stand for an event. */
extern void backoff_us(int64_t us);


/* --- strings --- */

struct Text
{
	char *data; /* always a string once something was appended; NULL before */
	size_t length;
	size_t capacity;
};

extern void text_append(Text *text, const char *format, ...) PRINTF_LIKE(2, 3);
extern void text_append_va(Text *text, const char *format, va_list args) PRINTF_LIKE(2, 0);
extern void text_append_bytes(Text *text, const char *bytes, size_t length);
extern void text_append_int64(Text *text, int64_t number);  /* in decimal; where numbers are many, printf is slow */
extern void text_append_word(Text *text, const char *word); /* as a shell takes it for one word */
extern void text_clear(Text *text);                         /* keeps the memory */
extern void text_free(Text *text);
extern const char *text_get(const Text *text); /* "" when empty */

extern char *string_format(const char *format, ...) PRINTF_LIKE(1, 2); /* caller frees */
extern char *string_copy(const char *string);                          /* caller frees; NULL stays NULL */
extern void *memory_get(size_t bytes);                                 /* zeroed; caller frees */
extern void *memory_grow(void *old, size_t bytes);

/* Whole decimal number within [least, most]; false leaves *value alone and reports nothing. */
extern bool string_to_int64(const char *string, int64_t least, int64_t most, int64_t *value) MUST_CHECK;

/* The candidate with the smallest edit distance to `word`, NULL when there is none. Candidates end with NULL. */
extern const char *string_nearest(const char *word, const char *const *candidates);

/* Read a whole file into text (appended). false: reported. */
extern bool file_read(const char *path, Text *text) MUST_CHECK;

/*
 * The paths of the files in a folder whose names end so, in the order of their names. *paths is allocated, so is each of them:
 * free with paths_free(). false: the folder cannot be read; reported, unless it is not there, which is no files.
 */
extern bool folder_files(const char *folder, const char *ending, char ***paths, size_t *count) MUST_CHECK;
extern void paths_free(char **paths, size_t count);

/* Write all, also through a full pipe or a signal half way: then in several write(2). false: errno says why. */
extern bool file_write(int fd, const char *bytes, size_t length) MUST_CHECK;

/* Write atomically: a temporary file beside it, fsync, rename, fsync of the directory. false: reported. */
extern bool file_replace(const char *path, const char *content) MUST_CHECK;

#endif
