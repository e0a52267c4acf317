#include "trial.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define US_PER_MS 1000
#define DEPENDENCY "read/write dependencies" /* another 40001 has other words */
#define SHOWN_BYTES 400                      /* of a statement or an answer, in the story */

struct Trial
{
	TrialConfig config;
	FaultSite site;
	bool borrows; /* the site's executor */
	Record record;
	int telling; /* session whose results come; -1: none's */
	const SpecStep *const *faults;
	int fault_count, fault_next;
	const TrialPilot *pilot;
	bool released; /* a rollback may have let others go on */
	bool refused;  /* what it was to run, and trouble says why */
};


/* --- words --- */

/* In one line, and not all of what is long. */
static void
append_line(Text *text, const char *words)
{
	size_t length = strlen(words);
	bool blank = true;

	for (size_t i = 0; i < length && i < SHOWN_BYTES; i++)
	{
		bool space = words[i] == ' ' || words[i] == '\n' || words[i] == '\t' || words[i] == '\r';

		if (!space || !blank)
		{
			text_append_bytes(text, space ? " " : &words[i], 1);
		}
		blank = space;
	}
	text_append(text, "%s\n", length > SHOWN_BYTES ? " ..." : "");
}

static int
compare_lines(const void *a, const void *b)
{
	return strcmp(*(char *const *) a, *(char *const *) b);
}

static char *
row_text(const SqlResult *result, int row)
{
	Text text = {0};

	text_append(&text, "(");
	for (int i = 0; i < sql_columns(result); i++)
	{
		text_append(&text, "%s%s", i > 0 ? ", " : "", sql_is_null(result, row, i) ? "NULL" : sql_text(result, row, i));
	}
	text_append(&text, ")");
	return text.data;
}

static void
append_rows(const SqlResult *result, Text *text)
{
	int count = sql_rows(result);
	char **rows = memory_get(sizeof(char *) * ((size_t) count + 1));

	for (int i = 0; i < count; i++)
	{
		rows[i] = row_text(result, i);
	}
	qsort(rows, (size_t) count, sizeof(char *), compare_lines);
	text_append(text, "%s", count == 0 ? "no rows" : "");
	for (int i = 0; i < count; i++)
	{
		text_append(text, "%s%s", i > 0 ? " " : "", rows[i]);
		free(rows[i]);
	}
	free(rows);
}

void
trial_append_answer(const SqlResult *result, Text *text)
{
	SqlComplaint complaint;

	text_append(text, "%s", text->length > 0 ? "; " : "");
	switch (sql_kind(result))
	{
		case RESULT_ROWS:
			append_rows(result, text);
			break;
		case RESULT_ERROR:
			complaint = sql_complaint(result);
			text_append(text, "%s", complaint.sqlstate != NULL ? complaint.sqlstate : "connection lost");
			break;
		default:
			text_append(text, "%s", sql_tag(result));
			break;
	}
}


/* --- what the executor tells --- */

static Deed *
last_deed(Part *part)
{
	return &part->deeds[part->deed_count - 1];
}

static int
index_of(const Trial *trial, const SpecSession *session)
{
	int i = 0;

	while (trial->config.spec->sessions[i] != session)
	{
		i++;
	}
	return i;
}

static void
hear_waits(void *context, const SpecTurn *turn)
{
	Trial *trial = context;

	last_deed(&trial->record.parts[turn->step->session])->waited = true;
	trial->record.waits++;
	text_append(&trial->record.story, "      waits\n");
}

static void
hear_completes(void *context, const SpecTurn *turn, bool at_once)
{
	Trial *trial = context;

	trial->telling = turn->step->session;
	last_deed(&trial->record.parts[trial->telling])->answered = true;
	if (!at_once)
	{
		text_append(&trial->record.story, "    %s goes on\n", turn->name);
	}
}

/* One statement more of the step; an error has no tag. */
static void
take_statement(Deed *deed, const char *tag)
{
	bool commits = strcmp(tag, "COMMIT") == 0;
	bool rolls_back = strcmp(tag, "ROLLBACK") == 0;
	bool begins = strcmp(tag, "BEGIN") == 0 || strcmp(tag, "START TRANSACTION") == 0;

	deed->commits = deed->commits || commits;
	deed->rolls_back = !commits && (deed->rolls_back || rolls_back);
	if (commits || rolls_back)
	{
		deed->follow = 0;
		deed->begins = false;
	}
	else if (deed->commits || deed->rolls_back)
	{
		deed->follow++;
		deed->begins = deed->begins || begins;
	}
}

