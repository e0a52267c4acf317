#include "redis.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#define ANSWER_S 30
#define CONNECT_S 5
#define NUMBER_BYTES 24
#define TOLERATE(...) ((const char *const[]){__VA_ARGS__, NULL})
#define NO_GROUP TOLERATE("NOGROUP", "UNBLOCKED")

struct Redis
{
	redisContext *context;
};

/* Compared as text: a number of Lua is a double. A stream that is not there has no last id, and is as good as empty. */
static const char append_script[] =
	"local last = '0' "
	"local info = redis.pcall('XINFO', 'STREAM', KEYS[1]) "
	"for i = 1, #info, 2 do "
	"  if info[i] == 'last-generated-id' then last = string.match(info[i + 1], '^%d+') end "
	"end "
	"if last ~= ARGV[1] then return 0 end "
	"for i = 2, #ARGV do redis.call('XADD', KEYS[1], ARGV[i] .. '-0', 'event', ARGV[i]) end "
	"return 1";


/* --- life --- */

static redisContext *
connect_to(const char *socket)
{
	redisContext *context = redisConnectUnixWithTimeout(socket, (struct timeval){.tv_sec = CONNECT_S});

	if (context != NULL && context->err == 0)
	{
		(void) redisSetTimeout(context, (struct timeval){.tv_sec = ANSWER_S});
	}
	return context;
}

Redis *
redis_open(const char *socket)
{
	redisContext *context;
	Redis *redis;

	(void) signal(SIGPIPE, SIG_IGN);
	context = connect_to(socket);
	if (context == NULL || context->err != 0)
	{
		report_error("cannot connect to Redis at %s: %s", socket, context != NULL ? context->errstr : strerror(ENOMEM));
		if (context != NULL)
		{
			redisFree(context);
		}
		return NULL;
	}
	redis = memory_get(sizeof(*redis));
	redis->context = context;
	return redis;
}

void
redis_close(Redis *redis)
{
	if (redis != NULL)
	{
		redisFree(redis->context);
		free(redis);
	}
}

bool
redis_accepts(const char *socket)
{
	redisContext *context = connect_to(socket);
	redisReply *reply = context != NULL && context->err == 0 ? redisCommand(context, "PING") : NULL;
	bool accepts = reply != NULL && reply->type == REDIS_REPLY_STATUS;

	if (reply != NULL)
	{
		freeReplyObject(reply);
	}
	if (context != NULL)
	{
		redisFree(context);
	}
	return accepts;
}


/* --- commands and answers --- */

/* A command on its way to be sent: words that it owns. */
typedef struct
{
	char **words;
	int count, capacity;
} Command;

static void
add_word(Command *command, const char *word)
{
	if (command->count == command->capacity)
	{
		command->capacity = 2 * command->capacity + 16;
		command->words = memory_grow(command->words, (size_t) command->capacity * sizeof(*command->words));
	}
	command->words[command->count++] = string_copy(word);
}

static void
add_number(Command *command, int64_t number, const char *ending)
{
	char word[NUMBER_BYTES + 4];

	snprintf(word, sizeof(word), "%" PRId64 "%s", number, ending);
	add_word(command, word);
}

/* Words end with NULL. */
static Command
command_of(const char *const *words)
{
	Command command = {0};

	for (; *words != NULL; words++)
	{
		add_word(&command, *words);
	}
	return command;
}

#define COMMAND(...) command_of((const char *const[]){__VA_ARGS__, NULL})

static void
command_free(Command *command)
{
	for (int i = 0; i < command->count; i++)
	{
		free(command->words[i]);
	}
	free(command->words);
}

static bool
is_among(const char *error, const char *const *words)
{
	bool found = false;

	for (; words != NULL && *words != NULL && !found; words++)
	{
		found = strncmp(error, *words, strlen(*words)) == 0;
	}
	return found;
}

/*
 * Send it and wait; frees the command. An error that begins with one of `tolerated` (NULL: none is) is no answer, *reply is
 * NULL. false: reported.
 */
