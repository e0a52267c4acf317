#include "relay_lab.h"

#include <stdlib.h>
#include <string.h>

#define BATCH "20"
#define PATIENCE_MS "5000" /* nobody is waited for longer who holds entries */
#define CLAIM_IDLE_MS "50"

enum
{
	WORDS_MAX = 20
};

RelayLab
relay_lab(Scene *scene)
{
	RelayLab lab = {.scene = scene, .redis = scene_redis(scene)};

	lab.lab = like_lab(scene, RELAY_ITEMS);
	return lab;
}

void
relay_lab_start(RelayLab *lab, const char *fsync)
{
	require(lab->scene, redis_server_start(lab->redis, fsync, scene_deadline(lab->scene, RELAY_WAIT_MS)));
}

void
write_likes(RelayLab *lab, int64_t count)
{
	require(lab->scene, session_begin(lab->lab, READ_COMMITTED));
	for (int64_t i = 0; i < count; i++)
	{
		int64_t user = lab->events + 1;
		LikeResult result = set_like_within(lab->scene, lab->lab, user, 1 + user % RELAY_ITEMS, true);

		expect_changed(lab->scene, &result, user);
		lab->events++;
	}
	commit(lab->scene, lab->lab);
}


/* --- programs --- */

typedef struct
{
	const char *words[WORDS_MAX];
	size_t count;
} Words;

static void
add_option(Words *words, const char *name, const char *value)
{
	if (value != NULL)
	{
		words->words[words->count++] = name;
		words->words[words->count++] = value;
	}
}

/* The program and its first arguments, and what all of them take. */
static Words
words_of(RelayLab *lab, const char *const *program, const char *pause)
{
	Words words = {.words = {scene_program(lab->scene, program[0])}, .count = 1};

	while (program[words.count] != NULL)
	{
		words.words[words.count] = program[words.count];
		words.count++;
	}
	add_option(&words, "--conninfo", scene_conninfo(lab->scene));
	add_option(&words, "--redis", redis_server_socket(lab->redis));
	add_option(&words, "--batch", BATCH);
	add_option(&words, "--pause-at", pause);
	add_option(&words, "--trace", scene_trace(lab->scene));
	return words;
}

Process *
start_relay(RelayLab *lab, const char *pause)
{
	Words words = words_of(lab, steps()->relay, pause);

	return scene_start(lab->scene, &(ProcessSpec){.argv = words.words});
}

Process *
start_consumer(RelayLab *lab, const char *name, const char *claim_idle_ms, const char *pause)
{
	Words words = words_of(lab, steps()->stream_consumer, pause);

	add_option(&words, "--name", name);
	add_option(&words, "--claim-idle", claim_idle_ms);
	add_option(&words, "--patience", PATIENCE_MS);
	return scene_start(lab->scene, &(ProcessSpec){.argv = words.words});
}

bool
check_printed(RelayLab *lab, Process *program, const char *expected, const char *what)
{
	Text line = {0};
	bool ended = false;
	bool held;

	if (!process_read_line(program, &line, scene_deadline(lab->scene, RELAY_WAIT_MS), &ended) && !ended)
	{
		scene_broken(lab->scene, "%s: nothing was said in time", what);
	}
	note(lab->scene, "%s", text_get(&line));
	held = check_text(lab->scene, text_get(&line), expected, "%s", what);
	text_free(&line);
	return held;
}

void
kill_at(RelayLab *lab, Process *process, const char *program, const char *paused, const char *what)
{
	if (check_printed(lab, process, paused, what))
	{
		Fault *fault = scene_fault(lab->scene, "kill -9 %s, %s", program, paused);

		require(lab->scene,
				fault_kill(fault, scene_history(lab->scene), process, scene_deadline(lab->scene, RELAY_WAIT_MS)));
	}
	scene_free_process(lab->scene, process);
	scene_await_int(
		lab->scene, lab->lab, 0,
		"SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = $1",
		ARGS(arg_text(program)));
}

static void
end(RelayLab *lab, Process *program)
{
	ProcessEnd how = {0};

	require(lab->scene, process_wait(program, scene_deadline(lab->scene, RELAY_WAIT_MS), &how));
	scene_free_process(lab->scene, program);
}

void
let_go(RelayLab *lab, Process *program, const char *expected, const char *what)
{
	require(lab->scene, process_write_line(program, ""));
	(void) check_printed(lab, program, expected, what);
	end(lab, program);
}

void
run_relay(RelayLab *lab, const char *expected, const char *what)
{
	Process *relay = start_relay(lab, NULL);

	(void) check_printed(lab, relay, expected, what);
	end(lab, relay);
}

void
run_consumer(RelayLab *lab, const char *name, const char *expected, const char *what)
{
	Process *consumer = start_consumer(lab, name, CLAIM_IDLE_MS, NULL);

	(void) check_printed(lab, consumer, expected, what);
	end(lab, consumer);
}


/* --- the stream --- */

static Redis *
look_into(RelayLab *lab)
{
	Redis *redis = redis_open(redis_server_socket(lab->redis));

	require(lab->scene, redis != NULL);
	return redis;
}

char *
ranges_of(const int64_t *numbers, size_t count)
{
	Text text = {0};
	char *ranges;

	for (size_t from = 0, to; from < count; from = to + 1)
	{
		to = from;
		while (to + 1 < count && numbers[to + 1] == numbers[to] + 1)
		{
			to++;
		}
		text_append(&text, "%s%lld..%lld", from == 0 ? "" : " ", (long long) numbers[from], (long long) numbers[to]);
	}
	ranges = string_copy(count == 0 ? "none" : text_get(&text));
	text_free(&text);
	return ranges;
}

char *
stream_ranges(RelayLab *lab)
{
	Redis *redis = look_into(lab);
	int64_t *numbers = NULL;
	size_t count = 0;
	bool done = redis_stream_numbers(redis, RELAY_STREAM, &numbers, &count);
	char *ranges = ranges_of(numbers, count);

	redis_close(redis);
	free(numbers);
	require(lab->scene, done);
	return ranges;
}

void
check_stream(RelayLab *lab, const char *expected, const char *what)
{
	char *ranges = stream_ranges(lab);

	check_text(lab->scene, ranges, expected, "%s: events in the stream", what);
	free(ranges);
}

int64_t
entries_pending(RelayLab *lab)
{
	Redis *redis = look_into(lab);
	int64_t pending = 0;
	bool done = redis_group_pending(redis, &(RedisReader){.stream = RELAY_STREAM, .group = RELAY_GROUP}, &pending);

	redis_close(redis);
	require(lab->scene, done);
	return pending;
}

void
check_all_arrived(RelayLab *lab, const char *when)
{
	check_write_side(lab->scene, lab->lab, when);
	check_drained(lab->scene, lab->lab, when);
	CHECK_EQ(lab->scene, number_of(lab->scene, lab->lab, "SELECT count(*) FROM processed_event", NO_ARGS), lab->events,
			 "%s: events that took effect", when);
}