static void
hear_result(void *context, const SqlResult *result)
{
	Trial *trial = context;
	Deed *deed;
	size_t before;

	if (trial->telling < 0)
	{
		return;
	}
	deed = last_deed(&trial->record.parts[trial->telling]);
	before = deed->answer.length;
	trial_append_answer(result, &deed->answer);
	text_append(&trial->record.story, "      ");
	append_line(&trial->record.story, text_get(&deed->answer) + before + (before > 0 ? 2 : 0));
	if (sql_kind(result) == RESULT_ERROR)
	{
		SqlComplaint complaint = sql_complaint(result);

		if (deed->sqlstate[0] == '\0')
		{
			snprintf(deed->sqlstate, sizeof(deed->sqlstate), "%s",
					 complaint.sqlstate != NULL ? complaint.sqlstate : "08006");
			deed->dependency = complaint.primary != NULL && strstr(complaint.primary, DEPENDENCY) != NULL;
			text_append(&deed->complaint, "%s", complaint.primary != NULL ? complaint.primary : "");
		}
		take_statement(deed, "");
		text_append(&trial->record.story, "      ");
		append_line(&trial->record.story, complaint.primary != NULL ? complaint.primary : complaint.whole);
		return;
	}
	take_statement(deed, sql_tag(result));
}

static void
ignore_notice(void *context, const SpecSession *session, const char *message)
{
	(void) context;
	(void) session;
	(void) message;
}

static void
hear_notified(void *context, const SpecSession *session, const Notification *notification, const char *sender)
{
	Trial *trial = context;

	text_append(&trial->record.story, "      %s is notified by %s: ", session->name, sender);
	append_line(&trial->record.story, notification->payload);
}

static void
hear_canceled(void *context, const SpecTurn *turn, int seconds)
{
	Trial *trial = context;

	if (trial->record.unknown.length == 0)
	{
		text_append(&trial->record.unknown, "%s:%d:%d: step %s had not ended after %d s, and was cancelled",
					trial->config.path, turn->step->place.line, turn->step->place.column, turn->name, seconds);
	}
}

static void
hear_unsent(void *context, const SpecTurn *turn, const char *why)
{
	Trial *trial = context;

	text_append(&trial->record.trouble, "step %s cannot be sent: %s", turn->name, why);
}

static void
hear_trouble(void *context, const char *words)
{
	Trial *trial = context;

	text_clear(&trial->record.trouble);
	for (bool blank = true; *words != '\0'; words++)
	{
		bool space = *words == '\n' || *words == '\t' || *words == ' ';

		if (!space)
		{
			text_append_bytes(&trial->record.trouble, words, 1);
		}
		else if (!blank && words[1] != '\0')
		{
			text_append(&trial->record.trouble, " ");
		}
		blank = space;
	}
}

static void
ignore_lingers(void *context)
{
	(void) context;
}

/* Whether a statement that nobody heard the end of may have committed. */
static bool
may_commit(const Part *part)
{
	const char *sql = part->deeds[part->deed_count - 1].step->sql;

	return !part->open || strcasestr(sql, "commit") != NULL || strcasestr(sql, "end") != NULL;
}

static void
hear_lost(void *context, const SpecSession *session, const SpecTurn *turn)
{
	Trial *trial = context;
	Part *part = &trial->record.parts[index_of(trial, session)];

	part->lost = true;
	if (turn != NULL && !last_deed(part)->answered && may_commit(part))
	{
		part->doubtful = part->decided;
	}
	text_append(&trial->record.story, "      %s has lost its connection\n", session->name);
}

static const ExecutorEvents EVENTS = {
	.waits = hear_waits,
	.completes = hear_completes,
	.result = hear_result,
	.notice = ignore_notice,
	.notified = hear_notified,
	.canceled = hear_canceled,
	.unsent = hear_unsent,
	.trouble = hear_trouble,
	.lingers = ignore_lingers,
	.lost = hear_lost,
};


/* --- life --- */

