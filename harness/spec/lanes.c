/*
 * Many files in the compatible mode, side by side: a lane is a thread with a database of its own.
 */
#include "../spec.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../actor.h"
#include "../session.h"
#include "permute.h"
#include "tree.h"

#define HOURS_MAX_MS (24 * 3600 * (int64_t) 1000)
#define SETUP_WEIGHT 4 /* of a permutation's setups and teardown, in steps */

typedef struct
{
	const char *path;
	Text text;
	double weight; /* about how many statements it runs */
	bool at_home;  /* names the first database */
	bool taken;
	char *output; /* NULL: not done */
	size_t output_length;
	ExitCode code;
} Job;

typedef struct
{
	Job *jobs; /* in the order of the files */
	int job_count;
	int printed;      /* so many are */
	char **conninfos; /* of the lanes */
	int lane_count;
	const char *name; /* of the first database */
	pthread_mutex_t mutex;
	FILE *out;
} Plan;


/* --- which file next --- */

static double
weigh(const Text *text)
{
	SpecError error;
	Spec *spec = spec_read(text_get(text), text->length, SPEC_COMPATIBLE, &error);
	double weight = 0;

	if (spec != NULL && spec->permutation_count == 0)
	{
		weight = (double) permute_count(spec) * (spec->step_count + SETUP_WEIGHT);
	}
	for (int i = 0; spec != NULL && i < spec->permutation_count; i++)
	{
		weight += spec->permutations[i]->turn_count + SETUP_WEIGHT;
	}
	spec_error_free(&error);
	spec_free(spec);
	return weight;
}

/* The longest that is left for this lane; what only the first can run comes first there. */
static Job *
take_job(Plan *plan, bool at_home)
{
	Job *best = NULL;

	pthread_mutex_lock(&plan->mutex);
	for (int i = 0; i < plan->job_count; i++)
	{
		Job *job = &plan->jobs[i];

		if (!job->taken && (at_home || !job->at_home) &&
			(best == NULL || job->at_home > best->at_home ||
			 (job->at_home == best->at_home && job->weight > best->weight)))
		{
			best = job;
		}
	}
	if (best != NULL)
	{
		best->taken = true;
	}
	pthread_mutex_unlock(&plan->mutex);
	return best;
}

static void
print_finished(Plan *plan)
{
	for (; plan->printed < plan->job_count && plan->jobs[plan->printed].output != NULL; plan->printed++)
	{
		const Job *job = &plan->jobs[plan->printed];

		fprintf(plan->out, "== %s (exit %d)\n", job->path, (int) job->code);
		(void) fwrite(job->output, 1, job->output_length, plan->out);
	}
	(void) fflush(plan->out);
}

static bool
run_lane(int lane, void *context)
{
	Plan *plan = context;
	Job *job;

	while ((job = take_job(plan, lane == 0)) != NULL)
	{
		char *output;
		FILE *stream = open_memstream(&output, &job->output_length);

		if (stream == NULL)
		{
			report_error("cannot keep what %s prints: %m", job->path);
			return false;
		}
		job->code = spec_run_compatible(text_get(&job->text), job->text.length, plan->conninfos[lane], stream, stream);
		(void) fclose(stream);
		pthread_mutex_lock(&plan->mutex);
		job->output = output;
		print_finished(plan);
		pthread_mutex_unlock(&plan->mutex);
	}
	return true;
}


/* --- files and databases --- */

static bool
read_jobs(Plan *plan, const char *const *files)
{
	for (int i = 0; i < plan->job_count; i++)
	{
		Job *job = &plan->jobs[i];

		job->path = files[i];
		if (!file_read(files[i], &job->text))
		{
			return false;
		}
		job->weight = weigh(&job->text);
		job->at_home = strstr(text_get(&job->text), plan->name) != NULL;
	}
	return true;
}

static bool
change_database(Session *session, const char *change, const char *name)
{
	SqlResult *quoted = NULL;
	char *sql;
	bool done;

	if (!session_query(session, &quoted, "SELECT quote_ident($1)", ARGS(arg_text(name))))
	{
		return false;
	}
	sql = string_format("%s %s", change, sql_text(quoted, 0, 0));
	done = session_execute(session, sql);
	free(sql);
	sql_free(quoted);
	return done;
}

/* Lanes beyond the first. What could be made is counted, to be dropped. */
static bool
make_databases(Plan *plan, Session *session, const char *conninfo, int jobs)
{
	plan->conninfos[0] = string_copy(conninfo);
	for (plan->lane_count = 1; plan->lane_count < jobs; plan->lane_count++)
	{
		char *name = string_format("%s_%d", plan->name, plan->lane_count + 1);
		bool made = change_database(session, "CREATE DATABASE", name);

		plan->conninfos[plan->lane_count] = made ? session_conninfo_for(conninfo, name) : NULL;
		free(name);
		if (plan->conninfos[plan->lane_count] == NULL)
		{
			plan->lane_count += made ? 1 : 0;
			return false;
		}
	}
	return true;
}

static bool
drop_databases(Plan *plan, Session *session)
{
	bool dropped = true;

	for (int i = 0; i < plan->lane_count; i++)
	{
		char *name = string_format("%s_%d", plan->name, i + 1);

		dropped = (i == 0 || change_database(session, "DROP DATABASE", name)) && dropped;
		free(plan->conninfos[i]);
		free(name);
	}
	return dropped;
}

static bool
run_lanes(Plan *plan)
{
	ActorGroup *group = actor_start("isolationtester", plan->lane_count, run_lane, plan);

	if (group == NULL)
	{
		return false;
	}
	actor_open_gate(group);
	return actor_join(group, deadline_in_ms(HOURS_MAX_MS));
}

static ExitCode
conclude(Plan *plan, bool done)
{
	ExitCode code = done ? EXIT_CODE_PASS : EXIT_CODE_BROKEN;

	for (int i = 0; i < plan->job_count; i++)
	{
		Job *job = &plan->jobs[i];

		code = done && job->code != EXIT_CODE_PASS ? EXIT_CODE_FAIL : code;
		text_free(&job->text);
		free(job->output);
	}
	free(plan->jobs);
	free(plan->conninfos);
	pthread_mutex_destroy(&plan->mutex);
	return code;
}

ExitCode
spec_run_compatible_files(const char *const *files, int count, const char *conninfo, int jobs, FILE *out)
{
	Plan plan = {.jobs = memory_get(sizeof(Job) * ((size_t) count + 1)),
				 .job_count = count,
				 .conninfos = memory_get(sizeof(char *) * (size_t) jobs),
				 .mutex = PTHREAD_MUTEX_INITIALIZER,
				 .out = out};
	char *why = NULL;
	Session *session = session_raw_open(conninfo, &why);
	SqlResult *name = NULL;
	bool done = false;

	if (session == NULL)
	{
		report_error("cannot connect: %s", why);
		free(why);
	}
	else if (session_query(session, &name, "SELECT current_database()", NO_ARGS))
	{
		plan.name = sql_text(name, 0, 0);
		done = read_jobs(&plan, files) && make_databases(&plan, session, conninfo, jobs) && run_lanes(&plan);
		done = drop_databases(&plan, session) && done;
	}
	sql_free(name);
	session_close(session);
	return conclude(&plan, done);
}
