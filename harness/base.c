/*
 * The ground floor. State of the process: the notice settings, the time scale, who catches interrupts, and the last
 * error reported; the last of them changes while threads run and has a lock.
 */
#include "base.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_MS 1000000
#define NS_PER_SECOND 1000000000
#define WAIT_FIRST_US 200  /* wait_until() backs off from here ... */
#define WAIT_LAST_US 10000 /* ... to here */
#define LAST_ERROR_BYTES 1024
#define TEXT_FIRST_BYTES 64

static char notice_prefix[64];
static NoticeLevel notice_level = NOTICE_INFO;
static _Thread_local bool errors_expected;
static char last_error[LAST_ERROR_BYTES];
static pthread_mutex_t last_error_lock = PTHREAD_MUTEX_INITIALIZER;
static double time_scale = 1.0;
static atomic_int interrupt_came; /* lock-free: written by the handler, read by every thread */
static pid_t interrupt_process;   /* who catches, 0: nobody. A forked child inherits the flag and the handler */
static sigset_t interrupt_signals;
static _Thread_local int interrupt_deferrals;


/* --- notices --- */

void
notice_set_prefix(const char *prefix)
{
	snprintf(notice_prefix, sizeof(notice_prefix), "%s", prefix);
}

void
notice_set_level(NoticeLevel most_talkative)
{
	notice_level = most_talkative;
}

static void
blank_out_newlines(char *string)
{
	for (size_t i = strlen(string); i > 0 && (string[i - 1] == '\n' || string[i - 1] == '\r'); i--)
	{
		string[i - 1] = '\0';
	}
	for (; *string != '\0'; string++)
	{
		if (*string == '\n' || *string == '\r')
		{
			*string = ' ';
		}
	}
}

void
notice(NoticeLevel level, const char *format, ...)
{
	Text line = {0};
	size_t message;
	va_list args;
	int saved_errno = errno;

	if (notice_prefix[0] != '\0')
	{
		text_append(&line, "[%s pid %d] ", notice_prefix, (int) getpid());
	}
	message = line.length;
	va_start(args, format);
	text_append_va(&line, format, args);
	va_end(args);
	text_append(&line, "%s", "");
	blank_out_newlines(line.data);
	line.length = strlen(line.data);

	if (level == NOTICE_ERROR)
	{
		pthread_mutex_lock(&last_error_lock);
		snprintf(last_error, sizeof(last_error), "%s", line.length > message ? line.data + message : "");
		pthread_mutex_unlock(&last_error_lock);
	}
	if ((level == NOTICE_ERROR && errors_expected ? NOTICE_DEBUG : level) <= notice_level)
	{
		text_append_bytes(&line, "\n", 1);
		(void) !file_write(STDERR_FILENO, line.data, line.length);
	}
	text_free(&line);
	errno = saved_errno;
}

void
notice_expect_errors(bool expected)
{
	errors_expected = expected;
}

void
notice_last_error(char *buffer, size_t size)
{
	pthread_mutex_lock(&last_error_lock);
	snprintf(buffer, size, "%s", last_error);
	pthread_mutex_unlock(&last_error_lock);
}


/* --- standard streams --- */

void
streams_hold(void)
{
	int fd;

	do
	{
		fd = open("/dev/null", O_RDONLY); /* read-only: what is printed there fails */
	} while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
	{
		close(fd);
	}
}


/* --- time --- */

int64_t
time_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t) now.tv_sec * NS_PER_SECOND + now.tv_nsec;
}

void
time_set_scale(double scale)
{
	time_scale = scale;
}

Deadline
deadline_in_ms(int64_t ms)
{
	int64_t now = time_now_ns();
	double ns = (double) ms * time_scale * NS_PER_MS;

	if (ns >= (double) (INT64_MAX - now))
	{
		return (Deadline){.at_ns = INT64_MAX};
	}
	return (Deadline){.at_ns = now + (int64_t) ns};
}

bool
deadline_passed(Deadline deadline)
{
	return time_now_ns() >= deadline.at_ns;
}

