/* What the cases over the relay share: its programs, what the stream holds, and likes to publish. */
#ifndef COUNTERPROOF_RELAY_LAB_H
#define COUNTERPROOF_RELAY_LAB_H

#include "32/recovery_lab.h"
#include "relay.h"

enum
{
	RELAY_ITEMS = 4,
	RELAY_BATCH = 20, /* of every program */
	RELAY_WAIT_MS = 10000
};

typedef struct
{
	Scene *scene;
	Session *lab;
	RedisServer *redis;
	int64_t events; /* written so far */
} RelayLab;

/* A like system and a Redis that is not started yet. Skips the case where there is none. */
extern RelayLab relay_lab(Scene *scene);

extern void relay_lab_start(RelayLab *lab, const char *fsync);

/* So many likes more, one event each, in one transaction. */
extern void write_likes(RelayLab *lab, int64_t count);

/* `pause` is "POINT:N", NULL: to the end. The relay and the consumer are the twin's, if it has one. */
extern Process *start_relay(RelayLab *lab, const char *pause);
extern Process *start_consumer(RelayLab *lab, const char *name, const char *claim_idle_ms, const char *pause);

/* One check of the next line that it prints; "" when it has ended and said nothing. false: it was another one. */
extern bool check_printed(RelayLab *lab, Process *program, const char *expected, const char *what);

/*
 * One check of the pause that it says it has come to; then SIGKILL, as a planned fault, until its backend, of this application
 * name, has gone. One that is somewhere else is not killed by a fault, for what would be broken then is the case.
 */
extern void kill_at(RelayLab *lab, Process *process, const char *program, const char *paused, const char *what);

/* From its pause on, to its end, with one check of what it says last. */
extern void let_go(RelayLab *lab, Process *program, const char *expected, const char *what);

/* Run to the end, with one check of what it says. */
extern void run_relay(RelayLab *lab, const char *expected, const char *what);
extern void run_consumer(RelayLab *lab, const char *name, const char *expected, const char *what);

/* The numbers in the stream, as ranges: "1..20 41..60"; "none". The caller frees. */
extern char *stream_ranges(RelayLab *lab);
extern char *ranges_of(const int64_t *numbers, size_t count);
extern void check_stream(RelayLab *lab, const char *expected, const char *what);

/* Entries given to a consumer and not acknowledged. */
extern int64_t entries_pending(RelayLab *lab);

/* Invariants 1 to 5: both audits, nothing left to do, each event once. */
extern void check_all_arrived(RelayLab *lab, const char *when);

#endif
