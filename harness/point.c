#include "point.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace.h"

#define ARMED_MAX 16
#define NAME_BYTES 64
#define DETAIL_BYTES 256

typedef struct
{
	char name[NAME_BYTES];
	int nth;
	int hits;
	PointCall call;
	void *context;
} Armed;

/* The count is all that an unarmed program looks at; the table is behind the lock, so that hits are counted exactly. */
static atomic_int armed_count;
static Armed armed[ARMED_MAX];
static pthread_mutex_t armed_lock = PTHREAD_MUTEX_INITIALIZER;

static const char *recorded_as; /* the actor whose points are recorded, NULL: nobody's */


/* --- arming --- */

static void
arm(const char *name, int nth, PointCall call, void *context)
{
	int slot;

	pthread_mutex_lock(&armed_lock);
	slot = atomic_load(&armed_count);
	if (slot == ARMED_MAX || strlen(name) >= NAME_BYTES || nth < 1)
	{
		report_error("cannot arm point \"%s\" at hit %d: %d of %d are armed, names have at most %d bytes", name, nth,
					 slot, ARMED_MAX, NAME_BYTES - 1);
		abort();
	}
	armed[slot] = (Armed){.nth = nth, .call = call, .context = context};
	memcpy(armed[slot].name, name, strlen(name) + 1);
	atomic_store(&armed_count, slot + 1);
	pthread_mutex_unlock(&armed_lock);
}

/* One write, so that the line arrives whole whatever other threads print. */
static void
print_paused(const char *name, const char *detail)
{
	char *line = string_format("PAUSED %s%s%s\n", name, detail[0] == '\0' ? "" : " ", detail);

	fflush(stdout); /* what the program printed before comes before */
	if (!file_write(STDOUT_FILENO, line, strlen(line)))
	{
		report_error("cannot announce point %s on stdout: %s", name, strerror(errno));
	}
	free(line);
}

/* Byte by byte: what follows the line belongs to the next pause. */
static void
await_release(void)
{
	char byte = '\0';
	ssize_t got;

	do
	{
		got = read(STDIN_FILENO, &byte, 1);
	} while ((got < 0 && errno == EINTR) || (got == 1 && byte != '\n'));
}

static void
pause_here(void *context, const char *name, const char *detail)
{
	(void) context;
	print_paused(name, detail);
	await_release();
}

void
point_arm_pause(const char *name, int nth)
{
	arm(name, nth, pause_here, NULL);
}

void
point_arm_call(const char *name, int nth, PointCall call, void *context)
{
	arm(name, nth, call, context);
}

void
point_disarm_all(void)
{
	pthread_mutex_lock(&armed_lock);
	atomic_store(&armed_count, 0);
	pthread_mutex_unlock(&armed_lock);
}

bool
point_record(const char *path, const char *actor)
{
	recorded_as = actor;
	return trace_open(path);
}


/* --- reaching --- */

/* Counts the hit of one slot. true: this hit is the one; the action is copied out, since others go on meanwhile. */
static bool
take_hit(int slot, const char *name, PointCall *call, void **context)
{
	bool taken = false;

	pthread_mutex_lock(&armed_lock);
	if (slot < atomic_load(&armed_count) && strcmp(armed[slot].name, name) == 0 &&
		++armed[slot].hits == armed[slot].nth)
	{
		*call = armed[slot].call;
		*context = armed[slot].context;
		taken = true;
	}
	pthread_mutex_unlock(&armed_lock);
	return taken;
}

static void
record_point(const char *name, const char *detail)
{
	TraceEvent event = {.actor = recorded_as, .kind = "point", .outcome = TRACE_DONE};
	const char *dots = strstr(detail, "..");
	const char *equals = dots;
	const char *word;
	char seen[NAME_BYTES];

	while (equals != NULL && equals > detail && *equals != '=')
	{
		equals--;
	}
	for (word = equals; word != NULL && word > detail && word[-1] != ' ';)
	{
		word--;
	}
	if (word != NULL && word < equals && (size_t) (equals - word) < sizeof(seen))
	{
		memcpy(seen, word, (size_t) (equals - word));
		seen[equals - word] = '\0';
		trace_mark(&event, TRACE_SAW, seen, strtoll(dots + 2, NULL, 10), 0);
	}
	trace_event(&event, "%s%s%s", name, detail[0] == '\0' ? "" : " ", detail);
}

void
point_reach(const char *name, const char *detail, ...)
{
	char text[DETAIL_BYTES] = "";
	PointCall call;
	void *context;
	va_list args;

	if (recorded_as == NULL && atomic_load_explicit(&armed_count, memory_order_relaxed) == 0)
	{
		return;
	}
	va_start(args, detail);
	vsnprintf(text, sizeof(text), detail, args);
	va_end(args);
	if (recorded_as != NULL)
	{
		record_point(name, text);
	}
	for (int slot = 0; slot < ARMED_MAX; slot++)
	{
		if (take_hit(slot, name, &call, &context))
		{
			call(context, name, text);
		}
	}
}


/* --- options --- */

bool
point_parse(const char *value, char *name, size_t name_size, int *nth)
{
	size_t length = strspn(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");
	int64_t number = 1;

	if (length == 0 || length >= name_size || length >= NAME_BYTES)
	{
		return false;
	}
	if (value[length] == ':')
	{
		if (!string_to_int64(value + length + 1, 1, INT_MAX, &number))
		{
			return false;
		}
	}
	else if (value[length] != '\0')
	{
		return false;
	}
	memcpy(name, value, length);
	name[length] = '\0';
	*nth = (int) number;
	return true;
}

bool
point_arm_option(const char *option, const char *value, const char *const *known)
{
	const char *const *each = known;
	char name[NAME_BYTES];
	int nth;

	if (!point_parse(value, name, sizeof(name), &nth))
	{
		report_error("%s takes POINT or POINT:N, not \"%s\"", option, value);
		return false;
	}
	while (*each != NULL && strcmp(name, *each) != 0)
	{
		each++;
	}
	if (*each == NULL)
	{
		report_error("unknown point \"%s\", did you mean %s?", name, string_nearest(name, known));
		return false;
	}
	point_arm_pause(name, nth);
	return true;
}
