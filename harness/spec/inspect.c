/*
 * Judges a file: lanes, each a thread with a database and connections of its own, that take what is to be run until nothing
 * is left, and one report for all of them.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../actor.h"
#include "explore.h"
#include "file.h"
#include "report.h"

#define HOURS_MAX_MS (24 * 3600 * (int64_t) 1000)
#define CONNECTIONS_MAX 80 /* of all lanes: a server's default is 100 */
#define PROGRESS_NS (200 * (int64_t) 1000000)

typedef struct Lane Lane;

typedef struct
{
	const SpecFile *file;
	const Spec *spec;
	const SpecJudging *judging;
	SpecReport *report;
	Serials *serials;
	Explore *explore; /* NULL: nothing is explored */
	int next;         /* permutation */
	int last;         /* one past it */
	bool ordered;     /* the one order was run */
	bool stopped;
	bool tried; /* the steps that say that they only read */
	int64_t told_ns;
	Session *maker;   /* of databases; NULL: in place */
	char **databases; /* of the lanes */
	Lane *lanes;
	int lane_count;
	pthread_mutex_t mutex;
	pthread_cond_t changed; /* tried */
} Inspection;

/* A thread's own. */
struct Lane
{
	Inspection *inspection;
	Trial *trial;
	Trial *runner; /* of serial orders, beside the trial */
	Judge *judge;
	Testimony *testimony;
	Text state; /* that the interleaving ended in */
	SerialVerdict serial;
	Walk *walk;
	TrialConfig config;
	char *conninfo;
};


/* --- the end of it --- */

static void
stop(Inspection *inspection, Text *reason, const char *words)
{
	pthread_mutex_lock(&inspection->mutex);
	report_say(reason, words);
	inspection->stopped = true;
	pthread_mutex_unlock(&inspection->mutex);
	if (inspection->explore != NULL)
	{
		explore_stop(inspection->explore);
	}
}

static void
stop_broken(Inspection *inspection)
{
	char last[600];

	notice_last_error(last, sizeof(last));
	stop(inspection, &inspection->report->broken, last);
}


/* --- one interleaving --- */

static bool
ask_always(void *context, Trial *trial)
{
	return judge_ask_always(context, trial);
}

/* Without a reason of its own it is what was reported last: the judge's trouble. */
static void
stop_serial(Inspection *inspection, const Text *why)
{
	if (why->length > 0)
	{
		stop(inspection, &inspection->report->broken, text_get(why));
	}
	else
	{
		stop_broken(inspection);
	}
}

/* After the interleaving has ended; *known: there is a verdict. false: stopped. */
static bool
judge_serial(Lane *lane, bool *known)
{
	Inspection *inspection = lane->inspection;
	Text why = {0};
	TrialEnd end = serials_judge(inspection->serials, lane->testimony, lane->runner, lane->judge, &lane->serial, &why);

	*known = end == TRIAL_DONE;
	if (end == TRIAL_REFUSED)
	{
		stop(inspection, &inspection->report->unknown, text_get(&why));
	}
	else if (end != TRIAL_DONE)
	{
		stop_serial(inspection, &why);
	}
	text_free(&why);
	return end == TRIAL_DONE || end == TRIAL_REFUSED;
}

static void
tell_progress(Inspection *inspection)
{
	const SpecJudging *judging = inspection->judging;
	int64_t now_ns = time_now_ns();

	if (judging->progress != NULL && now_ns - inspection->told_ns > PROGRESS_NS)
	{
		inspection->told_ns = now_ns;
		judging->progress(judging->context, inspection->report->run, inspection->report->planned);
	}
}

static void
add_judged(Lane *lane, const SpecPermutation *permutation, bool serial)
{
	Inspection *inspection = lane->inspection;
	Text missed = {0};
	Judged judged = {.trial = lane->trial,
					 .judge = lane->judge,
					 .serial = serial ? &lane->serial : NULL,
					 .permutation = permutation};

	if (permutation != NULL)
	{
		judge_expects(permutation, lane->trial, &missed);
	}
	judged.missed = text_get(&missed);
	pthread_mutex_lock(&inspection->mutex);
	report_add(inspection->report, inspection->spec, &judged);
	tell_progress(inspection);
	pthread_mutex_unlock(&inspection->mutex);
	text_free(&missed);
}