static Trial *
make(const TrialConfig *config)
{
	Trial *trial = memory_get(sizeof(*trial));

	trial->config = *config;
	trial->telling = -1;
	trial->record.parts = memory_get(sizeof(Part) * (size_t) config->spec->session_count);
	trial->record.fired = memory_get(sizeof(int) * ((size_t) config->spec->fault_count + 1));
	return trial;
}

Trial *
trial_open(const TrialConfig *config)
{
	Trial *trial = make(config);
	ExecutorConfig executor = {.conninfo = config->conninfo,
							   .step_limit_us = config->step_limit_ms * US_PER_MS,
							   .survives = true,
							   .events = &EVENTS,
							   .context = trial};

	trial->site = (FaultSite){.executor = executor_open(config->spec, &executor),
							  .cluster = config->cluster,
							  .limit_ms = config->step_limit_ms};
	if (trial->site.executor == NULL)
	{
		report_error("%s: %s", config->path, text_get(&trial->record.trouble));
		trial_close(trial);
		return NULL;
	}
	return trial;
}

Trial *
trial_open_beside(const Trial *other)
{
	Trial *trial = make(&other->config);

	trial->site = other->site;
	trial->borrows = true;
	return trial;
}

void
trial_close(Trial *trial)
{
	if (trial == NULL)
	{
		return;
	}
	executor_close(trial->borrows ? NULL : trial->site.executor);
	for (int i = 0; i < trial->config.spec->session_count; i++)
	{
		Part *part = &trial->record.parts[i];

		for (int k = 0; k < part->deed_capacity; k++)
		{
			text_free(&part->deeds[k].answer);
			text_free(&part->deeds[k].complaint);
		}
		text_free(&part->errors);
		free(part->deeds);
	}
	text_free(&trial->record.order);
	text_free(&trial->record.story);
	text_free(&trial->record.unknown);
	text_free(&trial->record.trouble);
	free(trial->record.parts);
	free(trial->record.fired);
	free(trial);
}

/* The memory of the last interleaving is used again. */
static void
forget(Trial *trial)
{
	Record *record = &trial->record;

	for (int i = 0; i < trial->config.spec->session_count; i++)
	{
		Part *part = &record->parts[i];
		Part empty = {
			.deeds = part->deeds, .deed_capacity = part->deed_capacity, .errors = part->errors, .doubtful = -1};

		*part = empty;
		text_clear(&part->errors);
	}
	memset(record->fired, 0, sizeof(int) * (size_t) trial->config.spec->fault_count);
	text_clear(&record->order);
	text_clear(&record->story);
	text_clear(&record->unknown);
	text_clear(&record->trouble);
	record->launched = record->waits = record->retries_40001 = record->retries_40p01 = record->false_conflicts = 0;
	trial->fault_next = trial->fault_count = 0;
	trial->released = trial->refused = false;
	trial->telling = -1;
}

static Deed *
add_deed(Part *part, const SpecStep *step)
{
	Deed *deed;
	Text answer;
	Text complaint;

	if (part->deed_count == part->deed_capacity)
	{
		int more = part->deed_capacity * 2 + 8;

		part->deeds = memory_grow(part->deeds, sizeof(Deed) * (size_t) more);
		memset(part->deeds + part->deed_capacity, 0, sizeof(Deed) * (size_t) (more - part->deed_capacity));
		part->deed_capacity = more;
	}
	deed = &part->deeds[part->deed_count++];
	answer = deed->answer;
	complaint = deed->complaint;
	text_clear(&answer);
	text_clear(&complaint);
	*deed = (Deed){.step = step, .answer = answer, .complaint = complaint};
	return deed;
}


/* --- transactions: which deeds are in effect --- */

static void
decide(Part *part, bool in_effect)
{
	for (; part->decided < part->deed_count; part->decided++)
	{
		part->deeds[part->decided].in_effect = in_effect;
	}
}

/* What was rolled back by choice is as good as a read, and what follows it counts; what had failed is not. */
static bool
has_effect(const Part *part)
{
	const Deed *last = &part->deeds[part->deed_count - 1];
	bool failed = false;

	for (int i = part->decided; i < part->deed_count; i++)
	{
		failed = failed || part->deeds[i].sqlstate[0] != '\0';
	}
	return last->sqlstate[0] == '\0' && (!last->rolls_back || (last->follow > 0 && !failed));
}

