/*
 * One thread, plain blocking calls: who is looked at when decides what is told first, and must not depend on luck.
 */
#include "executor.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define US_PER_S 1000000
#define NS_PER_US 1000

/*
 * Looks at locks: from the first pause, twice as long each time. On a busy machine answers take longer that are on their
 * way, and a look would only make the server slower still: the first one comes after so many usual answers.
 */
#define LOOK_FIRST_US 200
#define LOOK_FIRST_MOST_US 500
#define LOOK_USUAL_ANSWERS 3
#define LOOK_LONGEST_US 10000
#define NAMING_MS INT32_MAX /* isolationtester waits for the server as long as it takes */
#define USUAL_WEIGHT 8      /* what is usual follows each answer by one part in so many */
/* A wait that has lasted so long is one, whoever else is still at work. */
#define PATIENCE_US 10000

#define BLANKS " \t\r\n"

#define LOOK_STATEMENT "counterproof_who_waits"

/* A session of the file, with its connection. */
typedef struct
{
	Executor *executor;
	const SpecSession *session;
	Session *connection;
	int pid;
	bool fresh;           /* its connection is being made */
	bool timed;           /* may end a wait by itself before long */
	bool advises;         /* may take advisory locks */
	bool plain;           /* its setup does nothing that another could meet */
	const SpecTurn *turn; /* under way; NULL: none */
	int64_t notices;      /* received since the connection was made */
	int64_t *targets;     /* of each mark of the turn under way, for MARK_NOTICES */
} Seat;

struct Executor
{
	const Spec *spec;
	ExecutorConfig config;
	Session *control;
	bool was_set_up;
	bool looks; /* the control connection has the statement for that */
	Seat *seats;
	Seat **waiting; /* those whose turn was told to wait, in that order */
	int waiting_count;
	bool noticed;     /* a notice has come since this was reset */
	int64_t usual_us; /* that an answer takes which needs no lock of another session */
	int64_t *asked;   /* backends of one look, the one it is about last */
	int asked_count;
	Text scratch;
};

typedef enum
{
	TURN_DONE = 1,
	TURN_WAITS,
	TURN_BROKEN /* told */
} TurnState;

#define TELL(executor, event, ...) (executor)->config.events->event((executor)->config.context, __VA_ARGS__)

static void PRINTF_LIKE(2, 3) trouble(Executor *executor, const char *format, ...)
{
	Text text = {0};
	va_list args;

	va_start(args, format);
	text_append_va(&text, format, args);
	va_end(args);
	TELL(executor, trouble, text_get(&text));
	text_free(&text);
}


/* --- life --- */

static void
hear_notice(void *context, const char *message)
{
	Seat *seat = context;

	seat->notices++;
	seat->executor->noticed = true;
	TELL(seat->executor, notice, seat->session, message);
}

static void
ignore_notice(void *context, const char *message)
{
	(void) context;
	(void) message;
}

/* The connection is named after its session, which whoever looks at pg_stat_activity sees. */
static const char name_statement[] =
	"SELECT set_config('application_name', current_setting('application_name') || '/' || $1, false)";

static void
tell_unconnected(Executor *executor, int number, char *why)
{
	trouble(executor, "Connection %d failed: %s", number, why);
	free(why);
}

static bool
tell_named(Executor *executor, const Session *session, SqlStatus status)
{
	if (status != SQL_OK)
	{
		trouble(executor, "setting of application name failed: %s", session_raw_message(session));
	}
	return status == SQL_OK;
}

static bool
open_control(Executor *executor)
{
	char *why = NULL;

	executor->looks = false;
	executor->control = session_raw_open(executor->config.conninfo, &why);
	if (executor->control == NULL)
	{
		tell_unconnected(executor, 0, why);
		return false;
	}
	session_raw_listen(executor->control, ignore_notice, NULL);
	return tell_named(executor, executor->control,
					  session_try(executor->control, NULL, name_statement, ARGS(arg_text("control connection"))));
}

static bool
block_mentions(const SpecBlock *block, const char *word)
{
	return block != NULL && strcasestr(block->sql, word) != NULL;
}

/* Whether the word is anywhere in what a session runs, or in what is set up for all. */
static bool
session_mentions(const Spec *spec, const SpecSession *session, const char *word)
{
	bool found = block_mentions(session->setup, word);

	for (int i = 0; i < spec->setup_count; i++)
	{
		found = found || block_mentions(spec->setups[i], word);
	}
	for (int i = 0; i < session->step_count; i++)
	{
		found = found || strcasestr(session->steps[i]->sql, word) != NULL;
	}
	return found;
}