static bool
run(Redis *redis, Command command, const char *const *tolerated, redisReply **reply)
{
	bool done = true;

	*reply = redisCommandArgv(redis->context, command.count, (const char **) command.words, NULL);
	if (*reply == NULL)
	{
		report_error("Redis does not answer %s: %s", command.words[0], redis->context->errstr);
		done = false;
	}
	else if ((*reply)->type == REDIS_REPLY_ERROR)
	{
		done = is_among((*reply)->str, tolerated);
		if (!done)
		{
			report_error("Redis refuses %s: %s", command.words[0], (*reply)->str);
		}
		freeReplyObject(*reply);
		*reply = NULL;
	}
	command_free(&command);
	return done;
}

/* Of one whose answer is a number. */
static bool
run_integer(Redis *redis, Command command, int64_t *value)
{
	redisReply *reply;

	if (!run(redis, command, NULL, &reply))
	{
		return false;
	}
	*value = reply->integer;
	freeReplyObject(reply);
	return true;
}

/* Of an answer that is not of the shape that the manual gives. */
static bool
complain(const char *command)
{
	report_error("Redis answers %s in a form that is not known here", command);
	return false;
}

static const redisReply *
element(const redisReply *reply, size_t index)
{
	return reply != NULL && reply->type == REDIS_REPLY_ARRAY && index < reply->elements ? reply->element[index] : NULL;
}

/* Entries [[id, [field, value]], ...]; Redis 6 has nil for one that was trimmed. NULL or nil: none. */
static void
take_numbers(const redisReply *entries, int64_t **numbers, size_t *count)
{
	size_t most = entries != NULL && entries->type == REDIS_REPLY_ARRAY ? entries->elements : 0;

	*numbers = memory_get((most + 1) * sizeof(**numbers));
	*count = 0;
	for (size_t i = 0; i < most; i++)
	{
		const redisReply *id = element(element(entries, i), 0);

		if (id != NULL && id->type == REDIS_REPLY_STRING)
		{
			(*numbers)[(*count)++] = strtoll(id->str, NULL, 10);
		}
	}
}


/* --- a stream --- */

bool
redis_stream_last(Redis *redis, const char *stream, int64_t *last)
{
	redisReply *reply;
	bool found = false;

	*last = 0;
	if (!run(redis, COMMAND("XINFO", "STREAM", stream), TOLERATE("ERR no such key"), &reply))
	{
		return false;
	}
	if (reply == NULL)
	{
		return true;
	}
	for (size_t i = 0; !found && i + 1 < reply->elements; i += 2)
	{
		const redisReply *name = element(reply, i), *id = element(reply, i + 1);

		found = id->type == REDIS_REPLY_STRING && strcmp(name->str, "last-generated-id") == 0;
		*last = found ? strtoll(id->str, NULL, 10) : 0;
	}
	freeReplyObject(reply);
	return found || complain("XINFO");
}

bool
redis_stream_append(Redis *redis, const char *stream, int64_t after, const int64_t *numbers, size_t count,
					bool *appended)
{
	Command command = COMMAND("EVAL", append_script, "1", stream);
	int64_t done = 0;

	add_number(&command, after, "");
	for (size_t i = 0; i < count; i++)
	{
		add_number(&command, numbers[i], "");
	}
	if (!run_integer(redis, command, &done))
	{
		return false;
	}
	*appended = done == 1;
	return true;
}

bool
redis_stream_trim(Redis *redis, const char *stream, int64_t upto, int64_t *removed)
{
	Command command = COMMAND("XTRIM", stream, "MINID", "=");

	add_number(&command, upto + 1, "-0");
	return run_integer(redis, command, removed);
}

bool
redis_stream_numbers(Redis *redis, const char *stream, int64_t **numbers, size_t *count)
{
	redisReply *reply;

	if (!run(redis, COMMAND("XRANGE", stream, "-", "+"), NULL, &reply))
	{
		return false;
	}
	take_numbers(reply, numbers, count);
	freeReplyObject(reply);
	return true;
}


/* --- a group --- */

/* Another consumer may have made it meanwhile. */
static bool
make_group(Redis *redis, const RedisReader *reader)
{
	redisReply *reply;

	if (!run(redis, COMMAND("XGROUP", "CREATE", reader->stream, reader->group, "0", "MKSTREAM"), TOLERATE("BUSYGROUP"),
			 &reply))
	{
		return false;
	}
	if (reply != NULL)
	{
		freeReplyObject(reply);
	}
	return true;
}