/* The transaction that has just committed answered, step by step, what the refused attempt before it had answered. */
static bool
is_false_conflict(const Part *part)
{
	bool same = part->refused_count > 0 && part->begun + part->refused_count <= part->deed_count;

	for (int i = 0; same && i < part->refused_count; i++)
	{
		const Deed *before = &part->deeds[part->refused + i];
		const Deed *now = &part->deeds[part->begun + i];

		same = before->step == now->step && strcmp(text_get(&before->answer), text_get(&now->answer)) == 0;
	}
	return same;
}

static void
remember_refused(Part *part)
{
	part->refused = part->begun;
	part->refused_count = last_deed(part)->dependency ? part->deed_count - 1 - part->begun : 0;
	part->begun = part->deed_count;
}

static bool
retry(Trial *trial, int session)
{
	Part *part = &trial->record.parts[session];
	const char *sqlstate = last_deed(part)->sqlstate;
	bool due = strcmp(sqlstate, "40001") == 0 || strcmp(sqlstate, "40P01") == 0;

	if (!due || part->attempt == trial->config.spec->sessions[session]->retries)
	{
		return true;
	}
	decide(part, false);
	remember_refused(part);
	part->attempt++;
	part->again = true;
	part->next = 0;
	if (strcmp(sqlstate, "40001") == 0)
	{
		trial->record.retries_40001++;
	}
	else
	{
		trial->record.retries_40p01++;
	}
	text_append(&trial->record.story, "    %s begins again\n", trial->config.spec->sessions[session]->name);
	if (session_raw_block(executor_session(trial->site.executor, session)) != BLOCK_NONE)
	{
		sql_free(session_raw_execute(executor_session(trial->site.executor, session), "ROLLBACK"));
	}
	part->open = false;
	trial->released = true;
	if (!executor_set_up_session(trial->site.executor, session))
	{
		return false;
	}
	part->open = session_raw_block(executor_session(trial->site.executor, session)) != BLOCK_NONE;
	return true;
}

static TrialEnd PRINTF_LIKE(3, 4) refuse(Trial *trial, SpecPlace place, const char *format, ...)
{
	va_list args;

	text_clear(&trial->record.trouble);
	text_append(&trial->record.trouble, "%s:%d:%d: ", trial->config.path, place.line, place.column);
	va_start(args, format);
	text_append_va(&trial->record.trouble, format, args);
	va_end(args);
	trial->refused = executor_cancel_all(trial->site.executor);
	return trial->refused ? TRIAL_REFUSED : TRIAL_STOPPED;
}

/* A transaction has ended in this step, and another is open; what goes back to a savepoint says ROLLBACK, too. */
static bool
begins_anew(const Deed *deed)
{
	return deed->begins || (deed->commits && !deed->rolls_back) ||
		   (deed->rolls_back && strcasestr(deed->step->sql, "and chain") != NULL);
}

/* What the step has ended is decided by it. false: it does more than begin the other one, which is not decided yet. */
static bool
decide_ended(Trial *trial, Part *part, const Deed *deed)
{
	if (deed->follow > (deed->begins ? 1 : 0))
	{
		(void) refuse(trial, deed->step->place,
					  "step %s ends a transaction and does more than begin the next one: make two steps of it",
					  deed->step->name);
		return false;
	}
	decide(part, !deed->rolls_back);
	return true;
}

/* A session's step is over. false: trouble. */
static bool
conclude_deed(Trial *trial, int session)
{
	Part *part = &trial->record.parts[session];
	Deed *deed = last_deed(part);
	BlockState block;

	if (deed->sqlstate[0] != '\0' && strcmp(deed->sqlstate, FAILED_ALREADY) != 0)
	{
		text_append(&part->errors, "%s%s at %s%s", part->errors.length > 0 ? ", " : "", deed->sqlstate,
					deed->step->name, deed->waited ? " after a wait" : "");
	}
	if (part->lost)
	{
		decide(part, false);
		part->open = false;
		return true;
	}
	block = session_raw_block(executor_session(trial->site.executor, session));
	part->open = block != BLOCK_NONE;
	if (!part->open)
	{
		decide(part, has_effect(part));
	}
	else if (begins_anew(deed) && !decide_ended(trial, part, deed))
	{
		return false;
	}
	if (deed->in_effect && is_false_conflict(part))
	{
		trial->record.false_conflicts++;
		part->refused_count = 0;
	}
	return deed->sqlstate[0] == '\0' || retry(trial, session);
}