/* Nothing but BEGIN and SET, which take no snapshot and no lock. What a literal may hide makes it no plain one. */
static bool
is_plain(const SpecBlock *setup)
{
	static const char *const words[] = {"begin", "set"};
	const char *rest = setup != NULL ? setup->sql : "";

	for (rest += strspn(rest, BLANKS); *rest != '\0'; rest += strspn(rest, BLANKS))
	{
		size_t length = strcspn(rest, ";" BLANKS);
		bool known = false;

		for (size_t i = 0; i < LENGTH_OF(words); i++)
		{
			known = known || (length == strlen(words[i]) && strncasecmp(rest, words[i], length) == 0);
		}
		if (!known)
		{
			return false;
		}
		rest += strcspn(rest, ";");
		rest += *rest == ';' ? 1 : 0;
	}
	return true;
}

static void
begin_seat(Executor *executor, int number)
{
	Seat *seat = &executor->seats[number];

	seat->executor = executor;
	seat->session = executor->spec->sessions[number];
	/* what ends a wait before a patient look would have seen it: then only a patient look tells */
	seat->timed = session_mentions(executor->spec, seat->session, "_timeout");
	seat->advises = session_mentions(executor->spec, seat->session, "advisory");
	seat->plain = is_plain(seat->session->setup);
	seat->pid = 0;
	seat->fresh = true;
	seat->connection = session_raw_begin(executor->config.conninfo);
}

/* Connect, and begin to give it its name. */
static bool
connect_seat(Executor *executor, int number)
{
	Seat *seat = &executor->seats[number];
	char *why = NULL;

	if (!session_raw_finish(seat->connection, &why))
	{
		tell_unconnected(executor, number + 1, why);
		return false;
	}
	seat->pid = session_backend_pid(seat->connection);
	return session_send(seat->connection, name_statement, ARGS(arg_text(seat->session->name))) ||
		   tell_named(executor, seat->connection, SQL_LOST);
}

/* Those that have no connection; all at once, for most of the time it is the server's, for a process each. */
static void
begin_seats(Executor *executor)
{
	for (int i = 0; i < executor->spec->session_count; i++)
	{
		if (executor->seats[i].connection == NULL)
		{
			begin_seat(executor, i);
		}
	}
}

static bool
finish_seats(Executor *executor)
{
	int count = executor->spec->session_count;
	bool done = true;

	for (int i = 0; done && i < count; i++)
	{
		done = !executor->seats[i].fresh || connect_seat(executor, i);
	}
	for (int i = 0; done && i < count; i++)
	{
		Seat *seat = &executor->seats[i];

		if (seat->fresh)
		{
			seat->fresh = false;
			done = tell_named(executor, seat->connection,
							  session_await(seat->connection, NULL, deadline_in_ms(NAMING_MS)));
			session_raw_listen(seat->connection, hear_notice, seat);
		}
	}
	return done;
}

/* When somebody may wait for the first time. Backends go in as text: the set never changes, and the server is asked often. */
static bool
prepare_look(Executor *executor)
{
	Text sql = {0};

	text_append(&sql, "PREPARE " LOOK_STATEMENT "(int[]) AS "
					  "SELECT pg_catalog.pg_isolation_test_session_is_blocked(pid, '{");
	for (int i = 0; i < executor->spec->session_count; i++)
	{
		text_append(&sql, i > 0 ? ",%d" : "%d", executor->seats[i].pid);
	}
	text_append(&sql, "}') FROM pg_catalog.unnest($1) pid");
	executor->looks = session_try(executor->control, NULL, text_get(&sql), NO_ARGS) == SQL_OK;
	if (!executor->looks)
	{
		trouble(executor, "prepare of lock wait query failed: %s", session_raw_message(executor->control));
	}
	text_free(&sql);
	return executor->looks;
}

static int
marks_max(const Spec *spec)
{
	int most = 0;

	for (int i = 0; i < spec->permutation_count; i++)
	{
		for (int k = 0; k < spec->permutations[i]->turn_count; k++)
		{
			int count = spec->permutations[i]->turns[k]->mark_count;

			most = count > most ? count : most;
		}
	}
	return most;
}