/* What a failed teardown leaves would be there in the next interleaving, beside what its setup makes. */
static bool
end_trial(Lane *lane)
{
	bool torn_down = trial_end(lane->trial);

	if (!torn_down)
	{
		stop(lane->inspection, &lane->inspection->report->broken, text_get(&trial_record(lane->trial)->trouble));
	}
	return torn_down;
}

/* Judge what has just been run. Nothing is judged that a cancelled step has spoilt. */
static void
judge_done(Lane *lane, const SpecPermutation *permutation)
{
	Inspection *inspection = lane->inspection;
	bool spoilt = trial_record(lane->trial)->unknown.length > 0;
	bool serial = inspection->spec->observe != NULL && !spoilt;
	bool asked = spoilt || judge_ask_all(lane->judge, &lane->state);

	if (asked && serial)
	{
		testimony_take(lane->testimony, lane->trial, text_get(&lane->state));
	}
	if (!asked)
	{
		stop_broken(inspection);
	}
	if (!end_trial(lane) || !asked || (serial && !judge_serial(lane, &serial)))
	{
		return;
	}
	if (spoilt && inspection->explore != NULL)
	{
		explore_stop(inspection->explore);
	}
	add_judged(lane, permutation, serial);
}

static void
conclude(Lane *lane, TrialEnd end, const SpecPermutation *permutation)
{
	Inspection *inspection = lane->inspection;

	switch (end)
	{
		case TRIAL_DONE:
			judge_done(lane, permutation);
			break;
		case TRIAL_GIVEN_UP:
			(void) end_trial(lane);
			break;
		case TRIAL_REFUSED:
			stop(inspection, &inspection->report->refused, text_get(&trial_record(lane->trial)->trouble));
			(void) trial_end(lane->trial);
			break;
		case TRIAL_STOPPED:
			stop(inspection, &inspection->report->broken, text_get(&trial_record(lane->trial)->trouble));
			(void) trial_end(lane->trial);
			break;
	}
}


/* --- a lane --- */

/* The next written permutation. NULL: there is none left. */
static const SpecPermutation *
take_permutation(Inspection *inspection)
{
	const SpecPermutation *permutation = NULL;

	pthread_mutex_lock(&inspection->mutex);
	if (!inspection->stopped && inspection->next < inspection->last)
	{
		permutation = inspection->spec->permutations[inspection->next++];
	}
	pthread_mutex_unlock(&inspection->mutex);
	return permutation;
}

static void
run_written(Lane *lane)
{
	TrialPilot pilot = {.after = ask_always, .after_context = lane->judge};
	const SpecPermutation *permutation;

	while (!interrupt_seen() && (permutation = take_permutation(lane->inspection)) != NULL)
	{
		judge_forget(lane->judge);
		conclude(lane, trial_follow(lane->trial, permutation, &pilot), permutation);
	}
}

static void
run_explored(Lane *lane)
{
	Explore *explore = lane->inspection->explore;

	while (!interrupt_seen() && explore_take(explore, lane->walk))
	{
		judge_forget(lane->judge);
		conclude(lane, explore_run(explore, lane->walk, lane->trial, ask_always, lane->judge), NULL);
		explore_give(explore, lane->walk);
	}
	if (interrupt_seen())
	{
		explore_stop(explore);
	}
}

static void
run_order(Lane *lane)
{
	Inspection *inspection = lane->inspection;
	Text why = {0};
	TrialEnd end;
	bool taken;

	pthread_mutex_lock(&inspection->mutex);
	taken = !inspection->ordered;
	inspection->ordered = true;
	pthread_mutex_unlock(&inspection->mutex);
	if (!taken)
	{
		return;
	}
	judge_forget(lane->judge);
	end = explore_replay(lane->trial, inspection->judging->order, ask_always, lane->judge, &why);
	conclude(lane, end, NULL);
	if (why.length > 0)
	{
		stop(inspection, &inspection->report->refused, text_get(&why));
	}
	text_free(&why);
}