/* What has completed since the last look. A session has one step under way at most, its last deed. */
static bool
conclude_all(Trial *trial, bool *under_way)
{
	bool done = true;

	trial->telling = -1;
	for (int i = 0; done && i < trial->config.spec->session_count; i++)
	{
		if (under_way[i] && !executor_is_busy(trial->site.executor, i))
		{
			under_way[i] = false;
			done = conclude_deed(trial, i);
		}
	}
	return done;
}


/* --- a step --- */

/* What lets somebody complete, and then what follows from it. */
static bool
carry_on(Trial *trial, bool (*act)(Trial *trial, const SpecTurn *turn), const SpecTurn *turn)
{
	bool under_way[TRIAL_ACTORS_MAX + 1];
	bool done;

	for (int i = 0; i < trial->config.spec->session_count; i++)
	{
		under_way[i] = executor_is_busy(trial->site.executor, i);
	}
	if (turn != NULL && turn->step->fault == 0)
	{
		under_way[turn->step->session] = true;
	}
	done = act(trial, turn);
	if (turn != NULL && turn->step->fault != 0)
	{
		for (int i = 0; i < trial->config.spec->session_count; i++)
		{
			Part *part = &trial->record.parts[i];

			/* nothing was under way, and yet the transaction is gone */
			if (part->lost && !under_way[i] && part->decided < part->deed_count)
			{
				decide(part, false);
				part->open = false;
			}
			part->open = part->open && !part->lost;
		}
	}
	done = conclude_all(trial, under_way) && done;
	while (done && trial->released)
	{
		trial->released = false;
		done = executor_settle(trial->site.executor) && conclude_all(trial, under_way);
	}
	return done;
}

static bool
act_await(Trial *trial, const SpecTurn *turn)
{
	(void) turn;
	return executor_await_any(trial->site.executor);
}

static bool
act_settle(Trial *trial, const SpecTurn *turn)
{
	(void) turn;
	return executor_settle(trial->site.executor);
}

static bool
act_drain(Trial *trial, const SpecTurn *turn)
{
	(void) turn;
	return executor_drain(trial->site.executor);
}

static bool
act_strike(Trial *trial, const SpecTurn *turn)
{
	const SpecStep *fault = turn->step;
	bool fired;
	bool done = fault_strike(&trial->site, trial->config.spec, fault, &fired);

	if (fault->fault == FAULT_PAUSE || fault->fault == FAULT_RESUME)
	{
		trial->record.parts[fault->session].paused = fault->fault == FAULT_PAUSE;
	}
	for (int i = 0; i < trial->config.spec->fault_count; i++)
	{
		trial->record.fired[i] += fired && trial->config.spec->faults[i] == fault ? 1 : 0;
	}
	return done && executor_settle(trial->site.executor);
}

static bool
act_launch(Trial *trial, const SpecTurn *turn)
{
	Part *part = &trial->record.parts[turn->step->session];

	(void) add_deed(part, turn->step);
	return executor_launch(trial->site.executor, turn);
}

/* The server will end a deadlock by itself; who goes on meanwhile would meet that at a time that nobody has chosen. */
static bool
await_deadlock(Trial *trial)
{
	bool any = true;

	while (any && executor_waiting(trial->site.executor) > 1)
	{
		any = false;
		for (int i = 0; !any && i < trial->config.spec->session_count; i++)
		{
			if (executor_is_held(trial->site.executor, i) && !executor_deadlocks(trial->site.executor, i, &any))
			{
				return false;
			}
		}
		if (any && !carry_on(trial, act_await, NULL))
		{
			return false;
		}
	}
	return true;
}

static bool
run_turn(Trial *trial, const SpecTurn *turn)
{
	const SpecStep *step = turn->step;
	Record *record = &trial->record;

	text_append(&record->order, "%s%s", record->launched > 0 ? " " : "", step->name);
	record->launched++;
	text_append(&record->story, "    %s%s%s: ", step->name, step->fault == 0 ? " of " : "",
				step->fault == 0 ? trial->config.spec->sessions[step->session]->name : "");
	append_line(&record->story, step->sql);
	if (!carry_on(trial, step->fault != 0 ? act_strike : act_launch, turn) || !await_deadlock(trial))
	{
		return false;
	}
	return trial->pilot == NULL || trial->pilot->after == NULL ||
		   trial->pilot->after(trial->pilot->after_context, trial);
}

