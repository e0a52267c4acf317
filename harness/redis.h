/*
 * A connection to Redis, for streams whose entries are numbered events: the only user of hiredis.
 *
 * An entry has the id `<number>-0` and carries its number; Redis itself refuses one that is not above all before it. A
 * stream is read by a group of consumers: an entry that one of them was given is pending until it is acknowledged.
 *
 * A connection belongs to one thread at a time and does not come back: once it is lost, by Redis ending too, every call
 * fails. false: reported. No call waits longer than 30 s.
 */
#ifndef COUNTERPROOF_REDIS_H
#define COUNTERPROOF_REDIS_H

#include "base.h"

typedef struct Redis Redis;

/* By its unix socket; ignores SIGPIPE from here on, which hiredis lets come. NULL: reported. */
extern Redis *redis_open(const char *socket) MUST_CHECK;
extern void redis_close(Redis *redis); /* NULL allowed */

/* One that has read its data and answers is there. Reports nothing. */
extern bool redis_accepts(const char *socket) MUST_CHECK;


/* --- a stream; *numbers are allocated, caller frees --- */

/* The highest number that it was ever given; 0 also when it is not there. */
extern bool redis_stream_last(Redis *redis, const char *stream, int64_t *last) MUST_CHECK;

/*
 * Append these numbers, which rise, if the stream's last number is `after`: all or none, in one step that nothing comes
 * between. *appended tells. The stream is made where there is none.
 */
extern bool redis_stream_append(Redis *redis, const char *stream, int64_t after, const int64_t *numbers, size_t count,
								bool *appended) MUST_CHECK;

/* Remove the entries at or below a number; *removed counts them. */
extern bool redis_stream_trim(Redis *redis, const char *stream, int64_t upto, int64_t *removed) MUST_CHECK;

/* All that it holds, in order. */
extern bool redis_stream_numbers(Redis *redis, const char *stream, int64_t **numbers, size_t *count) MUST_CHECK;


/* --- a group of consumers --- */

typedef struct
{
	const char *stream, *group, *consumer;
} RedisReader;

/*
 * The next entries that no consumer of the group was given, `most` at the most; waits so long for the first of them, 0: not
 * at all. A group that is not there, as after the loss of all data, is made, and begins with the first entry of the stream.
 */
extern bool redis_group_read(Redis *redis, const RedisReader *reader, int64_t most, int64_t wait_ms, int64_t **numbers,
							 size_t *count) MUST_CHECK;

/*
 * Take over entries that have been pending with whoever it was for so long. `cursor` (64 bytes, "0-0" at first) is where to
 * look on. Entries that have been trimmed since are no longer pending then.
 */
#define REDIS_CURSOR_BYTES 64
extern bool redis_group_claim(Redis *redis, const RedisReader *reader, int64_t idle_ms, int64_t most, char *cursor,
							  int64_t **numbers, size_t *count) MUST_CHECK;

extern bool redis_group_acknowledge(Redis *redis, const RedisReader *reader, const int64_t *numbers,
									size_t count) MUST_CHECK;

/* How many are pending, with all consumers of the group. */
extern bool redis_group_pending(Redis *redis, const RedisReader *reader, int64_t *pending) MUST_CHECK;


/* --- for a lab --- */

extern bool redis_execute(Redis *redis, const char *command) MUST_CHECK; /* words between blanks: INCR lab */

/* A number of INFO, by its name. */
extern bool redis_info(Redis *redis, const char *field, int64_t *value) MUST_CHECK;

#endif
