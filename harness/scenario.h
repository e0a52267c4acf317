/*
 * What a case is, and all that an author of one needs.
 *
 * Verbs that cannot do their work end the case as BROKEN and do not return: its top function takes over, and all that
 * the scene handed out (sessions, programs, the cluster) is given back there. They and the checks belong to the thread
 * that runs the case; workers (actor.h) use sessions of their own and answer false.
 */
#ifndef COUNTERPROOF_SCENARIO_H
#define COUNTERPROOF_SCENARIO_H

#include "actor.h"
#include "base.h"
#include "cluster.h"
#include "fault.h"
#include "history.h"
#include "oracle.h"
#include "point.h"
#include "proc.h"
#include "redis.h"
#include "redis_server.h"
#include "rng.h"
#include "session.h"

typedef struct Scene Scene;

enum
{
	NEEDS_NOTHING = 0,
	NEEDS_DATABASE = 1, /* a database of its own on the run's server */
	NEEDS_CLUSTER = 2,  /* a server of its own, which it may break */
};

typedef struct
{
	const char *suite; /* "32" */
	const char *id;    /* "32-K", the number is never used again */
	const char *title;
	const char *claim;
	const char *kind;      /* "fixed interleaving", "real threads", ... */
	const char *guarantee; /* what is checked, in a few words */
	const char *observed;  /* where it can be seen */
	unsigned needs;
	const char *server_setting; /* NEEDS_CLUSTER: lines for its postgresql.conf, or NULL */
	int deadline_ms;
	void (*run)(Scene *scene);
} Scenario;


/* --- telling --- */

extern void step(Scene *scene, const char *format, ...) PRINTF_LIKE(2, 3);
extern void note(Scene *scene, const char *format, ...) PRINTF_LIKE(2, 3);
extern void audit(Scene *scene, const char *label, const char *fields); /* audit    <label>: <fields> */

/* A line of a plot in the report, a value for each sample; lines of one `plot` share axes. Not in output.txt. */
extern void series(Scene *scene, const char *plot, const char *name, const int64_t *values, size_t count);


/* --- checking: one line each, PASS or FAIL, counted; the case goes on --- */

#define CHECK_EQ(scene, actual, expected, ...) check_int((scene), (int64_t) (actual), (int64_t) (expected), __VA_ARGS__)
#define CHECK(scene, condition, ...) check_true((scene), (condition), __VA_ARGS__)

extern bool check_true(Scene *scene, bool actual, const char *format, ...) PRINTF_LIKE(3, 4);
extern bool check_int(Scene *scene, int64_t actual, int64_t expected, const char *format, ...) PRINTF_LIKE(4, 5);
extern bool check_at_least(Scene *scene, int64_t actual, int64_t least, const char *format, ...) PRINTF_LIKE(4, 5);
extern bool check_text(Scene *scene, const char *actual, const char *expected, const char *format, ...)
	PRINTF_LIKE(4, 5);

/* HOLDS is a PASS, VIOLATED a FAIL with the first violation, UNKNOWN makes the case UNKNOWN. Frees the judgement's text. */
extern void check_judgement(Scene *scene, Judgement *judgement, const char *what);

/*
 * A check that another design of a system states differently: it must come to `expected` there. Each of the rows, ended by one
 * without a check, must be made by a case that runs to its end; when it is, it says why it is stated so. Borrowed.
 */
typedef struct
{
	const char *check;    /* its whole text */
	const char *expected; /* NULL: as it is stated, but it means something else */
	const char *why;
} Restatement;

extern void scene_restate(Scene *scene, const Restatement *rows);

/* The case provoked that many retries itself: checked, and not counted among the system's own in SUMMARY. */
extern void scene_expect_retries(Scene *scene, int64_t retries_40001, int64_t retries_40p01);


/* --- giving up --- */

/* The lab could not do its work. The reason is the format, or with NULL the last error that was reported. */
extern void scene_broken(Scene *scene, const char *format, ...) PRINTF_LIKE(2, 3) __attribute__((noreturn));

/* For calls that report their own failure: ends the case as BROKEN when false. */
extern void require(Scene *scene, bool done);

/* The machine lacks what the case needs: it ends as SKIP with that reason. Before the first check; after one it is BROKEN. */
extern void scene_skip(Scene *scene, const char *format, ...) PRINTF_LIKE(2, 3) __attribute__((noreturn));

/* The case goes on, and will be UNKNOWN unless a check fails. */
extern void scene_unknown(Scene *scene, const char *format, ...) PRINTF_LIKE(2, 3);


/* --- what the lab hands out; all of it is given back when the case ends --- */

extern Session *scene_session(Scene *scene, const char *name); /* to the case's database */
extern void scene_close_session(Scene *scene, Session *session);
extern void scene_forget_session(Scene *scene, Session *session); /* a fault freed it */
extern const char *scene_conninfo(Scene *scene);                  /* of the case's database; stays valid */
extern const char *scene_server(Scene *scene);                    /* of its maintenance database; stays valid */
extern Cluster *scene_cluster(Scene *scene);                      /* NEEDS_CLUSTER only */

/*
 * More servers for a case with a cluster: one of its own with the same settings, and a standby of a running one; both
 * started. By the names they are known in the evidence.
 */
extern Cluster *scene_add_cluster(Scene *scene, const char *name);
extern Cluster *scene_add_standby(Scene *scene, Cluster *primary, const char *name);
extern Session *scene_session_on(Scene *scene, Cluster *cluster, const char *name); /* to its maintenance database */

extern RedisServer *scene_redis(Scene *scene); /* not started yet; SKIP where there is none */
extern Process *scene_start(Scene *scene, const ProcessSpec *spec);
extern void scene_free_process(Scene *scene, Process *process); /* before the case ends, by process_free() */
extern History *scene_history(Scene *scene);
extern const char *scene_history_path(Scene *scene);
extern const char *scene_trace(Scene *scene); /* of programs that can append to it (trace.h); NULL: there is none */

/* For the trace: a program of the case has said this, so what it has on record came before. */
extern void scene_heard(Scene *scene, const char *program, const char *line);
extern uint64_t scene_seed(const Scene *scene);
extern const char *scene_id(const Scene *scene);                  /* "32-K" */
extern const char *scene_variant(const Scene *scene);             /* what --variant names, NULL without it */
extern const char *scene_design(const Scene *scene);              /* what --design names, NULL without it */
extern Deadline scene_deadline(const Scene *scene, int64_t ms);   /* never later than the case's own */
extern const char *scene_file(Scene *scene, const char *name);    /* a path in the case's folder; stays valid */
extern const char *scene_program(Scene *scene, const char *name); /* a program of the build; stays valid */
extern const char *scene_sql(Scene *scene, const char *path);     /* below sql/, e.g. "like/write.sql"; stays valid */

/* Plan a fault. One that has not fired when the case ends makes it UNKNOWN. Stays valid. */
extern Fault *scene_fault(Scene *scene, const char *format, ...) PRINTF_LIKE(2, 3);

/* Wait until this backend is seen waiting for a lock (pg_locks, granted = false). */
extern void scene_await_blocked(Scene *scene, Session *observer, int backend_pid);
/* Wait until a query answers a given number. */
extern void scene_await_int(Scene *scene, Session *observer, int64_t expected, const char *sql, const SqlArg *args,
							int count);

#endif