static bool
open_lane(Lane *lane, Inspection *inspection, int number)
{
	const SpecJudging *judging = inspection->judging;

	*lane = (Lane){.inspection = inspection};
	lane->conninfo = judging->in_place ? string_copy(judging->server)
									   : session_conninfo_for(judging->server, inspection->databases[number]);
	if (lane->conninfo == NULL)
	{
		return false;
	}
	lane->config = (TrialConfig){.spec = inspection->spec,
								 .path = inspection->file->path,
								 .conninfo = lane->conninfo,
								 .cluster = judging->cluster,
								 .step_limit_ms = judging->step_limit_ms};
	lane->trial = trial_open(&lane->config);
	lane->runner = lane->trial != NULL ? trial_open_beside(lane->trial) : NULL;
	lane->judge = lane->trial == NULL
					  ? NULL
					  : judge_open(inspection->spec, inspection->file->path, lane->conninfo, judging->step_limit_ms);
	lane->testimony = testimony_new(inspection->spec);
	lane->walk = walk_new();
	return lane->judge != NULL;
}

static void
close_lane(Lane *lane)
{
	trial_close(lane->runner);
	trial_close(lane->trial);
	judge_close(lane->judge);
	testimony_free(lane->testimony);
	walk_free(lane->walk);
	text_free(&lane->state);
	text_free(&lane->serial.order);
	text_free(&lane->serial.difference);
	free(lane->conninfo);
}

static bool
any_reads(const Spec *spec)
{
	for (int i = 0; i < spec->step_count; i++)
	{
		if (spec->steps[i]->reads)
		{
			return true;
		}
	}
	return false;
}

/* In the first lane; the others are opened meanwhile, but nothing runs before. false: nothing is to run. */
static bool
try_reads(Lane *lane, int number, bool open)
{
	Inspection *inspection = lane->inspection;
	bool going;

	if (number == 0 && open && any_reads(inspection->spec))
	{
		TrialEnd end = trial_try_reads(lane->trial);

		if (end != TRIAL_DONE)
		{
			conclude(lane, end, NULL);
		}
		else
		{
			(void) end_trial(lane);
		}
	}
	pthread_mutex_lock(&inspection->mutex);
	inspection->tried = inspection->tried || number == 0;
	pthread_cond_broadcast(&inspection->changed);
	while (!inspection->tried)
	{
		pthread_cond_wait(&inspection->changed, &inspection->mutex);
	}
	going = open && !inspection->stopped;
	pthread_mutex_unlock(&inspection->mutex);
	return going;
}

/* What most interleavings will want; they begin meanwhile in the other lanes. */
static void
prepare_serials(Lane *lane)
{
	Inspection *inspection = lane->inspection;
	Text why = {0};

	if (inspection->spec->observe != NULL && inspection->report->planned > 1 &&
		!serials_prepare(inspection->serials, lane->runner, lane->judge, &why))
	{
		stop_serial(inspection, &why);
	}
	text_free(&why);
}

static bool
run_lane(int number, void *context)
{
	Inspection *inspection = context;
	Lane *lane = &inspection->lanes[number];
	bool open = open_lane(lane, inspection, number);

	if (!open)
	{
		stop_broken(inspection);
	}
	if (!try_reads(lane, number, open))
	{
		return true;
	}
	if (number == 0)
	{
		prepare_serials(lane);
	}
	if (inspection->judging->part == SPEC_ORDER)
	{
		run_order(lane);
	}
	run_written(lane);
	if (inspection->explore != NULL)
	{
		run_explored(lane);
	}
	return true;
}


/* --- databases --- */

