#include "scene.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "message.h"
#include "trace.h"

#define SESSIONS_MAX 64
#define PROCESSES_MAX 16
#define FAULTS_MAX 16
#define CLUSTERS_MAX 4
#define KEPT_STRINGS_MAX 64
#define RESTATEMENTS_MAX 64

/* Waits of a case end this much before its deadline, so that it can say what it waited for before it is killed. */
#define LAST_WORDS_MS 500

#define SERVER_START_MS 30000
#define WAIT_MS 10000

/* The line of the thread that runs the case: it tells, starts programs and breaks things. */
#define CASE_ACTOR "case"

/* Why a verb returns to the case's top function. */
enum
{
	GAVE_UP = 1,
	SKIPPED
};

struct Scene
{
	const Scenario *scenario;
	SceneSetup setup;
	Deadline deadline;
	jmp_buf top;    /* where a verb that cannot go on returns to */
	bool checked;   /* something was */
	char *conninfo; /* of the case's database */
	Cluster *cluster;
	Cluster *more[CLUSTERS_MAX]; /* after it, in the order in which they were made */
	RedisServer *redis;
	Session *sessions[SESSIONS_MAX];
	Process *processes[PROCESSES_MAX];
	Fault *faults[FAULTS_MAX];
	char *strings[KEPT_STRINGS_MAX]; /* handed out, valid until the end */
	History *history;
	const Restatement *restatements; /* ended by a row without a check; NULL: none */
	bool restated[RESTATEMENTS_MAX]; /* those that were made */
	int64_t expected_40001;
	int64_t expected_40p01;
};


/* --- telling --- */

static void
tell(Scene *scene, const Message *message)
{
	if (!message_send(scene->setup.report_fd, message))
	{
		/* nobody listens any more: the runner is gone, and its reaper is at work */
		exit(EXIT_CODE_BROKEN);
	}
}

static void
tell_line(Scene *scene, LineKind kind, const char *format, va_list args)
{
	Text text = {0};

	text_append_va(&text, format, args);
	tell(scene, &(Message){.kind = MESSAGE_LINE, .line = kind, .text = text.data});
	text_free(&text);
}

void
step(Scene *scene, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	tell_line(scene, LINE_STEP, format, args);
	va_end(args);
	if (trace_is_open())
	{
		Text text = {0};

		va_start(args, format);
		text_append_va(&text, format, args);
		va_end(args);
		trace_tell(CASE_ACTOR, "step", "%s", text_get(&text));
		text_free(&text);
	}
}

void
note(Scene *scene, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	tell_line(scene, LINE_NOTE, format, args);
	va_end(args);
}

void
audit(Scene *scene, const char *label, const char *fields)
{
	char *text = string_format("%s: %s", label, fields);

	tell(scene, &(Message){.kind = MESSAGE_LINE, .line = LINE_AUDIT, .text = text});
	free(text);
}

void
series(Scene *scene, const char *plot, const char *name, const int64_t *values, size_t count)
{
	tell(scene,
		 &(Message){.kind = MESSAGE_SERIES, .text = plot, .expected = name, .values = values, .value_count = count});
}


/* --- checking --- */

/* The row of a check that is stated differently here; NULL: as it is. */
static const Restatement *
restated(Scene *scene, const char *check)
{
	for (int i = 0; scene->restatements != NULL && scene->restatements[i].check != NULL; i++)
	{
		if (strcmp(scene->restatements[i].check, check) == 0)
		{
			scene->restated[i] = true;
			return &scene->restatements[i];
		}
	}
	return NULL;
}

static bool
tell_check(Scene *scene, bool held, const char *expected, const char *actual, const char *format, va_list args)
{
	Text text = {0};
	const Restatement *here;

	scene->checked = true;
	text_append_va(&text, format, args);
	here = restated(scene, text_get(&text));
	if (here != NULL)
	{
		note(scene, "stated differently%s%s: %s", here->expected == NULL ? "" : ", instead of ",
			 here->expected == NULL ? "" : expected, here->why);
	}
	if (here != NULL && here->expected != NULL)
	{
		expected = here->expected;
		held = strcmp(actual, expected) == 0;
	}
	tell(scene, &(Message){.kind = MESSAGE_LINE,
						   .line = held ? LINE_PASS : LINE_FAIL,
						   .text = text.data,
						   .expected = expected,
						   .actual = actual});
	text_free(&text);
	return held;
}