static const SpecTurn *
next_turn(const Trial *trial, int session)
{
	return &trial->config.spec->sessions[session]->steps[trial->record.parts[session].next]->turn;
}

static bool
run_next(Trial *trial, int session)
{
	const SpecTurn *turn = next_turn(trial, session);

	trial->record.parts[session].next++;
	return run_turn(trial, turn);
}


/* --- orders --- */

static TrialEnd
stop(Trial *trial)
{
	char last[600];

	if (trial->record.trouble.length == 0)
	{
		notice_last_error(last, sizeof(last));
		text_append(&trial->record.trouble, "%s", last);
	}
	/* a step that does not heed that it was cancelled is ended with its session when the trial is */
	if (trial->record.unknown.length > 0)
	{
		text_append(&trial->record.unknown, "; then: %s", text_get(&trial->record.trouble));
		return TRIAL_DONE;
	}
	return trial->refused ? TRIAL_REFUSED : TRIAL_STOPPED;
}

static bool
begin(Trial *trial, const TrialPilot *pilot)
{
	bool again;

	forget(trial);
	trial->pilot = pilot;
	executor_tell(trial->site.executor, trial);
	if (!executor_revive(trial->site.executor))
	{
		return false;
	}
	again = executor_was_set_up(trial->site.executor);
	if (!executor_set_up(trial->site.executor))
	{
		if (again)
		{
			text_append(&trial->record.trouble, "; the setup has run before: what it makes, a teardown has to remove");
		}
		return false;
	}
	for (int i = 0; i < trial->config.spec->session_count; i++)
	{
		trial->record.parts[i].open = session_raw_block(executor_session(trial->site.executor, i)) != BLOCK_NONE;
	}
	return true;
}

static TrialEnd
finish(Trial *trial, bool done)
{
	return done && carry_on(trial, act_drain, NULL) && fault_end_ghosts(&trial->site, trial->config.spec) ? TRIAL_DONE
																										  : stop(trial);
}

/* A wait that ends by itself: the server ends deadlocks, and statements at a limit that the file has set. */
static bool
ends_by_itself(Trial *trial, int session, bool *ends)
{
	const SpecSession *of = trial->config.spec->sessions[session];
	bool timed = of->setup != NULL && (strcasestr(of->setup->sql, "lock_timeout") != NULL ||
									   strcasestr(of->setup->sql, "statement_timeout") != NULL);

	for (int i = 0; i < of->step_count; i++)
	{
		timed = timed || strcasestr(of->steps[i]->sql, "lock_timeout") != NULL ||
				strcasestr(of->steps[i]->sql, "statement_timeout") != NULL;
	}
	*ends = timed;
	return timed || executor_deadlocks(trial->site.executor, session, ends);
}

static TrialEnd
follow_turn(Trial *trial, const SpecTurn *turn)
{
	int session = turn->step->session;
	const Part *part = session >= 0 ? &trial->record.parts[session] : NULL;
	bool ends = true;

	if (turn->step->fault == 0 && part->paused)
	{
		return refuse(trial, turn->place, "step %s: its session %s is paused", turn->name,
					  trial->config.spec->sessions[session]->name);
	}
	/* what a session that is lost, or is to begin again, would have done is not done */
	if (turn->step->fault == 0 && (part->lost || part->again))
	{
		return TRIAL_DONE;
	}
	/* a step marked (*) was not looked at yet: it may be at work, and no more */
	if (turn->step->fault == 0 && executor_is_held(trial->site.executor, session) && !carry_on(trial, act_settle, NULL))
	{
		return stop(trial);
	}
	if (turn->step->fault == 0 && executor_is_held(trial->site.executor, session))
	{
		if (!ends_by_itself(trial, session, &ends))
		{
			return stop(trial);
		}
		if (!ends)
		{
			return refuse(trial, turn->place, "step %s: its session %s still waits in step %s, and cannot take it",
						  turn->name, trial->config.spec->sessions[session]->name,
						  part->deeds[part->deed_count - 1].step->name);
		}
	}
	while (turn->step->fault == 0 && executor_is_busy(trial->site.executor, session))
	{
		if (!carry_on(trial, act_await, NULL))
		{
			return stop(trial);
		}
	}
	return (turn->step->fault == 0 && part->again) || run_turn(trial, turn) ? TRIAL_DONE : stop(trial);
}