int
deadline_left_ms(Deadline deadline)
{
	int64_t left_ns = deadline.at_ns - time_now_ns();
	int64_t left_ms;

	if (left_ns <= 0)
	{
		return 0;
	}
	left_ms = (left_ns - 1) / NS_PER_MS + 1;
	return left_ms > INT_MAX ? INT_MAX : (int) left_ms;
}

Deadline
deadline_earlier(Deadline a, Deadline b)
{
	return a.at_ns <= b.at_ns ? a : b;
}


/* --- an interrupt --- */

static void
note_interrupt(int signal_number)
{
	(void) signal_number;
	interrupt_came = 1;
}

void
interrupt_catch(void)
{
	static const int caught[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction action = {.sa_handler = note_interrupt};
	struct sigaction before;

	sigemptyset(&interrupt_signals);
	for (size_t i = 0; i < LENGTH_OF(caught); i++)
	{
		sigaction(caught[i], NULL, &before);
		if (caught[i] != SIGHUP || before.sa_handler != SIG_IGN) /* nohup means it */
		{
			sigaddset(&interrupt_signals, caught[i]);
			sigaction(caught[i], &action, NULL);
		}
	}
	interrupt_came = 0;
	interrupt_process = getpid();
}

bool
interrupt_seen(void)
{
	sigset_t pending;

	if (interrupt_process != getpid())
	{
		return false;
	}
	if (interrupt_came == 0 && sigpending(&pending) == 0)
	{
		sigandset(&pending, &pending, &interrupt_signals);
		return !sigisemptyset(&pending);
	}
	return interrupt_came != 0;
}

void
interrupt_defer(void)
{
	interrupt_deferrals++;
}

void
interrupt_resume(void)
{
	interrupt_deferrals--;
}

bool
interrupt_presses(void)
{
	return interrupt_deferrals == 0 && interrupt_seen();
}


/* --- waiting --- */

void
backoff_us(int64_t us)
{
	struct timespec length = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};

	if (us > 0)
	{
		(void) clock_nanosleep(CLOCK_MONOTONIC, 0, &length, NULL);
	}
}

bool
wait_until(const char *what, Deadline deadline, Probe probe, void *context)
{
	Text seen = {0};
	int64_t start_ns = time_now_ns();
	int64_t pause_us = WAIT_FIRST_US;
	ProbeAnswer answer;

	for (;;)
	{
		/* Asked before the probe: what becomes true while it looks for the last time is still seen. */
		bool last = deadline_passed(deadline);
		int64_t left_us;

		text_clear(&seen);
		answer = probe(context, &seen);
		if (answer != PROBE_AGAIN || interrupt_presses())
		{
			break;
		}
		if (last)
		{
			report_error("waited %lld ms for %s; last seen: %s", (long long) ((time_now_ns() - start_ns) / NS_PER_MS),
						 what, seen.length > 0 ? text_get(&seen) : "nothing");
			break;
		}
		left_us = (deadline.at_ns - time_now_ns()) / 1000 + 1;
		backoff_us(left_us < pause_us ? left_us : pause_us);
		pause_us = pause_us * 2 < WAIT_LAST_US ? pause_us * 2 : WAIT_LAST_US;
	}
	text_free(&seen);
	return answer == PROBE_DONE;
}


/* --- strings --- */

static void
out_of_memory(size_t bytes)
{
	char line[80];
	int length = snprintf(line, sizeof(line), "out of memory: %zu bytes\n", bytes);

	(void) !file_write(STDERR_FILENO, line, (size_t) length);
	_exit(EXIT_CODE_BROKEN);
}

void *
memory_get(size_t bytes)
{
	void *memory = calloc(1, bytes > 0 ? bytes : 1);

	if (memory == NULL)
	{
		out_of_memory(bytes);
	}
	return memory;
}

void *
memory_grow(void *old, size_t bytes)
{
	void *memory = realloc(old, bytes > 0 ? bytes : 1);

	if (memory == NULL)
	{
		out_of_memory(bytes);
	}
	return memory;
}

/* Room for `more` bytes and the terminator. */
static void
text_reserve(Text *text, size_t more)
{
	size_t needed = text->length + more + 1;
	size_t capacity = text->capacity > 0 ? text->capacity : TEXT_FIRST_BYTES;

	if (needed <= text->capacity)
	{
		return;
	}
	while (capacity < needed)
	{
		capacity *= 2;
	}
	text->data = memory_grow(text->data, capacity);
	text->capacity = capacity;
}