static Command
read_command(const RedisReader *reader, int64_t most, int64_t wait_ms)
{
	Command command = COMMAND("XREADGROUP", "GROUP", reader->group, reader->consumer, "COUNT");

	add_number(&command, most, "");
	if (wait_ms > 0)
	{
		add_word(&command, "BLOCK");
		add_number(&command, wait_ms, "");
	}
	add_word(&command, "STREAMS");
	add_word(&command, reader->stream);
	add_word(&command, ">");
	return command;
}

/* No answer: there is no group, or it went while the call was waiting. */
bool
redis_group_read(Redis *redis, const RedisReader *reader, int64_t most, int64_t wait_ms, int64_t **numbers,
				 size_t *count)
{
	redisReply *reply;

	if (!run(redis, read_command(reader, most, wait_ms), NO_GROUP, &reply))
	{
		return false;
	}
	if (reply == NULL &&
		(!make_group(redis, reader) || !run(redis, read_command(reader, most, wait_ms), NO_GROUP, &reply)))
	{
		return false;
	}
	/* [[stream, entries]], or nil for none */
	take_numbers(element(element(reply, 0), 1), numbers, count);
	if (reply != NULL)
	{
		freeReplyObject(reply);
	}
	return true;
}

bool
redis_group_claim(Redis *redis, const RedisReader *reader, int64_t idle_ms, int64_t most, char *cursor,
				  int64_t **numbers, size_t *count)
{
	Command command = COMMAND("XAUTOCLAIM", reader->stream, reader->group, reader->consumer);
	redisReply *reply;

	add_number(&command, idle_ms, "");
	add_word(&command, cursor);
	add_word(&command, "COUNT");
	add_number(&command, most, "");
	if (!run(redis, command, NO_GROUP, &reply))
	{
		return false;
	}
	/* [next cursor, entries, ids of those that were trimmed]; without a group nothing is pending */
	take_numbers(element(reply, 1), numbers, count);
	snprintf(cursor, REDIS_CURSOR_BYTES, "%s", reply != NULL ? element(reply, 0)->str : "0-0");
	if (reply != NULL)
	{
		freeReplyObject(reply);
	}
	return true;
}

bool
redis_group_acknowledge(Redis *redis, const RedisReader *reader, const int64_t *numbers, size_t count)
{
	Command command = COMMAND("XACK", reader->stream, reader->group);
	int64_t acknowledged;

	for (size_t i = 0; i < count; i++)
	{
		add_number(&command, numbers[i], "-0");
	}
	return run_integer(redis, command, &acknowledged);
}

bool
redis_group_pending(Redis *redis, const RedisReader *reader, int64_t *pending)
{
	redisReply *reply;

	*pending = 0;
	if (!run(redis, COMMAND("XPENDING", reader->stream, reader->group), NO_GROUP, &reply))
	{
		return false;
	}
	if (reply != NULL)
	{
		*pending = element(reply, 0)->integer;
		freeReplyObject(reply);
	}
	return true;
}


/* --- for a lab --- */

bool
redis_execute(Redis *redis, const char *command)
{
	char *copy = string_copy(command), *rest = copy;
	const char *word;
	Command words = {0};
	redisReply *reply;
	bool done;

	while ((word = strsep(&rest, " ")) != NULL)
	{
		add_word(&words, word);
	}
	done = run(redis, words, NULL, &reply);
	if (done)
	{
		freeReplyObject(reply);
	}
	free(copy);
	return done;
}

bool
redis_info(Redis *redis, const char *field, int64_t *value)
{
	char *line = string_format("\r\n%s:", field);
	const char *at;
	redisReply *reply;

	if (!run(redis, COMMAND("INFO"), NULL, &reply))
	{
		free(line);
		return false;
	}
	at = strstr(reply->str, line);
	if (at != NULL)
	{
		*value = strtoll(at + strlen(line), NULL, 10);
	}
	else
	{
		report_error("Redis says nothing of %s", field);
	}
	freeReplyObject(reply);
	free(line);
	return at != NULL;
}
