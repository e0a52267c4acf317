#include "redis_server.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "reaper.h"
#include "redis.h"

#define END_MS 5000
#define REMOVE_MS 20000

/*
 * One program under two names, of which the other is in Debian's package without a service. It is what the name says by
 * which it is called.
 */
#define PROGRAM "redis-check-rdb"
#define CALLED "redis-server"

#define LOG "redis.log"
#define SYNC_THREAD "bio_aof"
#define WROTE_UNSYNCED "Asynchronous AOF fsync is taking too long"

struct RedisServer
{
	char *directory, *socket;
	Process *process;
	int slot; /* the directory's, with the reaper */
	int group_slot;
};

const char *
redis_server_missing(void)
{
	char *program = process_find_program(PROGRAM, NULL);
	const char *why = program != NULL ? NULL : "there is no Redis on this machine (Debian: redis-tools)";

	free(program);
	return why;
}


/* --- starting --- */

/* The name by which the program is a server, as a link in the directory. Caller frees. NULL: reported. */
static char *
link_make(const char *directory)
{
	char *program = process_find_program(PROGRAM, NULL);
	char *link = string_format("%s/" CALLED, directory);

	if (program == NULL || (symlink(program, link) != 0 && errno != EEXIST))
	{
		report_error("cannot make %s: %s", link, program != NULL ? strerror(errno) : redis_server_missing());
		free(link);
		link = NULL;
	}
	free(program);
	return link;
}

/*
 * Its data are in <directory>/data, which its command line goes on naming: so the reaper finds it. `lasting`: it outlives
 * this process.
 */
static Process *
launch(const char *directory, const char *fsync, bool lasting)
{
	char *program = link_make(directory);
	char *data = string_format("%s/data", directory);
	char *socket = string_format("%s/socket", directory);
	char *log = string_format("%s/" LOG, directory);
	const char *argv[] = {program, "--port",       "0",   "--unixsocket",     socket, "--dir",
						  data,    "--appendonly", "yes", "--appendfsync",    NULL,   "--set-proc-title",
						  "no",    "--save",       "",    "--unixsocketperm", "700",  NULL};
	ProcessSpec spec = {
		.argv = argv, .output_file = log, .own_session = lasting, .own_group = !lasting, .dies_with_us = !lasting};
	Process *process = NULL;

	argv[10] = fsync;
	if (program != NULL && mkdir(data, 0700) != 0 && errno != EEXIST)
	{
		report_error("cannot make %s: %s", data, strerror(errno));
	}
	else if (program != NULL)
	{
		process = process_start(&spec);
	}
	free(program);
	free(data);
	free(socket);
	free(log);
	return process;
}

typedef struct
{
	Process *process;
	const char *socket;
} Start;

static ProbeAnswer
probe_answers(void *context, Text *seen)
{
	const Start *start = context;
	ProcessEnd end;

	if (process_poll(start->process, &end))
	{
		process_end_describe(end, seen);
		report_error("Redis ended while it was starting: %s", text_get(seen));
		return PROBE_FAILED;
	}
	text_append(seen, "no answer at %s", start->socket);
	return redis_accepts(start->socket) ? PROBE_DONE : PROBE_AGAIN;
}

static bool
await_answer(Process *process, const char *socket, Deadline deadline)
{
	return wait_until("Redis to answer", deadline, probe_answers, &(Start){process, socket});
}


/* --- one that is ours --- */

RedisServer *
redis_server_create(const char *scratch)
{
	RedisServer *server = memory_get(sizeof(*server));
	char *directory = string_format("%s/cp-redis-XXXXXX", scratch);

	server->group_slot = -1;
	server->slot = reaper_make_directory(directory);
	if (server->slot < 0)
	{
		free(directory);
		free(server);
		return NULL;
	}
	server->directory = directory;
	server->socket = string_format("%s/socket", directory);
	return server;
}

static void
forget_process(RedisServer *server)
{
	process_free(server->process);
	server->process = NULL;
	if (server->group_slot >= 0)
	{
		reaper_leave(server->group_slot);
	}
	server->group_slot = -1;
}

bool
redis_server_start(RedisServer *server, const char *fsync, Deadline deadline)
{
	forget_process(server);
	server->process = launch(server->directory, fsync, false);
	if (server->process == NULL)
	{
		return false;
	}
	server->group_slot = reaper_enter_group(process_pid(server->process));
	return server->group_slot >= 0 && await_answer(server->process, server->socket, deadline);
}

Process *
redis_server_process(const RedisServer *server)
{
	return server->process;
}

const char *
redis_server_socket(const RedisServer *server)
{
	return server->socket;
}

bool
redis_server_hold_sync(RedisServer *server)
{
	return process_hold_thread(server->process, SYNC_THREAD);
}

bool
redis_server_unsynced_writes(const RedisServer *server, int64_t *count)
{
	char *path = string_format("%s/" LOG, server->directory);
	Text log = {0};
	bool done = file_read(path, &log);

	*count = 0;
	for (const char *at = text_get(&log); (at = strstr(at, WROTE_UNSYNCED)) != NULL; at++)
	{
		(*count)++;
	}
	text_free(&log);
	free(path);
	return done;
}

bool
redis_server_lose_data(RedisServer *server)
{
	char *data = string_format("%s/data", server->directory);
	bool done = process_remove_directory(data, deadline_in_ms(REMOVE_MS));

	free(data);
	return done;
}

bool
redis_server_free(RedisServer *server)
{
	bool done;

	if (server == NULL)
	{
		return true;
	}
	forget_process(server);
	done = process_remove_directory(server->directory, deadline_in_ms(REMOVE_MS));
	reaper_leave(server->slot);
	free(server->directory);
	free(server->socket);
	free(server);
	return done;
}


/* --- one that stays --- */

static bool
start_lasting(const char *folder, const char *socket, Deadline deadline)
{
	Process *process = launch(folder, "everysec", true);
	bool done = process != NULL && await_answer(process, socket, deadline);

	if (done)
	{
		process_release(process);
	}
	else
	{
		process_free(process);
	}
	return done;
}

bool
redis_server_stay(const char *folder, Deadline deadline)
{
	char *whole = mkdir(folder, 0700) == 0 || errno == EEXIST ? realpath(folder, NULL) : NULL;
	char *socket = string_format("%s/socket", whole != NULL ? whole : folder);
	int lock = whole != NULL ? open(whole, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	bool done = lock >= 0 && flock(lock, LOCK_EX) == 0;

	if (!done)
	{
		report_error("cannot use the folder %s: %s", folder, strerror(errno));
	}
	done = done && (redis_accepts(socket) || start_lasting(whole, socket, deadline));
	if (lock >= 0)
	{
		close(lock);
	}
	free(socket);
	free(whole);
	return done;
}