bool
check_true(Scene *scene, bool actual, const char *format, ...)
{
	va_list args;
	bool held;

	va_start(args, format);
	held = tell_check(scene, actual, "true", actual ? "true" : "false", format, args);
	va_end(args);
	return held;
}

static bool
tell_numbers(Scene *scene, bool held, const char *relation, int64_t expected, int64_t actual, const char *format,
			 va_list args)
{
	char expected_text[40];
	char actual_text[24];

	snprintf(expected_text, sizeof(expected_text), "%s%" PRId64, relation, expected);
	snprintf(actual_text, sizeof(actual_text), "%" PRId64, actual);
	return tell_check(scene, held, expected_text, actual_text, format, args);
}

bool
check_int(Scene *scene, int64_t actual, int64_t expected, const char *format, ...)
{
	va_list args;
	bool held;

	va_start(args, format);
	held = tell_numbers(scene, actual == expected, "", expected, actual, format, args);
	va_end(args);
	return held;
}

bool
check_at_least(Scene *scene, int64_t actual, int64_t least, const char *format, ...)
{
	va_list args;
	bool held;

	va_start(args, format);
	held = tell_numbers(scene, actual >= least, "at least ", least, actual, format, args);
	va_end(args);
	return held;
}

/* An empty text would leave a reader wondering whether something is missing. */
static const char *
visible(const char *text)
{
	return text[0] != '\0' ? text : "(nothing)";
}

bool
check_text(Scene *scene, const char *actual, const char *expected, const char *format, ...)
{
	va_list args;
	bool held;

	va_start(args, format);
	held = tell_check(scene, strcmp(actual, expected) == 0, visible(expected), visible(actual), format, args);
	va_end(args);
	return held;
}

void
check_judgement(Scene *scene, Judgement *judgement, const char *what)
{
	note(scene, "judge: %s: %zu operations, %zu acked changes, %zu unknown, %zu violations", what,
		 judgement->operations, judgement->changes, judgement->unknowns, judgement->violations);
	if (judgement->verdict == VERDICT_UNKNOWN)
	{
		scene_unknown(scene, "the judge saw nothing exercised: %s", what);
	}
	else
	{
		const char *holds = verdict_name(VERDICT_HOLDS);
		const char *actual = judgement->verdict == VERDICT_HOLDS ? holds : text_get(&judgement->first);

		(void) check_text(scene, actual, holds, "%s: one order of versions explains every answer and respects time",
						  what);
	}
	text_free(&judgement->first);
}

void
scene_restate(Scene *scene, const Restatement *rows)
{
	int count = 0;

	while (rows[count].check != NULL)
	{
		count++;
	}
	if (count > RESTATEMENTS_MAX)
	{
		scene_broken(scene, "a case may state %d checks differently", RESTATEMENTS_MAX);
	}
	scene->restatements = rows;
	memset(scene->restated, 0, sizeof(scene->restated));
}

/* A row that no check met would say something about a check that is not there (any more). */
static void
check_restated(Scene *scene)
{
	const Restatement *rows = scene->restatements;

	scene->restatements = NULL;
	for (int i = 0; rows != NULL && rows[i].check != NULL; i++)
	{
		if (!scene->restated[i])
		{
			CHECK(scene, false, "stated differently and never made: %s", rows[i].check);
		}
	}
}

void
scene_expect_retries(Scene *scene, int64_t retries_40001, int64_t retries_40p01)
{
	CHECK_EQ(scene, session_retries_40001() - scene->expected_40001, retries_40001,
			 "retries after 40001 provoked here");
	CHECK_EQ(scene, session_retries_40p01() - scene->expected_40p01, retries_40p01,
			 "retries after 40P01 provoked here");
	scene->expected_40001 += retries_40001;
	scene->expected_40p01 += retries_40p01;
}


/* --- giving up --- */