Executor *
executor_open(const Spec *spec, const ExecutorConfig *config)
{
	Executor *executor = memory_get(sizeof(Executor));
	size_t count = (size_t) spec->session_count;
	int targets = marks_max(spec);

	executor->spec = spec;
	executor->config = *config;
	executor->seats = memory_get(sizeof(Seat) * count);
	executor->waiting = memory_get(sizeof(Seat *) * count);
	executor->asked = memory_get(sizeof(int64_t) * 2 * count);
	for (size_t i = 0; i < count; i++)
	{
		executor->seats[i].targets = memory_get(sizeof(int64_t) * ((size_t) targets + 1));
	}
	begin_seats(executor);
	if (!open_control(executor) || !finish_seats(executor))
	{
		executor_close(executor);
		return NULL;
	}
	return executor;
}

void
executor_close(Executor *executor)
{
	if (executor == NULL)
	{
		return;
	}
	session_close(executor->control);
	for (int i = 0; i < executor->spec->session_count; i++)
	{
		session_close(executor->seats[i].connection);
		free(executor->seats[i].targets);
	}
	text_free(&executor->scratch);
	free(executor->asked);
	free(executor->waiting);
	free(executor->seats);
	free(executor);
}

void
executor_tell(Executor *executor, void *context)
{
	executor->config.context = context;
}


/* --- who waits for whom --- */

/*
 * Whether another session can have a lock: in a transaction, by a statement, or an advisory one beyond them. What this does not
 * know of, a lost session whose backend still lives, say, is found by a patient look.
 */
static bool
may_be_held(const Seat *about)
{
	const Executor *executor = about->executor;
	bool may = false;

	for (int i = 0; i < executor->spec->session_count; i++)
	{
		const Seat *seat = &executor->seats[i];

		may = may || (seat != about && seat->connection != NULL &&
					  (seat->advises || session_raw_block(seat->connection) != BLOCK_NONE));
	}
	return may;
}

/*
 * Which backends to ask about. A look before patience is up counts only when the whole file stands still: every busy
 * session waits, and none of them can end its wait by itself. Else the one that is looked at may be about to get its
 * lock from another that is still at work. Nobody is asked in one instant, hence the others twice: those that
 * the first round finds waiting cannot have changed anything in the second.
 */
static bool
gather_asked(Seat *about)
{
	Executor *executor = about->executor;
	bool still = !about->timed && may_be_held(about);

	executor->asked_count = 0;
	for (int round = 0; round < 2; round++)
	{
		for (int i = 0; i < executor->spec->session_count; i++)
		{
			Seat *seat = &executor->seats[i];

			if (seat != about && seat->turn != NULL && session_raw_busy(seat->connection))
			{
				still = still && !seat->timed;
				executor->asked[executor->asked_count++] = seat->pid;
			}
		}
	}
	return still;
}

/* false: told. */
static bool
look_at_locks(Seat *seat, bool patient, bool *waits)
{
	Executor *executor = seat->executor;
	SqlResult *answer;
	int last;

	*waits = false;
	if (!gather_asked(seat) && !patient)
	{
		return true;
	}
	executor->asked_count = patient ? 0 : executor->asked_count;
	executor->asked[executor->asked_count++] = seat->pid;
	text_clear(&executor->scratch);
	text_append_int64_array(&executor->scratch, executor->asked, (size_t) executor->asked_count);
	if (!executor->looks && !prepare_look(executor))
	{
		return false;
	}
	if (session_try_prepared(executor->control, &answer, LOOK_STATEMENT,
							 ARGS(arg_text(text_get(&executor->scratch)))) != SQL_OK ||
		(last = sql_rows(answer) - 1) < 0)
	{
		trouble(executor, "lock wait query failed: %s", session_raw_message(executor->control));
		return false;
	}
	*waits = true;
	for (int i = 0; i <= last; i++)
	{
		*waits = *waits && sql_bool(answer, i, 0);
	}
	sql_free(answer);
	return true;
}


/* --- one step's answer --- */

/* The wait for a statement's answer. */
typedef struct
{
	int64_t begun_ns;
	int64_t quiet_ns; /* since then nothing has come */
	int64_t pause_us;
	bool canceled;
} Vigil;

static int64_t
us_since(int64_t ns)
{
	return (time_now_ns() - ns) / NS_PER_US;
}

static int64_t
first_pause_us(const Executor *executor)
{
	int64_t pause_us = LOOK_USUAL_ANSWERS * executor->usual_us;

	return pause_us < LOOK_FIRST_US ? LOOK_FIRST_US : pause_us < LOOK_FIRST_MOST_US ? pause_us : LOOK_FIRST_MOST_US;
}

static int64_t
next_pause_us(int64_t pause_us)
{
	return pause_us * 2 < LOOK_FIRST_US     ? LOOK_FIRST_US
		   : pause_us * 2 < LOOK_LONGEST_US ? pause_us * 2
											: LOOK_LONGEST_US;
}

