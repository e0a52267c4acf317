/*
 * What the cases of suite 32 share: a database with the like system in it, requests and deliveries that end the case
 * when the lab fails, the tally that no outcome escapes, and the audits as printed lines and as checks.
 *
 * Functions that take a Scene belong to the case's own thread; workers use recorded_set() and the tally.
 */
#ifndef COUNTERPROOF_LAB_H
#define COUNTERPROOF_LAB_H

#include <stdatomic.h>

#include "design.h"
#include "scenario.h"
#include "twins/twins.h"


/* --- the database and its clients --- */

/*
 * What clients and consumers do here: the right steps, or those of the twin that --variant names. The same for all threads
 * of a case.
 */
extern const ClientSteps *steps(void);

/* The design of the like system that this case runs on. The same for all threads of a case. */
extern const LikeDesign *design(void);

/* After a system was created: choose the steps, and load the twin's SQL, sql/<system>/mutants/<id>/, if it has any. */
extern void load_twin(Scene *scene, Session *session, const char *system);

/* Of one file of the right system, "like/consume.sql", that has just been loaded: the twin's in its place, if there is one. */
extern void load_twin_file(Scene *scene, Session *session, const char *path);

/* Over a like system: a part of it, the files of sql/like/parts/<part>/, and what the twin has instead of them. */
extern void load_part(Scene *scene, Session *session, const char *part);

/*
 * Create the like system, or its twin, with items 1..items, labelled item-lab-01 and on. Answers the lab's own prepared
 * session. The design is the one that --design names, or what the case is about. What the case states differently on it
 * stands in restated.c.
 */
extern Session *like_lab(Scene *scene, int items);
extern Session *like_lab_of(Scene *scene, const LikeDesign *design, int items);

/* Another client: a session with its statements prepared. Opened here, it may then be given to a worker. */
extern Session *like_client(Scene *scene, const char *name);

#define LABEL_SIZE 32
extern void item_label(int64_t item, char label[LABEL_SIZE]); /* item-lab-01 */

/* The single number that a query answers. */
extern int64_t number_of(Scene *scene, Session *session, const char *sql, const SqlArg *args, int count);

/* One check of the single value that a query answers, as text; "" for NULL. */
extern void check_query(Scene *scene, Session *session, const char *sql, const SqlArg *args, int count,
						const char *expected, const char *format, ...) PRINTF_LIKE(7, 8);

extern int64_t facts_of(Scene *scene, Session *session, int64_t item); /* rows of this item with liked = true */
extern int64_t last_number(Scene *scene, Session *session);            /* the number of events, all numbered */

/*
 * Cases count events 1, 2, 3 and on as they came, in SEQS() and in what they expect to read. A design may call them
 * otherwise; view lab_event has both (sql/lab/events.sql). to_event() is what the system calls this one; to_events() does so
 * in place for a list, and is for workers too: false: the session is lost, reported.
 */
extern int64_t to_event(Scene *scene, Session *session, int64_t number);
extern bool to_events(Session *session, int64_t *numbers, size_t count) MUST_CHECK;

/* All that is committed gets its number, where writers leave that to others. A refusal is a failed check. */
extern void number_events(Scene *scene, Session *session);

/* Start workers, let them go at once, and wait for all. What they share must outlive a case that ends early. */
extern void run_workers(Scene *scene, const char *name, int workers, ActorBody body, void *context);

/* Wait until workers have brought the counter there, or until `latest`. false: reported, it took far longer. */
extern bool await_counter(const char *what, atomic_llong *counter, int64_t target, Deadline latest) MUST_CHECK;


/* --- requests --- */

/* Where its event has no number yet, all get theirs, and the answer is told with it. */
extern LikeResult set_like(Scene *scene, Session *session, int64_t user, int64_t item, bool want);

/* The two halves of it; the second also tells what the system calls the event by its number in the case. */
extern LikeResult request_like(Scene *scene, Session *session, int64_t user, int64_t item, bool want);
extern void learn_number(Scene *scene, Session *session, int64_t user, int64_t item, LikeResult *result);

/* In the transaction block that the session has open. */
extern LikeResult set_like_within(Scene *scene, Session *session, int64_t user, int64_t item, bool want);

/*
 * Send a request that is expected to wait, as a transaction of its own; its answer, told as by set_like(), once it need not
 * wait any longer. One at a time.
 */