static char *
name_database(void)
{
	static atomic_int made;

	return string_format("counterproof_spec_%d_%d", (int) getpid(), atomic_fetch_add(&made, 1));
}

/*
 * The first connection to a new database puts together what the server keeps of its catalogs, and leaves it in a file to the
 * next. A lane's connections, which come all at once, would each do that work for themselves.
 */
static bool
warm_database(const Inspection *inspection, const char *name)
{
	char *conninfo = session_conninfo_for(inspection->judging->server, name);
	Session *session = conninfo != NULL ? session_open(conninfo, "counterproof spec") : NULL;
	bool warm = session != NULL;

	session_close(session);
	free(conninfo);
	return warm;
}

/* Those that could be made are counted, to be dropped. */
static bool
make_databases(Inspection *inspection)
{
	const char *prepared = inspection->judging->prepared;
	int wanted = inspection->lane_count;
	bool made;

	inspection->maker = session_open(inspection->judging->server, "counterproof spec");
	made = inspection->maker != NULL;

	for (inspection->lane_count = 0; made && inspection->lane_count < wanted;)
	{
		char *name = name_database();
		char *sql = string_format("CREATE DATABASE %s%s%s", name, prepared != NULL ? " TEMPLATE " : "",
								  prepared != NULL ? prepared : "");

		made = session_execute(inspection->maker, sql);
		free(sql);
		if (made)
		{
			inspection->databases[inspection->lane_count++] = name;
			made = warm_database(inspection, name);
		}
		else
		{
			free(name);
		}
	}
	return made;
}

static bool
drop_databases(Inspection *inspection)
{
	bool dropped;

	/* a restart has taken the session along */
	if (spec_file_restarts(inspection->file))
	{
		session_close(inspection->maker);
		inspection->maker = session_open(inspection->judging->server, "counterproof spec");
	}
	dropped = inspection->maker != NULL;
	for (int i = 0; i < inspection->lane_count; i++)
	{
		char *sql = string_format("DROP DATABASE %s WITH (FORCE)", inspection->databases[i]);

		dropped = dropped && session_execute(inspection->maker, sql);
		free(sql);
		free(inspection->databases[i]);
	}
	session_close(inspection->maker);
	return dropped;
}

/*
 * What a setup makes and no teardown removes is in the way of the next interleaving in the same database. Where there was none,
 * for there were as many lanes, the setup is run once more: whether a file is right must not depend on the jobs.
 */
static void
prove_repeatable(Inspection *inspection)
{
	Lane *lane = &inspection->lanes[0];

	if (inspection->stopped || inspection->report->planned < 2 ||
		inspection->report->run > (uint64_t) inspection->lane_count)
	{
		return;
	}
	if (trial_serial(lane->trial, NULL, 0) == TRIAL_DONE)
	{
		(void) end_trial(lane);
	}
	else
	{
		conclude(lane, TRIAL_STOPPED, NULL);
	}
}

static bool
run_lanes(Inspection *inspection)
{
	int64_t begin_ns = time_now_ns();
	ActorGroup *group;
	bool done;

	inspection->lanes = memory_get(sizeof(Lane) * (size_t) inspection->lane_count);
	group = actor_start("spec", inspection->lane_count, run_lane, inspection);
	if (group != NULL)
	{
		actor_open_gate(group);
	}
	done = group != NULL && actor_join(group, deadline_in_ms(HOURS_MAX_MS));
	inspection->report->duration_ns = time_now_ns() - begin_ns;
	if (done && !interrupt_seen())
	{
		prove_repeatable(inspection);
	}
	for (int i = 0; i < inspection->lane_count; i++)
	{
		close_lane(&inspection->lanes[i]);
	}
	free(inspection->lanes);
	return done;
}


/* --- a file --- */