/* Whoever interrupts does not wait for a step; isolationtester is killed by the signal itself. */
static bool
is_interrupted(Executor *executor)
{
	if (!executor->config.survives || !interrupt_presses())
	{
		return false;
	}
	trouble(executor, "interrupted");
	return true;
}

/* false: told. */
static bool
keep_limits(Seat *seat, Vigil *vigil)
{
	Executor *executor = seat->executor;
	int64_t waited_us = us_since(vigil->begun_ns);
	char why[256];

	if (waited_us > executor->config.step_limit_us && !vigil->canceled)
	{
		vigil->canceled = session_raw_cancel(seat->connection, why, sizeof(why));
		if (vigil->canceled)
		{
			TELL(executor, canceled, seat->turn, (int) (waited_us / US_PER_S));
		}
		else
		{
			trouble(executor, "PQcancel failed: %s\n", why);
		}
	}
	if (is_interrupted(executor))
	{
		return false;
	}
	if (waited_us > 2 * executor->config.step_limit_us)
	{
		trouble(executor, "step %s timed out after %d seconds\n", seat->turn->name, (int) (waited_us / US_PER_S));
		return false;
	}
	return true;
}

static bool
read_arrived(Seat *seat, Arrival arrival)
{
	if (arrival == ARRIVAL_FAILED)
	{
		trouble(seat->executor, "PQconsumeInput failed: %s\n", session_raw_message(seat->connection));
		return false;
	}
	return true;
}

/* Nothing came during a pause. TURN_DONE: an answer has come meanwhile; else *again says whether to go on waiting. */
static TurnState
ponder(Seat *seat, Vigil *vigil, bool may_wait, bool *again)
{
	int64_t quiet_us = us_since(vigil->quiet_ns);
	bool waits = false;

	*again = true;
	if (may_wait && !look_at_locks(seat, quiet_us >= PATIENCE_US, &waits))
	{
		return TURN_BROKEN;
	}
	if (waits)
	{
		Arrival arrival = session_raw_await(seat->connection, 0); /* while the server was asked, notices above all */

		*again = false;
		if (arrival == ARRIVAL_FAILED && seat->executor->config.survives)
		{
			return TURN_DONE;
		}
		if (!read_arrived(seat, arrival))
		{
			return TURN_BROKEN;
		}
		return session_raw_busy(seat->connection) ? TURN_WAITS : TURN_DONE;
	}
	vigil->pause_us = next_pause_us(vigil->pause_us);
	if (quiet_us < PATIENCE_US && vigil->pause_us > PATIENCE_US - quiet_us)
	{
		vigil->pause_us = PATIENCE_US - quiet_us;
	}
	return keep_limits(seat, vigil) ? TURN_WAITS : TURN_BROKEN;
}

/*
 * Until the answer is there, or, when it may, the step waits for a lock of another session. Whoever waited before, it is
 * asked about at once: most often it still does.
 */
static TurnState
await_answer(Seat *seat, bool may_wait, bool first)
{
	int64_t now_ns = time_now_ns();
	int64_t pause_us = first_pause_us(seat->executor);
	Vigil vigil = {.begun_ns = now_ns, .quiet_ns = now_ns, .pause_us = first ? pause_us : 0};

	while (session_raw_busy(seat->connection))
	{
		Arrival arrival = session_raw_await(seat->connection, vigil.pause_us);
		TurnState state;
		bool again;

		if (arrival == ARRIVAL_FAILED && seat->executor->config.survives)
		{
			return TURN_DONE; /* its results say that it is lost */
		}
		if (!read_arrived(seat, arrival))
		{
			return TURN_BROKEN;
		}
		if (arrival == ARRIVAL_SOME)
		{
			vigil.quiet_ns = time_now_ns();
			vigil.pause_us = pause_us;
			continue;
		}
		seat->executor->config.events->lingers(seat->executor->config.context);
		state = ponder(seat, &vigil, may_wait, &again);
		if (state == TURN_BROKEN || !again)
		{
			return state;
		}
	}
	if (first)
	{
		seat->executor->usual_us += (us_since(vigil.begun_ns) - seat->executor->usual_us) / USUAL_WEIGHT;
	}
	return TURN_DONE;
}

static bool
is_held_back(const Seat *seat)
{
	for (int i = 0; i < seat->turn->mark_count; i++)
	{
		const SpecMark *mark = seat->turn->marks[i];
		const Seat *other = mark->kind == MARK_ONCE ? NULL : &seat->executor->seats[mark->step->session];

		if ((mark->kind == MARK_STEP && other->turn != NULL && other->turn->step == mark->step) ||
			(mark->kind == MARK_NOTICES && other->notices < seat->targets[i]))
		{
			return true;
		}
	}
	return false;
}

