/*
 * One chunk of a run: claim keys, repair them in the run's mode, close them, all in one short transaction; and the same for
 * reading them again afterwards.
 */
#ifndef COUNTERPROOF_COUNTERS_CHUNK_H
#define COUNTERPROOF_COUNTERS_CHUNK_H

#include "record.h"

/* What one worker needs: its session, and the SQL of the mode, made once. Begin with chunk_prepare(). */
typedef struct
{
	Session *session;
	const Counter *counter;
	const Run *run;
	bool one_transaction; /* the caller's: maintenance, where all of the run is one */
	Text lock, write;
	int64_t from;   /* places at or below it are behind the cursor */
	int64_t keys;   /* of the last chunk */
	int64_t places; /* the last of them */
} Chunk;

extern void chunk_prepare(Chunk *chunk, Session *session, const Counter *counter, const Run *run, bool one_transaction);
extern void chunk_free(Chunk *chunk);

typedef enum
{
	CHUNK_DONE = 1, /* committed; `keys` 0: there was none to claim above `from` */
	CHUNK_AGAIN,    /* somebody was in the way, nothing changed: try again, with fewer */
	CHUNK_REFUSED,  /* a key of it has a value that the server does not take, nothing changed */
	CHUNK_FAILED    /* reported */
} ChunkEnd;

/* Repair at most `most` open keys above `from`, and move `from` behind them. */
extern ChunkEnd chunk_repair(Chunk *chunk, int64_t most);

/*
 * The one key of the last chunk, which ended CHUNK_AGAIN or CHUNK_REFUSED, cannot be had, or not be written, which is told of: it stays
 * drifted, and `from` moves behind it. false: reported.
 */
extern bool chunk_give_up(Chunk *chunk) MUST_CHECK;
extern bool chunk_refuse(Chunk *chunk) MUST_CHECK;

/* Read again `most` keys of the run above `from`, note what is wrong now, and move `from` behind them. false: reported. */
extern bool chunk_look(Chunk *chunk, int64_t most) MUST_CHECK;

/*
 * The same for keys that the run does not have yet, in the temporary table counterproof_late (place, key): those that are wrong
 * become keys of the run, found by its next pass, noted as by chunk_look(). false: reported.
 */
extern bool chunk_add_late(Chunk *chunk, int64_t most) MUST_CHECK;

#endif