uint64_t
spec_file_planned(const SpecFile *file, SpecPart part, uint64_t seed, bool *exact)
{
	uint64_t planned = part == SPEC_ALL ? (uint64_t) spec_file_permutations(file) : part == SPEC_EXPLORED ? 0 : 1;

	*exact = true;
	if (part == SPEC_EXPLORED || (part == SPEC_ALL && spec_file_explores(file)))
	{
		Explore *explore = explore_new(file->spec, seed);
		ExploreCount count = explore_count(explore);

		*exact = !count.cut && count.planned != UINT64_MAX;
		planned = count.planned > UINT64_MAX - planned ? UINT64_MAX : planned + count.planned;
		explore_free(explore);
	}
	return planned;
}

/* A lane has its sessions, a control connection and a judge. */
static int
count_lanes(const Inspection *inspection)
{
	int most = CONNECTIONS_MAX / (inspection->spec->session_count + 2);
	bool alone =
		inspection->judging->in_place || spec_file_restarts(inspection->file) || spec_file_shares(inspection->file);
	int wanted = alone ? 1 : inspection->judging->jobs;

	if ((uint64_t) wanted > inspection->report->planned)
	{
		wanted = (int) inspection->report->planned;
	}
	return wanted < 1 || most < 1 ? 1 : wanted < most ? wanted : most;
}

static void
plan(Inspection *inspection)
{
	const SpecJudging *judging = inspection->judging;
	SpecReport *report = inspection->report;

	inspection->next = judging->part == SPEC_WRITTEN ? judging->number : 0;
	inspection->last = judging->part == SPEC_WRITTEN ? judging->number + 1
					   : judging->part == SPEC_ALL   ? inspection->spec->permutation_count
													 : 0;
	report->planned = spec_file_planned(inspection->file, judging->part, judging->seed, &report->counted);
	if (judging->part == SPEC_EXPLORED || (judging->part == SPEC_ALL && spec_file_explores(inspection->file)))
	{
		inspection->explore = explore_new(inspection->spec, judging->seed);
	}
	inspection->lane_count = count_lanes(inspection);
	inspection->tried = !any_reads(inspection->spec);
}

static void
end_report(Inspection *inspection)
{
	SpecReport *report = inspection->report;

	if (inspection->explore != NULL)
	{
		ExploreCount count = explore_count(inspection->explore);

		report->skipped = count.skipped;
		if (count.diverged > 0)
		{
			char *words =
				string_format("%d interleavings went another way when they were run again, and what might have "
							  "followed was not run",
							  (int) count.diverged);

			report_say(&report->unknown, words);
			free(words);
		}
	}
	for (int i = 0; i < report->fault_count && report->run > 0; i++)
	{
		if (report->fired[i] == 0 && (inspection->judging->part == SPEC_ALL))
		{
			char *words = string_format("fault %s never met anything", report->fault_names[i]);

			report_say(&report->unknown, words);
			free(words);
		}
	}
	report_refuse_wrong(report, inspection->spec, inspection->file->path);
	if (report->check_count == 0)
	{
		report_say(&report->unknown, "nothing to judge");
	}
}

SpecReport *
spec_judge(const SpecFile *file, const SpecJudging *judging)
{
	Inspection inspection = {.file = file,
							 .spec = file->spec,
							 .judging = judging,
							 .report = report_new(file->spec, judging->part, judging->number),
							 .serials = serials_new(file->spec),
							 .databases = memory_get(sizeof(char *) * (size_t) judging->jobs),
							 .mutex = PTHREAD_MUTEX_INITIALIZER,
							 .changed = PTHREAD_COND_INITIALIZER};

	plan(&inspection);
	if (!judging->in_place && !make_databases(&inspection))
	{
		stop_broken(&inspection);
	}
	if (!inspection.stopped && !run_lanes(&inspection))
	{
		stop_broken(&inspection);
	}
	if (!judging->in_place && !drop_databases(&inspection))
	{
		stop_broken(&inspection);
	}
	end_report(&inspection);
	explore_free(inspection.explore);
	serials_free(inspection.serials);
	pthread_mutex_destroy(&inspection.mutex);
	pthread_cond_destroy(&inspection.changed);
	free(inspection.databases);
	return inspection.report;
}