void
scene_broken(Scene *scene, const char *format, ...)
{
	char reason[512];
	va_list args;

	if (format == NULL)
	{
		notice_last_error(reason, sizeof(reason));
	}
	else
	{
		va_start(args, format);
		vsnprintf(reason, sizeof(reason), format, args);
		va_end(args);
		report_error("%s", reason);
	}
	tell(scene, &(Message){.kind = MESSAGE_BROKEN, .text = reason[0] != '\0' ? reason : "for a reason not reported"});
	longjmp(scene->top, GAVE_UP);
}

void
require(Scene *scene, bool done)
{
	if (!done)
	{
		scene_broken(scene, NULL);
	}
}

void
scene_skip(Scene *scene, const char *format, ...)
{
	char reason[256];
	va_list args;

	va_start(args, format);
	vsnprintf(reason, sizeof(reason), format, args);
	va_end(args);
	if (scene->checked)
	{
		scene_broken(scene, "too late to skip, something was checked: %s", reason);
	}
	tell(scene, &(Message){.kind = MESSAGE_SKIP, .text = reason});
	longjmp(scene->top, SKIPPED);
}

void
scene_unknown(Scene *scene, const char *format, ...)
{
	Text text = {0};
	va_list args;

	va_start(args, format);
	text_append_va(&text, format, args);
	va_end(args);
	tell(scene, &(Message){.kind = MESSAGE_UNKNOWN, .text = text.data});
	text_free(&text);
}


/* --- handing out --- */

static const char *
keep_string(Scene *scene, char *string)
{
	for (int i = 0; i < KEPT_STRINGS_MAX; i++)
	{
		if (scene->strings[i] == NULL)
		{
			scene->strings[i] = string;
			return string;
		}
		if (strcmp(scene->strings[i], string) == 0)
		{
			free(string);
			return scene->strings[i];
		}
	}
	free(string);
	scene_broken(scene, "a case may be handed %d paths", KEPT_STRINGS_MAX);
}

/* "32-J/writer", and while others of that name are open "32-J/writer-2". The caller frees it. */
static char *
unused_name(const Scene *scene, const char *name)
{
	char *application = string_format("%s/%s", scene->scenario->id, name);

	for (int n = 2, i = 0; i < SESSIONS_MAX; i++)
	{
		if (scene->sessions[i] != NULL && strcmp(session_name(scene->sessions[i]), application) == 0)
		{
			free(application);
			application = string_format("%s/%s-%d", scene->scenario->id, name, n++);
			i = -1;
		}
	}
	return application;
}

static Session *
open_handed_out(Scene *scene, const char *conninfo, const char *name)
{
	for (int i = 0; i < SESSIONS_MAX; i++)
	{
		if (scene->sessions[i] == NULL)
		{
			char *application = unused_name(scene, name);

			scene->sessions[i] = session_open(conninfo, application);
			free(application);
			require(scene, scene->sessions[i] != NULL);
			trace_tell(trace_client(session_name(scene->sessions[i])), "connect", "connects");
			return scene->sessions[i];
		}
	}
	scene_broken(scene, "a case may have %d sessions", SESSIONS_MAX);
}

Session *
scene_session(Scene *scene, const char *name)
{
	return open_handed_out(scene, scene->conninfo, name);
}

Session *
scene_session_on(Scene *scene, Cluster *cluster, const char *name)
{
	return open_handed_out(scene, cluster_conninfo(cluster, "postgres"), name);
}

void
scene_forget_session(Scene *scene, Session *session)
{
	for (int i = 0; i < SESSIONS_MAX; i++)
	{
		if (scene->sessions[i] == session)
		{
			scene->sessions[i] = NULL;
			return;
		}
	}
}

void
scene_close_session(Scene *scene, Session *session)
{
	scene_forget_session(scene, session);
	session_close(session);
}

const char *
scene_conninfo(Scene *scene)
{
	return scene->conninfo;
}

const char *
scene_server(Scene *scene)
{
	return scene->cluster != NULL ? scene->conninfo : scene->setup.server;
}

Cluster *
scene_cluster(Scene *scene)
{
	if (scene->cluster == NULL)
	{
		scene_broken(scene, "this case did not ask for a cluster of its own");
	}
	return scene->cluster;
}