void
text_append_va(Text *text, const char *format, va_list args)
{
	va_list again;
	int length;

	text_reserve(text, TEXT_FIRST_BYTES);
	va_copy(again, args);
	length = vsnprintf(text->data + text->length, text->capacity - text->length, format, args);
	if (length >= 0 && (size_t) length >= text->capacity - text->length)
	{
		text_reserve(text, (size_t) length);
		length = vsnprintf(text->data + text->length, text->capacity - text->length, format, again);
	}
	va_end(again);
	if (length < 0)
	{
		length = 0; /* a format the C library refuses; what stood there before stays a string */
		text->data[text->length] = '\0';
	}
	text->length += (size_t) length;
}

void
text_append(Text *text, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	text_append_va(text, format, args);
	va_end(args);
}

void
text_append_bytes(Text *text, const char *bytes, size_t length)
{
	text_reserve(text, length);
	if (length > 0)
	{
		memcpy(text->data + text->length, bytes, length);
	}
	text->length += length;
	text->data[text->length] = '\0';
}

void
text_append_int64(Text *text, int64_t number)
{
	char digits[24];
	size_t begin = sizeof(digits);
	uint64_t rest = number < 0 ? -(uint64_t) number : (uint64_t) number;

	do
	{
		digits[--begin] = (char) ('0' + rest % 10);
		rest /= 10;
	} while (rest > 0);
	if (number < 0)
	{
		digits[--begin] = '-';
	}
	text_append_bytes(text, digits + begin, sizeof(digits) - begin);
}

void
text_append_word(Text *text, const char *word)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+./:,@%=";

	if (word[0] != '\0' && strspn(word, plain) == strlen(word))
	{
		text_append(text, "%s", word);
		return;
	}
	text_append(text, "'");
	for (; *word != '\0'; word++)
	{
		if (*word == '\'')
		{
			text_append(text, "'\\''");
		}
		else
		{
			text_append_bytes(text, word, 1);
		}
	}
	text_append(text, "'");
}

void
text_clear(Text *text)
{
	text->length = 0;
	if (text->data != NULL)
	{
		text->data[0] = '\0';
	}
}

void
text_free(Text *text)
{
	free(text->data);
	*text = (Text){0};
}

const char *
text_get(const Text *text)
{
	return text->data != NULL ? text->data : "";
}

char *
string_format(const char *format, ...)
{
	Text text = {0};
	va_list args;

	va_start(args, format);
	text_append_va(&text, format, args);
	va_end(args);
	return text.data;
}

char *
string_copy(const char *string)
{
	size_t size;

	if (string == NULL)
	{
		return NULL;
	}
	size = strlen(string) + 1;
	return memcpy(memory_get(size), string, size);
}

bool
string_to_int64(const char *string, int64_t least, int64_t most, int64_t *value)
{
	const char *digits = string[0] == '-' ? string + 1 : string;
	char *end;
	long long number;

	/* strtoll alone would take blanks, a plus and the empty string */
	if (digits[0] < '0' || digits[0] > '9')
	{
		return false;
	}
	errno = 0;
	number = strtoll(string, &end, 10);
	if (errno != 0 || *end != '\0' || number < least || number > most)
	{
		return false;
	}
	*value = number;
	return true;
}

/* Levenshtein; `row` has room for strlen(b) + 1. */
static size_t
edit_distance(const char *a, const char *b, size_t *row)
{
	size_t b_length = strlen(b);

	for (size_t j = 0; j <= b_length; j++)
	{
		row[j] = j;
	}
	for (size_t i = 1; a[i - 1] != '\0'; i++)
	{
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= b_length; j++)
		{
			size_t best = diagonal + (a[i - 1] != b[j - 1]);

			diagonal = row[j];
			best = row[j] + 1 < best ? row[j] + 1 : best;
			row[j] = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
		}
	}
	return row[b_length];
}