static const char *
name_sender(Executor *executor, int pid)
{
	for (int i = 0; i < executor->spec->session_count; i++)
	{
		if (executor->seats[i].pid == pid)
		{
			return executor->seats[i].session->name;
		}
	}
	text_clear(&executor->scratch);
	text_append(&executor->scratch, "PID %d", pid);
	return text_get(&executor->scratch);
}

/* What arrives with the results, or right behind them; a dead connection has nothing more. */
static void
tell_notifications(Seat *seat)
{
	Notification notification;

	(void) session_raw_await(seat->connection, 0);
	while (session_raw_notification(seat->connection, &notification))
	{
		TELL(seat->executor, notified, seat->session, &notification, name_sender(seat->executor, notification.sender));
		free(notification.channel);
		free(notification.payload);
		(void) session_raw_await(seat->connection, 0);
	}
}

static void
lose(Seat *seat)
{
	TELL(seat->executor, lost, seat->session, seat->turn);
	seat->turn = NULL;
	session_abandon(seat->connection);
	seat->connection = NULL;
}

static void
finish_turn(Seat *seat, bool at_once)
{
	SqlResult *result;
	bool lost = false;

	TELL(seat->executor, completes, seat->turn, at_once);
	while ((result = session_raw_next(seat->connection)) != NULL)
	{
		lost = lost || sql_is_loss(result);
		TELL(seat->executor, result, result);
		sql_free(result);
	}
	if (lost && seat->executor->config.survives)
	{
		lose(seat);
		return;
	}
	tell_notifications(seat);
	seat->turn = NULL;
}

static bool
is_marked_once(const SpecTurn *turn)
{
	for (int i = 0; i < turn->mark_count; i++)
	{
		if (turn->marks[i]->kind == MARK_ONCE)
		{
			return true;
		}
	}
	return false;
}

/* Look at a step under way. `first`: it was just sent, and is to be told to wait when it does. */
static TurnState
try_turn(Seat *seat, bool may_wait, bool first)
{
	TurnState state = TURN_WAITS;

	if (!first || !is_marked_once(seat->turn))
	{
		state = await_answer(seat, may_wait, first);
	}
	if (state == TURN_DONE && is_held_back(seat))
	{
		state = TURN_WAITS;
	}
	if (state == TURN_DONE)
	{
		finish_turn(seat, first);
	}
	else if (state == TURN_WAITS && first)
	{
		TELL(seat->executor, waits, seat->turn);
	}
	return state;
}


/* --- those that wait --- */

static void
stop_waiting(Executor *executor, int place)
{
	executor->waiting_count--;
	memmove(&executor->waiting[place], &executor->waiting[place + 1],
			sizeof(Seat *) * (size_t) (executor->waiting_count - place));
}

/* One round over those that wait. *held: one that has marks still does. false: told. */
static bool
try_each_waiting(Executor *executor, bool may_wait, bool *held)
{
	int place = 0;

	*held = false;
	while (place < executor->waiting_count)
	{
		Seat *seat = executor->waiting[place];

		switch (try_turn(seat, may_wait, false))
		{
			case TURN_DONE:
				stop_waiting(executor, place);
				break;
			case TURN_WAITS:
				*held = *held || seat->turn->mark_count > 0;
				place++;
				break;
			case TURN_BROKEN:
				return false;
		}
	}
	return true;
}

/*
 * Rounds until none changes what a mark waits for: what is told must not depend on who began to wait first. With `survives`
 * until nobody completes: whoever does may have let another go on, and who can be next must not depend on that either.
 */
static bool
try_waiting(Executor *executor, bool may_wait)
{
	bool held;
	int before;

	do
	{
		before = executor->waiting_count;
		executor->noticed = false;
		if (!try_each_waiting(executor, may_wait, &held))
		{
			return false;
		}
	} while ((held || executor->config.survives) && (executor->waiting_count < before || executor->noticed));
	return true;
}

static void
tell_stuck(Executor *executor, const Seat *stuck, int64_t waited_us)
{
	Text names = {0};

	for (int i = 0; i < executor->spec->session_count; i++)
	{
		if (executor->seats[i].turn != NULL)
		{
			text_append(&names, " %s", executor->seats[i].turn->name);
		}
	}
	trouble(executor, "step %s timed out after %d seconds\nactive steps are:%s\n", stuck->turn->name,
			(int) (waited_us / US_PER_S), text_get(&names));
	text_free(&names);
}