static void
configure_and_start(Scene *scene, Cluster *cluster)
{
	const char *setting = scene->scenario->server_setting;

	require(scene, setting == NULL || cluster_configure(cluster, setting));
	require(scene, cluster_start(cluster, deadline_in_ms(SERVER_START_MS)));
}

static Cluster *
add_cluster(Scene *scene, Cluster *cluster)
{
	require(scene, cluster != NULL);
	for (int i = 0; i < CLUSTERS_MAX; i++)
	{
		if (scene->more[i] == NULL)
		{
			scene->more[i] = cluster;
			configure_and_start(scene, cluster);
			return cluster;
		}
	}
	(void) cluster_free(cluster);
	scene_broken(scene, "a case may have %d servers besides its own", CLUSTERS_MAX);
}

Cluster *
scene_add_cluster(Scene *scene, const char *name)
{
	return add_cluster(scene, cluster_create(scene->setup.kit, name));
}

Cluster *
scene_add_standby(Scene *scene, Cluster *primary, const char *name)
{
	return add_cluster(scene, cluster_create_standby(primary, name));
}

RedisServer *
scene_redis(Scene *scene)
{
	const char *missing = redis_server_missing();
	const char *scratch = getenv("TMPDIR");

	if (missing != NULL)
	{
		scene_skip(scene, "%s", missing);
	}
	if (scene->redis == NULL)
	{
		scene->redis = redis_server_create(scratch != NULL && scratch[0] == '/' ? scratch : "/tmp");
		require(scene, scene->redis != NULL);
	}
	return scene->redis;
}

Process *
scene_start(Scene *scene, const ProcessSpec *spec)
{
	for (int i = 0; i < PROCESSES_MAX; i++)
	{
		if (scene->processes[i] == NULL)
		{
			trace_tell(trace_program(spec->argv[0]), "start", "is started");
			scene->processes[i] = process_start(spec);
			require(scene, scene->processes[i] != NULL);
			return scene->processes[i];
		}
	}
	scene_broken(scene, "a case may have %d programs", PROCESSES_MAX);
}

void
scene_free_process(Scene *scene, Process *process)
{
	for (int i = 0; i < PROCESSES_MAX; i++)
	{
		if (scene->processes[i] == process)
		{
			scene->processes[i] = NULL;
		}
	}
	process_free(process);
}

const char *
scene_history_path(Scene *scene)
{
	return scene_file(scene, "history");
}

History *
scene_history(Scene *scene)
{
	if (scene->history == NULL)
	{
		scene->history = history_open(scene_history_path(scene));
		require(scene, scene->history != NULL);
	}
	return scene->history;
}

const char *
scene_trace(Scene *scene)
{
	return scene->setup.trace ? scene_file(scene, TRACE_RECORD) : NULL;
}

void
scene_heard(Scene *scene, const char *program, const char *line)
{
	TraceEvent event = {.actor = CASE_ACTOR, .kind = "heard", .outcome = TRACE_DONE};

	(void) scene;
	trace_mark(&event, TRACE_HEARD, trace_program(program), 0, 0);
	trace_event(&event, "%s", line);
}

uint64_t
scene_seed(const Scene *scene)
{
	return scene->setup.seed;
}

const char *
scene_id(const Scene *scene)
{
	return scene->scenario->id;
}

const char *
scene_variant(const Scene *scene)
{
	return scene->setup.variant;
}

const char *
scene_design(const Scene *scene)
{
	return scene->setup.design;
}

Deadline
scene_deadline(const Scene *scene, int64_t ms)
{
	return deadline_earlier(deadline_in_ms(ms), scene->deadline);
}

const char *
scene_file(Scene *scene, const char *name)
{
	return keep_string(scene, string_format("%s/%s", scene->setup.folder, name));
}

const char *
scene_program(Scene *scene, const char *name)
{
	return keep_string(scene, string_format("%s/%s", scene->setup.programs, name));
}

const char *
scene_sql(Scene *scene, const char *path)
{
	return keep_string(scene, string_format("%s/%s", scene->setup.sql, path));
}