extern void send_like(Scene *scene, Session *session, int64_t user, int64_t item, bool want);
extern LikeResult await_like(Scene *scene, Session *session);

/* One check: the request or batch that `waiter` was sent is seen waiting for a lock, and is not over already. */
extern void check_waits(Scene *scene, Session *observer, Session *waiter, const char *format, ...) PRINTF_LIKE(4, 5);

/* And that it is over and has not waited. */
extern bool check_goes_on(Scene *scene, Session *observer, Session *session, const char *what);

/* One check of the whole answer: "CHANGED(liked, v1, seq=1)", as like_describe() tells it. */
extern void check_answer(Scene *scene, const LikeResult *result, const char *expected, const char *format, ...)
	PRINTF_LIKE(4, 5);

/* For workers: a request with its invocation and its end on record. false: reported. */
extern bool recorded_set(History *history, int worker, Session *session, int64_t user, int64_t item, bool want,
						 LikeResult *result) MUST_CHECK;


/* --- what became of the requests: one tally a worker, merged after the join --- */

typedef struct
{
	int64_t requests, changed, noop, rejected, unknown;
	int64_t unexpected;       /* rejected or unknown with a SQLSTATE other than 23503 */
	char first_unexpected[6]; /* "" when there is none */
} LikeTally;

extern void tally_add(LikeTally *tally, const LikeResult *result);
extern void tally_merge(LikeTally *sum, const LikeTally *part);

/*
 * Three checks: CHANGED + NOOP + REJECTED = the requests that were to be sent, no unexpected SQLSTATE, and nothing that had
 * to be retried: the lock order leaves no deadlock, and Read Committed no serialization failure.
 */
extern void check_tally(Scene *scene, const LikeTally *tally, int64_t requests);

/*
 * Operations on record whose events had no number when they were answered get the one that they have now, and those whose
 * events are called otherwise the number that they have in the case; 0 where there is no such event.
 */
extern void learn_numbers(Scene *scene, Session *session, HistoryOp *ops, size_t count);

/* The independent judge over this case's history: one check. Numbers are learned by a session of its own, or by this one. */
extern void judge_history(Scene *scene, const char *what);
extern void judge_history_by(Scene *scene, Session *session, const char *what);


/* --- deliveries --- */

#define SEQS(...) (const int64_t[]){__VA_ARGS__}, sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)

/* Deliver the events of these numbers as one batch. A batch that the server refuses is a failed check, and its totals are 0. */
extern LikeTotals deliver(Scene *scene, Session *session, const int64_t *numbers, size_t count);

/* The watermark of all events in the place of what a batch tells, where that may be of less than all. */
extern void tell_watermark(Scene *scene, Session *session, LikeTotals *totals);

/* Deliver all that is left, from the watermark on. Totals are of this call alone. */
extern LikeTotals drain(Scene *scene, Session *session);

/* Forget every delivery: nothing processed, counts and baselines 0, watermark 0. The events stay. */
extern void clear_derived(Scene *scene, Session *session);

/* One check of all four: "applied=4 covered=0 dup=0 watermark=4". */
extern void check_totals(Scene *scene, const LikeTotals *totals, const char *expected, const char *format, ...)
	PRINTF_LIKE(4, 5);


/* --- reading --- */

extern LikeCount read_count(Scene *scene, Session *session, int64_t item, int64_t allowed_lag);

/* One check of all four: "n=14 lag=10 pending=6 stale=false". Answers what was read. */
extern LikeCount check_count(Scene *scene, Session *session, int64_t item, int64_t allowed_lag, const char *expected,
							 const char *format, ...) PRINTF_LIKE(6, 7);


/* --- audits: each prints its line --- */

extern LikeWriteAudit audit_write_side(Scene *scene, Session *session);
extern LikeReadAudit audit_read_side(Scene *scene, Session *session);

/* One check: the write side is clean. */
extern void check_write_side(Scene *scene, Session *session, const char *when);

/* Two checks: the write side is clean, and the read side's identity, bound, watermark and lag hold. */
extern void check_audits_clean(Scene *scene, Session *session, const char *when);

/* Three checks: the read side holds, lag is 0, and every count equals its facts. */
extern void check_drained(Scene *scene, Session *session, const char *when);

#endif