/* A session has one step under way at a time. The marks of that step may have to wait for others that wait. */
static bool
clear_seat(Seat *seat)
{
	Executor *executor = seat->executor;
	int64_t begun_ns = time_now_ns();
	int64_t pause_us = LOOK_FIRST_US;

	while (seat->turn != NULL)
	{
		TurnState state = try_turn(seat, false, false);
		int place = 0;

		while (state == TURN_DONE && executor->waiting[place] != seat)
		{
			place++;
		}
		if (state == TURN_DONE)
		{
			stop_waiting(executor, place);
		}
		if (state == TURN_BROKEN || !try_waiting(executor, true))
		{
			return false;
		}
		if (seat->turn != NULL && us_since(begun_ns) > 2 * executor->config.step_limit_us)
		{
			tell_stuck(executor, seat, us_since(begun_ns));
			return false;
		}
		if (seat->turn != NULL)
		{
			backoff_us(pause_us);
			pause_us = next_pause_us(pause_us);
		}
	}
	return true;
}


/* --- a permutation --- */

/* Setups and teardowns, by their last result, which is freed; false: told. */
static bool
conclude_block(Executor *executor, const Session *connection, SqlResult *result, const char *what, const char *of)
{
	ResultKind kind = sql_kind(result);

	if (kind == RESULT_ROWS)
	{
		TELL(executor, result, result);
	}
	else if (kind != RESULT_COMMAND)
	{
		trouble(executor, "%s%s%s failed: %s", what, of != NULL ? " of session " : "", of != NULL ? of : "",
				session_raw_message(connection));
	}
	sql_free(result);
	return kind == RESULT_ROWS || kind == RESULT_COMMAND;
}

Deadline
executor_deadline(const Executor *executor)
{
	return (Deadline){.at_ns = time_now_ns() + executor->config.step_limit_us * NS_PER_US};
}

/* isolationtester waits as long as it takes. */
static bool
run_block(Executor *executor, Session *connection, const SpecBlock *block, const char *what, const char *of)
{
	Deadline deadline = executor_deadline(executor);
	SqlResult *result = executor->config.survives ? session_raw_execute_by(connection, block->sql, deadline)
												  : session_raw_execute(connection, block->sql);

	return conclude_block(executor, connection, result, what, of);
}

/* What a session holds beyond its steps would block others: transactions, and advisory locks of the session. */
static void
roll_back(Seat *seat)
{
	if (session_raw_block(seat->connection) != BLOCK_NONE)
	{
		sql_free(session_raw_execute(seat->connection, "ROLLBACK"));
	}
	if (seat->advises)
	{
		sql_free(session_raw_execute(seat->connection, "SELECT pg_catalog.pg_advisory_unlock_all()"));
	}
}

bool
executor_set_up_all(Executor *executor)
{
	const Spec *spec = executor->spec;

	for (int i = 0; i < spec->setup_count; i++)
	{
		if (!run_block(executor, executor->control, spec->setups[i], "setup", NULL))
		{
			return false;
		}
	}
	return true;
}

bool
executor_set_up_session(Executor *executor, int session)
{
	const SpecSession *of = executor->spec->sessions[session];
	Session *connection = executor->seats[session].connection;

	return of->setup == NULL || connection == NULL || run_block(executor, connection, of->setup, "setup", of->name);
}

/* Of statements that were sent: the last result, or the error, behind which nothing comes. */
static SqlResult *
last_result(Session *connection)
{
	SqlResult *last = NULL;
	SqlResult *next;

	while ((next = session_raw_next(connection)) != NULL)
	{
		sql_free(last);
		last = next;
	}
	return last;
}

/* All at once where none can meet another, for each is hardly more than a round trip. */
static bool
set_up_plain_sessions(Executor *executor)
{
	const Spec *spec = executor->spec;
	bool *sent = memory_get((size_t) spec->session_count);
	bool done = true;

	for (int i = 0; i < spec->session_count; i++)
	{
		const Seat *seat = &executor->seats[i];

		sent[i] = seat->session->setup != NULL && seat->connection != NULL &&
				  session_raw_send(seat->connection, seat->session->setup->sql);
	}
	for (int i = 0; done && i < spec->session_count; i++)
	{
		const Seat *seat = &executor->seats[i];

		/* what could not be sent says so when it is run */
		done = sent[i] ? conclude_block(executor, seat->connection, last_result(seat->connection), "setup",
										seat->session->name)
					   : executor_set_up_session(executor, i);
	}
	free(sent);
	return done;
}