const char *
string_nearest(const char *word, const char *const *candidates)
{
	const char *nearest = NULL;
	size_t least = SIZE_MAX;

	for (; *candidates != NULL; candidates++)
	{
		size_t *row = memory_get((strlen(*candidates) + 1) * sizeof(size_t));
		size_t distance = edit_distance(word, *candidates, row);

		free(row);
		if (distance < least)
		{
			least = distance;
			nearest = *candidates;
		}
	}
	return nearest;
}


/* --- files --- */

bool
file_read(const char *path, Text *text)
{
	char chunk[8192];
	ssize_t got;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
	{
		report_error("cannot open %s: %s", path, strerror(errno));
		return false;
	}
	text_append_bytes(text, "", 0);
	while ((got = read(fd, chunk, sizeof(chunk))) != 0)
	{
		if (got < 0 && errno != EINTR)
		{
			report_error("cannot read %s: %s", path, strerror(errno));
			close(fd);
			return false;
		}
		if (got > 0)
		{
			text_append_bytes(text, chunk, (size_t) got);
		}
	}
	close(fd);
	return true;
}

bool
folder_files(const char *folder, const char *ending, char ***paths, size_t *count)
{
	struct dirent **entries;
	int found = scandir(folder, &entries, NULL, alphasort);

	*paths = NULL;
	*count = 0;
	if (found < 0)
	{
		if (errno == ENOENT)
		{
			return true;
		}
		report_error("cannot read the folder %s: %s", folder, strerror(errno));
		return false;
	}
	*paths = memory_get(sizeof(char *) * ((size_t) found + 1));
	for (int i = 0; i < found; i++)
	{
		size_t length = strlen(entries[i]->d_name);

		if (length > strlen(ending) && strcmp(entries[i]->d_name + length - strlen(ending), ending) == 0)
		{
			(*paths)[(*count)++] = string_format("%s/%s", folder, entries[i]->d_name);
		}
		free(entries[i]);
	}
	free(entries);
	return true;
}

void
paths_free(char **paths, size_t count)
{
	for (size_t i = 0; i < count; i++)
	{
		free(paths[i]);
	}
	free(paths);
}

bool
file_write(int fd, const char *bytes, size_t length)
{
	while (length > 0)
	{
		ssize_t written = write(fd, bytes, length);

		if (written < 0 && errno == EINTR)
		{
			continue;
		}
		if (written < 0)
		{
			return false;
		}
		bytes += written;
		length -= (size_t) written;
	}
	return true;
}

/* The rename is durable only once the directory is. */
static bool
sync_directory_of(const char *path)
{
	char *directory = string_copy(path);
	char *slash = strrchr(directory, '/');
	const char *name = ".";
	bool ok;
	int fd;

	if (slash != NULL)
	{
		slash[slash == directory ? 1 : 0] = '\0';
		name = directory;
	}
	fd = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ok = fd >= 0 && fsync(fd) == 0;
	if (!ok)
	{
		report_error("cannot sync directory %s: %s", name, strerror(errno));
	}
	if (fd >= 0)
	{
		close(fd);
	}
	free(directory);
	return ok;
}

static bool
write_and_sync(const char *path, const char *content)
{
	bool ok;
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

	if (fd < 0)
	{
		report_error("cannot create %s: %s", path, strerror(errno));
		return false;
	}
	ok = file_write(fd, content, strlen(content)) && fsync(fd) == 0;
	if (!ok)
	{
		report_error("cannot write %s: %s", path, strerror(errno));
	}
	if (close(fd) != 0 && ok)
	{
		report_error("cannot close %s: %s", path, strerror(errno));
		ok = false;
	}
	if (!ok)
	{
		unlink(path);
	}
	return ok;
}

bool
file_replace(const char *path, const char *content)
{
	static atomic_int serial; /* two threads may replace the same file */
	char *beside = string_format("%s.%d.%d.tmp", path, (int) getpid(), atomic_fetch_add(&serial, 1));
	bool ok = write_and_sync(beside, content);

	if (ok && rename(beside, path) != 0)
	{
		report_error("cannot rename %s to %s: %s", beside, path, strerror(errno));
		unlink(beside);
		ok = false;
	}
	free(beside);
	return ok && sync_directory_of(path);
}
