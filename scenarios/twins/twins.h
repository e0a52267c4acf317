/*
 * Twins: the system with exactly one choice made wrong, each with the guard that it lacks and the check that catches it.
 *
 * What is wrong is SQL, files of the right ones' names below sql/<system>/mutants/<id>/ that are loaded over them, or steps
 * of a client or consumer, exchanged for the right ones. Where a guard lies behind another, a twin lacks the pair.
 *
 * A design of the like system that does otherwise what a twin does wrong has the twin's files of its own, below
 * sql/like/designs/<name>/mutants/<id>/.
 */
#ifndef COUNTERPROOF_TWINS_H
#define COUNTERPROOF_TWINS_H

#include "like.h"
#include "request.h"

/*
 * What clients and consumers do, as far as a twin may do it otherwise; each stands for the function of the same name. A
 * twin names only what it does otherwise.
 */
typedef struct
{
	bool (*prepare)(Session *session);
	bool (*set)(Session *session, int64_t user, int64_t item, bool want, LikeResult *result);
	bool (*deliver)(Session *session, const int64_t *seqs, size_t count, int batch, LikeTotals *totals);
	bool (*snapshot)(Session *session, LikeSnapshot *snapshot);
	bool (*install)(Session *session, int64_t snapshot_seq, const LikeBaseline *baseline, Isolation isolation,
					LikeInstall *install);
	bool (*recovery_horizon)(Session *session, uint64_t *horizon);
	/* BEGIN, the parts in their order (ended by NULL), COMMIT; all of it again after 40001 or 40P01. */
	SqlStatus (*transaction)(Session *session, Isolation isolation, const TransactionBody *parts, void *context);
	RequestIdentity request_identity;
	const char *const *consumer; /* the consumer's program and its first arguments, ended by NULL */
	const char *const *relay, *const *stream_consumer; /* the same */
} ClientSteps;

extern const ClientSteps right_steps;

/* The right .transaction: session_transaction() over all parts. */
extern SqlStatus transaction_whole(Session *session, Isolation isolation, const TransactionBody *parts, void *context);

typedef struct
{
	const char *id;           /* "M10a" */
	const char *layer;        /* write, consumer, rebuild, audit, read, client, server */
	const char *wrong;        /* what it does, in a few words */
	const char *guard;        /* what the right system does instead */
	const char *source;       /* the rule that the guard keeps, by its name in README.md, or a section of the manual */
	const char *caught_in;    /* the case that is known to catch it: "32-G" */
	const char *caught_by;    /* part of the text of a check of that case which must fail */
	const char *design;       /* the only one that has the guard; NULL: all, or what twin_design() says */
	const ClientSteps *steps; /* NULL: all are the right ones */
} Twin;

extern const Twin twins[]; /* ended by a row without an id */
extern int twin_count(void);

/* NULL: there is none of that name. */
extern const Twin *twin_find(const char *id);

/* What it does otherwise, and the right steps for the rest. */
extern ClientSteps twin_steps(const Twin *twin);

/* false: there is none of that name; reported with the nearest (EXIT_CODE_NO_MATCH). */
extern bool twin_known(const char *id) MUST_CHECK;

/*
 * The design over which a twin runs where `design` was asked for: its only one with the default, else `design`. NULL: that
 * design does not have the guard; *why says what it has, `why` may be NULL.
 */
extern const char *twin_design(const Twin *twin, const char *design, const char **why);

/* false: that design does not have its guard; reported (EXIT_CODE_NO_MATCH). */
extern bool twin_fits(const Twin *twin, const char *design) MUST_CHECK;

#endif