bool
executor_was_set_up(const Executor *executor)
{
	return executor->was_set_up;
}

static bool
set_up_sessions(Executor *executor)
{
	bool done = true;
	bool plain = true;

	for (int i = 0; i < executor->spec->session_count; i++)
	{
		plain = plain && executor->seats[i].plain;
	}
	if (plain)
	{
		return set_up_plain_sessions(executor);
	}
	for (int i = 0; done && i < executor->spec->session_count; i++)
	{
		done = executor_set_up_session(executor, i);
	}
	return done;
}

bool
executor_set_up(Executor *executor)
{
	bool done = executor_set_up_all(executor) && set_up_sessions(executor);

	executor->was_set_up = executor->was_set_up || done;
	return done;
}

/* Statements that a run which was given up has left would hold up the teardown for as long as they like. */
static void
end_left_turns(Executor *executor)
{
	for (int i = 0; i < executor->spec->session_count; i++)
	{
		if (executor->seats[i].turn != NULL)
		{
			(void) session_try(executor->control, NULL, "SELECT pg_terminate_backend($1)",
							   ARGS(arg_int(executor->seats[i].pid)));
			executor_drop(executor, i);
		}
	}
}

bool
executor_tear_down(Executor *executor)
{
	const Spec *spec = executor->spec;

	if (executor->config.survives)
	{
		end_left_turns(executor);
	}

	for (int i = 0; i < spec->session_count; i++)
	{
		const SpecSession *session = spec->sessions[i];

		if (executor->seats[i].connection == NULL)
		{
			continue;
		}
		if (session->teardown != NULL)
		{
			(void) run_block(executor, executor->seats[i].connection, session->teardown, "teardown", session->name);
		}
		if (executor->config.survives)
		{
			roll_back(&executor->seats[i]);
		}
	}
	return spec->teardown == NULL || run_block(executor, executor->control, spec->teardown, "teardown", NULL);
}

static void
set_targets(Seat *seat)
{
	for (int i = 0; i < seat->turn->mark_count; i++)
	{
		const SpecMark *mark = seat->turn->marks[i];

		if (mark->kind == MARK_NOTICES)
		{
			seat->targets[i] = mark->notices + seat->executor->seats[mark->step->session].notices;
		}
	}
}

bool
executor_launch(Executor *executor, const SpecTurn *turn)
{
	Seat *seat = &executor->seats[turn->step->session];
	TurnState state;

	if (!clear_seat(seat))
	{
		return false;
	}
	if (seat->connection == NULL)
	{
		return true;
	}
	if (!session_raw_send(seat->connection, turn->step->sql))
	{
		if (executor->config.survives)
		{
			seat->turn = turn;
			lose(seat);
			return true;
		}
		TELL(executor, unsent, turn, session_raw_message(seat->connection));
		return false;
	}
	seat->turn = turn;
	set_targets(seat);
	state = try_turn(seat, true, true);
	if (state == TURN_BROKEN || !try_waiting(executor, true))
	{
		return false;
	}
	if (state == TURN_WAITS)
	{
		executor->waiting[executor->waiting_count++] = seat;
	}
	return true;
}

bool
executor_drain(Executor *executor)
{
	if (!try_waiting(executor, false))
	{
		return false;
	}
	if (executor->waiting_count > 0)
	{
		trouble(executor, "failed to complete permutation due to mutually-blocking steps\n");
		return false;
	}
	return true;
}


/* --- orders that are decided on the way --- */

bool
executor_is_busy(const Executor *executor, int session)
{
	return executor->seats[session].turn != NULL;
}

bool
executor_is_held(const Executor *executor, int session)
{
	const Seat *seat = &executor->seats[session];

	return seat->turn != NULL && session_raw_busy(seat->connection);
}

bool
executor_is_lost(const Executor *executor, int session)
{
	return executor->seats[session].connection == NULL;
}

int
executor_waiting(const Executor *executor)
{
	return executor->waiting_count;
}

bool
executor_settle(Executor *executor)
{
	return try_waiting(executor, true);
}

int
executor_pid(const Executor *executor, int session)
{
	return executor->seats[session].pid;
}

Session *
executor_session(const Executor *executor, int session)
{
	return executor->seats[session].connection;
}

Session *
executor_control(const Executor *executor)
{
	return executor->control;
}