/* Those that are to begin again do so when the order is over, one after another. */
static bool
run_again(Trial *trial)
{
	for (int i = 0; i < trial->config.spec->session_count; i++)
	{
		Part *part = &trial->record.parts[i];

		while (part->again && !part->lost && part->next < trial->config.spec->sessions[i]->step_count)
		{
			if (!run_next(trial, i) || !carry_on(trial, act_drain, NULL))
			{
				return false;
			}
		}
	}
	return true;
}

TrialEnd
trial_follow(Trial *trial, const SpecPermutation *permutation, const TrialPilot *pilot)
{
	TrialEnd end = begin(trial, pilot) ? TRIAL_DONE : stop(trial);

	for (int i = 0; end == TRIAL_DONE && i < permutation->turn_count; i++)
	{
		end = follow_turn(trial, permutation->turns[i]);
	}
	if (end == TRIAL_DONE)
	{
		end = finish(trial, carry_on(trial, act_drain, NULL) && run_again(trial));
	}
	return end;
}

int
trial_left(const Trial *trial, int actor)
{
	return actor == trial->config.spec->session_count
			   ? trial->fault_count - trial->fault_next
			   : trial->config.spec->sessions[actor]->step_count - trial->record.parts[actor].next;
}

static uint64_t
find_enabled(const Trial *trial)
{
	int count = trial->config.spec->session_count;
	uint64_t enabled = 0;

	for (int i = 0; i < count; i++)
	{
		const Part *part = &trial->record.parts[i];

		if (trial_left(trial, i) > 0 && !part->lost && !part->paused && !executor_is_busy(trial->site.executor, i))
		{
			enabled |= UINT64_C(1) << i;
		}
	}
	return enabled | (trial_left(trial, count) > 0 ? UINT64_C(1) << count : 0);
}

/* Nobody pauses for ever: when nothing else is left, the client goes on. */
static bool
resume_paused(Trial *trial)
{
	bool any = false;

	for (int i = 0; i < trial->config.spec->session_count; i++)
	{
		any = any || (trial->record.parts[i].paused && !trial->record.parts[i].lost);
		trial->record.parts[i].paused = false;
	}
	return any;
}

static bool
run_chosen(Trial *trial, int actor)
{
	return actor < trial->config.spec->session_count ? run_next(trial, actor)
													 : run_turn(trial, &trial->faults[trial->fault_next++]->turn);
}

TrialEnd
trial_explore(Trial *trial, const SpecStep *const *faults, int fault_count, const TrialPilot *pilot)
{
	bool done = begin(trial, pilot);
	bool going = done;

	trial->faults = faults;
	trial->fault_count = fault_count;
	while (done && going)
	{
		uint64_t enabled = find_enabled(trial);

		if (enabled != 0)
		{
			int actor = pilot->choose(pilot->context, trial, enabled);

			if (actor < 0)
			{
				return executor_cancel_all(trial->site.executor) ? TRIAL_GIVEN_UP : stop(trial);
			}
			done = run_chosen(trial, actor);
		}
		else if (executor_waiting(trial->site.executor) > 0)
		{
			done = resume_paused(trial) || carry_on(trial, act_await, NULL);
		}
		else
		{
			going = resume_paused(trial);
		}
	}
	return finish(trial, done);
}

/* What its setup has begun began too early for a serial order: it is begun anew in its turn. */
static bool
begin_in_turn(Trial *trial, int session)
{
	return !trial->record.parts[session].open || executor_set_up_session(trial->site.executor, session);
}

TrialEnd
trial_serial(Trial *trial, const SerialPart *parts, int count)
{
	bool done = begin(trial, NULL);

	for (int i = 0; done && i < trial->config.spec->session_count; i++)
	{
		if (trial->record.parts[i].open)
		{
			sql_free(session_raw_execute(executor_session(trial->site.executor, i), "ROLLBACK"));
		}
	}
	for (int i = 0; done && i < count; i++)
	{
		done = begin_in_turn(trial, parts[i].session);
		for (int k = 0; done && k < parts[i].count; k++)
		{
			done = run_turn(trial, &parts[i].steps[k]->turn) && carry_on(trial, act_drain, NULL);
		}
	}
	return finish(trial, done);
}