Fault *
scene_fault(Scene *scene, const char *format, ...)
{
	for (int i = 0; i < FAULTS_MAX; i++)
	{
		if (scene->faults[i] == NULL)
		{
			va_list args;

			scene->faults[i] = memory_get(sizeof(Fault));
			va_start(args, format);
			vsnprintf(scene->faults[i]->name, sizeof(scene->faults[i]->name), format, args);
			va_end(args);
			return scene->faults[i];
		}
	}
	scene_broken(scene, "a case may plan %d faults", FAULTS_MAX);
}


/* --- waiting --- */

typedef struct
{
	Session *observer;
	const char *sql;
	const SqlArg *args;
	int count;
	int64_t expected;
} NumberWait;

static ProbeAnswer
probe_number(void *context, Text *seen)
{
	NumberWait *wait = context;
	int64_t value;

	if (!session_query_int(wait->observer, &value, wait->sql, wait->args, wait->count))
	{
		return PROBE_FAILED;
	}
	text_append(seen, "%" PRId64 ", not %" PRId64, value, wait->expected);
	return value == wait->expected ? PROBE_DONE : PROBE_AGAIN;
}

void
scene_await_int(Scene *scene, Session *observer, int64_t expected, const char *sql, const SqlArg *args, int count)
{
	NumberWait wait = {observer, sql, args, count, expected};

	require(scene, wait_until(sql, scene_deadline(scene, WAIT_MS), probe_number, &wait));
}

void
scene_await_blocked(Scene *scene, Session *observer, int backend_pid)
{
	scene_await_int(scene, observer, 1, "SELECT count(DISTINCT pid) FROM pg_locks WHERE pid = $1 AND NOT granted",
					ARGS(arg_int(backend_pid)));
	for (int i = 0; i < SESSIONS_MAX; i++)
	{
		if (scene->sessions[i] != NULL && session_backend_pid(scene->sessions[i]) == backend_pid)
		{
			trace_tell(trace_client(session_name(scene->sessions[i])), "wait", "is seen waiting for a lock");
		}
	}
}


/* --- the life of a case --- */

/* A name cannot be a parameter; these are made of [a-z0-9_]. */
static void
create_database(Scene *scene)
{
	Session *session = session_open(scene->setup.server, scene->scenario->id);
	const char *name = scene->setup.database;
	char *sql = string_format("CREATE DATABASE %s TEMPLATE template0", name);
	/* a server that is not ours may have another default for this role, which this outranks */
	char *pin = string_format("ALTER ROLE CURRENT_USER IN DATABASE %s SET default_transaction_isolation TO "
							  "'read committed'",
							  name);
	bool done =
		session != NULL && session_execute(session, sql) && (scene->setup.kit != NULL || session_execute(session, pin));

	session_close(session);
	free(sql);
	free(pin);
	require(scene, done);
}

static void
open_database(Scene *scene)
{
	if ((scene->scenario->needs & NEEDS_CLUSTER) != 0)
	{
		scene->cluster = cluster_create(scene->setup.kit, scene->scenario->id);
		require(scene, scene->cluster != NULL);
		configure_and_start(scene, scene->cluster);
		scene->conninfo = string_copy(cluster_conninfo(scene->cluster, "postgres"));
	}
	else if ((scene->scenario->needs & NEEDS_DATABASE) != 0)
	{
		create_database(scene);
		scene->conninfo = session_conninfo_for(scene->setup.server, scene->setup.database);
		require(scene, scene->conninfo != NULL);
	}
}

static void
tell_faults(Scene *scene)
{
	for (int i = 0; i < FAULTS_MAX && scene->faults[i] != NULL; i++)
	{
		Fault *fault = scene->faults[i];
		char *text =
			string_format("%s: fired %d%s%s", fault->name, fault->fired, fault->effect[0] ? ", " : "", fault->effect);

		tell(scene, &(Message){.kind = MESSAGE_LINE, .line = LINE_FAULT, .text = text, .first = fault->fired});
		free(text);
		if (fault->fired == 0)
		{
			scene_unknown(scene, "a fault never fired: %s", fault->name);
		}
	}
}