bool
executor_deadlocks(Executor *executor, int session, bool *deadlocks)
{
	/* every backend that the session's wait leads to; a cycle among them ends it, whether the session is part of it or not */
	static const char sql[] =
		"WITH RECURSIVE waits(waiter, holder) AS"
		" (SELECT $1::int, pg_catalog.unnest(pg_catalog.pg_blocking_pids($1::int))"
		"  UNION SELECT w.holder, h FROM waits w, pg_catalog.unnest(pg_catalog.pg_blocking_pids(w.holder)) h),"
		" reach AS (SELECT waiter, holder FROM waits UNION"
		"  SELECT r.waiter, w.holder FROM reach r JOIN waits w ON w.waiter = r.holder)"
		" SELECT EXISTS (SELECT FROM reach WHERE waiter = holder)";
	SqlResult *answer;

	*deadlocks = false;
	if (executor->waiting_count < 2)
	{
		return true;
	}
	if (session_try(executor->control, &answer, sql, ARGS(arg_int(executor->seats[session].pid))) != SQL_OK)
	{
		trouble(executor, "deadlock query failed: %s", session_raw_message(executor->control));
		return false;
	}
	*deadlocks = sql_bool(answer, 0, 0);
	sql_free(answer);
	return true;
}

static void
cancel(Seat *seat, int64_t waited_us)
{
	char why[256];

	if (session_raw_cancel(seat->connection, why, sizeof(why)))
	{
		TELL(seat->executor, canceled, seat->turn, (int) (waited_us / US_PER_S));
	}
	else
	{
		trouble(seat->executor, "PQcancel failed: %s\n", why);
	}
}

bool
executor_await_any(Executor *executor)
{
	int before = executor->waiting_count;
	int64_t begun_ns = time_now_ns();
	int64_t pause_us = LOOK_FIRST_US;
	bool canceled = false;

	while (executor->waiting_count > 0 && executor->waiting_count == before)
	{
		int64_t waited_us = us_since(begun_ns);

		if (!try_waiting(executor, true))
		{
			return false;
		}
		if (executor->waiting_count < before)
		{
			break;
		}
		if (is_interrupted(executor))
		{
			return false;
		}
		if (waited_us > 2 * executor->config.step_limit_us)
		{
			tell_stuck(executor, executor->waiting[0], waited_us);
			return false;
		}
		if (waited_us > executor->config.step_limit_us && !canceled)
		{
			cancel(executor->waiting[0], waited_us);
			canceled = true;
		}
		backoff_us(pause_us);
		pause_us = next_pause_us(pause_us);
	}
	return true;
}

bool
executor_cancel_all(Executor *executor)
{
	char why[256];
	bool done = true;

	while (done && executor->waiting_count > 0)
	{
		for (int i = 0; i < executor->waiting_count; i++)
		{
			(void) !session_raw_cancel(executor->waiting[i]->connection, why, sizeof(why));
		}
		done = executor_await_any(executor);
	}
	for (int i = 0; done && i < executor->spec->session_count; i++)
	{
		if (executor->seats[i].connection != NULL)
		{
			roll_back(&executor->seats[i]);
		}
	}
	return done;
}

void
executor_drop(Executor *executor, int session)
{
	Seat *seat = &executor->seats[session];

	if (seat->connection == NULL)
	{
		return;
	}
	for (int i = 0; i < executor->waiting_count; i++)
	{
		if (executor->waiting[i] == seat)
		{
			stop_waiting(executor, i);
			break;
		}
	}
	lose(seat);
}

bool
executor_revive_control(Executor *executor)
{
	session_abandon(executor->control);
	return open_control(executor);
}

bool
executor_revive(Executor *executor)
{
	bool any = false;

	for (int i = 0; i < executor->spec->session_count; i++)
	{
		any = any || executor->seats[i].connection == NULL;
	}
	if (!any)
	{
		return true;
	}
	if (executor->looks && session_try(executor->control, NULL, "DEALLOCATE " LOOK_STATEMENT, NO_ARGS) != SQL_OK)
	{
		trouble(executor, "control connection failed: %s", session_raw_message(executor->control));
		return false;
	}
	executor->looks = false;
	begin_seats(executor);
	return finish_seats(executor);
}

bool
executor_run(Executor *executor, const SpecTurn *const *turns, int count)
{
	if (!executor_set_up(executor))
	{
		return false;
	}
	for (int i = 0; i < count; i++)
	{
		if (!executor_launch(executor, turns[i]))
		{
			return false;
		}
	}
	if (!executor_drain(executor))
	{
		return false;
	}
	(void) executor_tear_down(executor); /* what it leaves is the next setup's to complain about */
	return true;
}