/* --- steps that say that they only read --- */

/* One of pg_locks that a plain read does not take. */
static const char foreign_locks[] =
	"SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype <> 'virtualxid'"
	" AND mode NOT IN ('AccessShareLock', 'SIReadLock')";

static TrialEnd
try_read(Trial *trial, const SpecStep *step)
{
	Session *session = executor_session(trial->site.executor, step->session);
	bool outside = !trial->record.parts[step->session].open;
	int64_t before = 0;
	int64_t after = 0;
	SqlResult *result;
	TrialEnd end = TRIAL_DONE;

	sql_free(
		session_raw_execute(session, outside ? "BEGIN; SAVEPOINT counterproof_read" : "SAVEPOINT counterproof_read"));
	if (!session_query_int(session, &before, foreign_locks, NO_ARGS))
	{
		return stop(trial);
	}
	sql_free(session_raw_execute(session, "SET TRANSACTION READ ONLY"));
	result = session_raw_execute_by(session, step->sql, executor_deadline(trial->site.executor));
	if (sql_kind(result) == RESULT_ERROR)
	{
		const char *why = sql_complaint(result).primary;

		end = refuse(trial, step->place, "step %s is marked read, but in a read-only subtransaction it fails: %s",
					 step->name, why != NULL ? why : "it ends its connection");
	}
	else if (session_raw_block(session) != BLOCK_OPEN)
	{
		end = refuse(trial, step->place, "step %s is marked read, but it ends its transaction", step->name);
	}
	else if (!session_query_int(session, &after, foreign_locks, NO_ARGS) || after > before)
	{
		end = refuse(trial, step->place, "step %s is marked read, but it takes locks", step->name);
	}
	sql_free(result);
	if (end == TRIAL_DONE)
	{
		sql_free(session_raw_execute(session, outside ? "ROLLBACK" : "ROLLBACK TO counterproof_read"));
	}
	return end;
}

TrialEnd
trial_try_reads(Trial *trial)
{
	const Spec *spec = trial->config.spec;
	TrialEnd end = begin(trial, NULL) ? TRIAL_DONE : stop(trial);

	for (int i = 0; end == TRIAL_DONE && i < spec->session_count; i++)
	{
		for (int k = 0; end == TRIAL_DONE && k < spec->sessions[i]->step_count; k++)
		{
			const SpecStep *step = spec->sessions[i]->steps[k];

			end = step->reads ? try_read(trial, step) : TRIAL_DONE;
			if (end == TRIAL_DONE && (!run_turn(trial, &step->turn) || !carry_on(trial, act_drain, NULL)))
			{
				end = stop(trial);
			}
		}
	}
	return end == TRIAL_DONE ? finish(trial, true) : end;
}

bool
trial_end(Trial *trial)
{
	trial->telling = -1;
	return executor_tear_down(trial->site.executor);
}


/* --- what came of it --- */

const Record *
trial_record(const Trial *trial)
{
	return &trial->record;
}

const Spec *
trial_spec(const Trial *trial)
{
	return trial->config.spec;
}

Executor *
trial_executor(Trial *trial)
{
	return trial->site.executor;
}

bool
part_is_in_effect(const Part *part)
{
	for (int i = 0; i < part->deed_count; i++)
	{
		if (part->deeds[i].in_effect)
		{
			return true;
		}
	}
	return false;
}

void
trial_fate(const Trial *trial, int session, Text *text)
{
	const Part *part = &trial->record.parts[session];
	bool in_effect = part_is_in_effect(part);

	if (part->deed_count == 0)
	{
		return;
	}
	text_append(text, "%s", text_get(&part->errors));
	if (part->errors.length > 0 && (in_effect || part->lost || part->open))
	{
		text_append(text, ", ");
	}
	if (part->lost)
	{
		text_append(text, "lost%s", part->doubtful >= 0 ? " with a statement under way" : "");
		text_append(text, "%s", in_effect ? " after a commit" : "");
		return;
	}
	if (part->open)
	{
		text_append(text, "left open");
	}
	else if (in_effect)
	{
		text_append(text, "committed");
	}
	else if (part->errors.length == 0)
	{
		text_append(text, "rolled back");
	}
	if (part->attempt > 0)
	{
		text_append(text, in_effect ? " in attempt %d" : ", given up after %d attempts", part->attempt + 1);
	}
}