static void
tell_done(Scene *scene)
{
	tell(scene, &(Message){.kind = MESSAGE_DONE,
						   .first = session_retries_40001() - scene->expected_40001,
						   .second = session_retries_40p01() - scene->expected_40p01});
}

/* Servers are stopped and directories removed whatever happened before; that they were still alive is part of the test. */
static bool
close_cluster(Scene *scene, Cluster *cluster)
{
	bool running, alive;

	if (cluster == NULL)
	{
		return true;
	}
	running = cluster_state(cluster) == CLUSTER_RUNNING;
	alive = !running || cluster_verify_running(cluster);
	if (scene->setup.keep && running)
	{
		Text ending = {0};

		cluster_keep(cluster, &ending);
		tell(scene, &(Message){.kind = MESSAGE_KEPT,
							   .text = cluster_conninfo(cluster, "postgres"),
							   .actual = text_get(&ending)});
		text_free(&ending);
	}
	return cluster_free(cluster) && alive;
}

/* A standby before what it streams from. */
static bool
close_clusters(Scene *scene)
{
	bool clean = true;

	for (int i = CLUSTERS_MAX - 1; i >= 0; i--)
	{
		clean = close_cluster(scene, scene->more[i]) && clean;
	}
	return close_cluster(scene, scene->cluster) && clean;
}

static void
save_log(const Scene *scene, const Cluster *cluster, const char *file)
{
	char *path = string_format("%s/%s", scene->setup.folder, file);

	cluster_save_log(cluster, path);
	free(path);
}

static void
save_logs(const Scene *scene)
{
	if (scene->cluster != NULL)
	{
		save_log(scene, scene->cluster, "server.log");
	}
	for (int i = 0; i < CLUSTERS_MAX && scene->more[i] != NULL; i++)
	{
		char *file = string_format("server-%s.log", cluster_name(scene->more[i]));

		save_log(scene, scene->more[i], file);
		free(file);
	}
}

static void
free_handed_out(Scene *scene)
{
	for (int i = 0; i < SESSIONS_MAX; i++)
	{
		session_close(scene->sessions[i]);
		scene->sessions[i] = NULL;
	}
	for (int i = 0; i < FAULTS_MAX; i++)
	{
		free(scene->faults[i]);
	}
	for (int i = 0; i < KEPT_STRINGS_MAX; i++)
	{
		free(scene->strings[i]);
	}
	history_close(scene->history);
}

/*
 * After a verb gave up, worker threads may still use sessions and history: those are left to the end of the process;
 * only what outlives a process is given back.
 */
static bool
teardown(Scene *scene, bool gave_up)
{
	bool clean;

	for (int i = 0; i < PROCESSES_MAX; i++)
	{
		process_free(scene->processes[i]);
		scene->processes[i] = NULL;
	}
	save_logs(scene);
	clean = redis_server_free(scene->redis);
	scene->redis = NULL;
	if (gave_up)
	{
		return close_clusters(scene) && clean;
	}
	free_handed_out(scene);
	clean = close_clusters(scene) && clean;
	free(scene->conninfo);
	return clean;
}

static void
run_to_end(Scene *scene)
{
	require(scene, !scene->setup.trace || trace_open(scene_trace(scene)));
	open_database(scene);
	scene->scenario->run(scene);
	check_restated(scene);
	require(scene, trace_is_whole());
	tell_faults(scene);
	tell_done(scene);
}

ExitCode
scene_main(const Scenario *scenario, const SceneSetup *setup)
{
	static Scene scene; /* static: longjmp leaves no doubt about its contents */
	static volatile bool in_teardown;

	scene = (Scene){.scenario = scenario, .setup = *setup};
	scene.deadline = deadline_in_ms(setup->deadline_ms - LAST_WORDS_MS);
	notice_set_prefix(scenario->id);
	switch (setjmp(scene.top))
	{
		case GAVE_UP:
			if (!in_teardown)
			{
				in_teardown = true;
				(void) teardown(&scene, true);
			}
			return EXIT_CODE_BROKEN;
		case SKIPPED:
			break;
		default:
			run_to_end(&scene);
	}
	in_teardown = true;
	if (!teardown(&scene, false))
	{
		scene_broken(&scene, NULL);
	}
	return EXIT_CODE_PASS;
}
