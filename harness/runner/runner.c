#include "runner.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../scenario/message.h"
#include "environment.h"
#include "host.h"
#include "progress.h"
#include "reaper.h"

#define SERVER_START_MS 30000

/* --until-fail is a bounded loop as every other: memory for what the cases say grows with it. */
#define UNTIL_FAIL_REPEATS_MAX 1000

/* How long hosts have to end their cases after an interrupt. */
#define INTERRUPT_MS 8000

/* One run of one case. */
typedef struct
{
	const Scenario *scenario;
	int index; /* in the evidence */
	int repetition;
	pid_t host;  /* 0: not running */
	int fd;      /* messages */
	Text unread; /* bytes of a line not complete yet */
	int64_t begin_ns;
	int passed;
	int failed;
	bool done;   /* it said that it ran to its end */
	Text broken; /* reasons, "" when not */
	Text unknown;
	Text skipped;
	char last_step[200];
	char database[64];
} CaseRun;

typedef struct
{
	const RunnerConfig *config;
	ServerKit kit;
	Cluster *cluster; /* the run's own server, NULL with --server or when no case needs one */
	char *server;     /* conninfo of the maintenance database, NULL without a server */
	Evidence *evidence;
	EvidenceCase *names;
	CaseRun *runs;
	int run_count;
	CaseRun **order; /* in which they start */
	int next;        /* the next run to start */
	int running;
	bool stop; /* start nothing more */
	int not_passed;
} Runner;

static void
add_reason(Text *reasons, const char *reason)
{
	if (strstr(text_get(reasons), reason) == NULL)
	{
		text_append(reasons, "%s%s", reasons->length > 0 ? "; " : "", reason);
	}
}


/* --- the server --- */

static bool
any_needs(const Runner *runner, unsigned needs)
{
	for (int i = 0; i < runner->run_count; i++)
	{
		if ((runner->runs[i].scenario->needs & needs) != 0)
		{
			return true;
		}
	}
	return false;
}

static bool
start_server(Runner *runner)
{
	runner->cluster = cluster_create(&runner->kit, "the run's server");
	if (runner->cluster == NULL || !cluster_start(runner->cluster, deadline_in_ms(SERVER_START_MS)))
	{
		return false;
	}
	free(runner->server);
	runner->server = string_copy(cluster_conninfo(runner->cluster, "postgres"));
	return true;
}

static bool
open_server(Runner *runner)
{
	const RunnerConfig *config = runner->config;

	if (!any_needs(runner, NEEDS_DATABASE | NEEDS_CLUSTER))
	{
		return true;
	}
	if (config->server != NULL)
	{
		runner->server = string_copy(config->server);
		return true;
	}
	if (config->pg_bin == NULL)
	{
		report_error(
			"no PostgreSQL %d binaries: start through ./run.sh, which finds or installs them, or give --pg-bin",
			config->pg_major);
		return false;
	}
	if (!server_kit_find(&runner->kit, config->pg_bin, config->pg_major))
	{
		return false;
	}
	runner->kit.settings = config->server_settings;
	return start_server(runner);
}

/* A case found the run's server dead or dying: that is never the case's success. Its log is the case's. */
static void
verify_server(Runner *runner, CaseRun *run)
{
	const char *folder;

	if (runner->cluster == NULL || (run->scenario->needs & NEEDS_DATABASE) == 0 ||
		cluster_verify_running(runner->cluster))
	{
		return;
	}
	add_reason(&run->broken, "the run's server had died");
	folder = evidence_case_folder(runner->evidence, run->index);
	if (folder != NULL)
	{
		char *path = string_format("%s/server.log", folder);

		cluster_save_log(runner->cluster, path);
		free(path);
	}
}

static bool
server_is_dead(const Runner *runner)
{
	return runner->cluster != NULL && cluster_state(runner->cluster) != CLUSTER_RUNNING;
}

/* The next cases get a new one, once nobody uses the dead one any more. */
static bool
replace_server(Runner *runner)
{
	(void) cluster_free(runner->cluster);
	runner->cluster = NULL;
	return start_server(runner);
}


/* --- one case --- */

static void
name_database(CaseRun *run)
{
	int length =
		snprintf(run->database, sizeof(run->database), "cp%d_%s_%d", (int) getpid(), run->scenario->id, run->index);

	for (int i = 0; i < length && run->database[i] != '\0'; i++)
	{
		char c = (char) tolower((unsigned char) run->database[i]);

		run->database[i] = (isalnum((unsigned char) c)) ? c : '_';
	}
}

static int
deadline_of(const RunnerConfig *config, const Scenario *scenario)
{
	return config->timeout_s > 0 ? config->timeout_s * 1000 : scenario->deadline_ms;
}

static const char *
skip_reason(const Runner *runner, const Scenario *scenario)
{
	if (runner->config->server != NULL && (scenario->needs & NEEDS_CLUSTER) != 0)
	{
		return "it breaks its server, and --server names one that is not the lab's to break";
	}
	return NULL;
}

static void
end_run(Runner *runner, CaseRun *run, Result result, const char *reason)
{
	int64_t duration_ms = run->begin_ns == 0 ? 0 : (time_now_ns() - run->begin_ns) / 1000000;

	evidence_case_end(runner->evidence, run->index, result, reason, duration_ms);
	progress_case(runner->config, &runner->names[run->index], result, run->passed, run->failed, duration_ms, reason);
	if (result != RESULT_PASS && result != RESULT_SKIP)
	{
		runner->not_passed++;
		if (runner->config->fail_fast || runner->config->until_fail)
		{
			runner->stop = true;
		}
	}
}

/* A server that is not ours is left as it was; on ours, a run of many repetitions must not fill the disk. */
static bool
drops_database(const RunnerConfig *config, const Scenario *scenario)
{
	bool many = config->repeat > 1 || config->until_fail;

	return (scenario->needs & NEEDS_DATABASE) != 0 && !config->keep && (config->server != NULL || many);
}

static bool
start_run(Runner *runner, CaseRun *run)
{
	const RunnerConfig *config = runner->config;
	SceneSetup setup = {.seed = config->seed,
						.kit = config->server == NULL ? &runner->kit : NULL,
						.server = runner->server,
						.database = run->database,
						.drop_database = drops_database(config, run->scenario),
						.keep = config->keep,
						.deadline_ms = deadline_of(config, run->scenario),
						.programs = config->programs,
						.sql = config->sql,
						.variant = config->variant,
						.design = config->design,
						.trace = !config->no_trace};
	int ends[2];

	evidence_case_begin(runner->evidence, run->index);
	run->begin_ns = time_now_ns();
	if (skip_reason(runner, run->scenario) != NULL)
	{
		end_run(runner, run, RESULT_SKIP, skip_reason(runner, run->scenario));
		return true;
	}
	setup.folder = evidence_case_folder(runner->evidence, run->index);
	if (setup.folder == NULL || pipe2(ends, O_CLOEXEC) != 0)
	{
		report_error("case %s: no folder or pipe: %s", run->scenario->id, strerror(errno));
		return false;
	}
	name_database(run);
	setup.report_fd = ends[1];
	run->fd = ends[0];
	run->host = host_start(run->scenario, &setup);
	close(ends[1]);
	if (run->host < 0)
	{
		close(run->fd);
		run->host = 0;
		return false;
	}
	runner->running++;
	return true;
}

static void
take_line(Runner *runner, CaseRun *run, const Message *message)
{
	EvidenceLine line = {message->line, message->text ? message->text : "", message->expected, message->actual,
						 (int) message->first};

	run->passed += message->line == LINE_PASS;
	run->failed += message->line == LINE_FAIL;
	if (message->line == LINE_STEP)
	{
		snprintf(run->last_step, sizeof(run->last_step), "%s", line.text);
	}
	evidence_case_line(runner->evidence, run->index, &line);
	progress_line(runner->config, &runner->names[run->index], &line);
}

static void
take_message(Runner *runner, CaseRun *run, const char *text)
{
	Message message;

	if (text[0] == '\0')
	{
		return;
	}
	if (!message_decode(text, &message))
	{
		add_reason(&run->broken, "a garbled message from its process");
		return;
	}
	switch (message.kind)
	{
		case MESSAGE_LINE:
			take_line(runner, run, &message);
			break;
		case MESSAGE_UNKNOWN:
			add_reason(&run->unknown, message.text);
			break;
		case MESSAGE_BROKEN:
			add_reason(&run->broken, message.text);
			break;
		case MESSAGE_SKIP:
			add_reason(&run->skipped, message.text);
			run->done = true;
			break;
		case MESSAGE_DONE:
			run->done = true;
			evidence_case_retries(runner->evidence, run->index, message.first, message.second);
			break;
		case MESSAGE_SERIES:
			evidence_case_series(
				runner->evidence, run->index,
				&(EvidenceSeries){message.text, message.expected, message.values, message.value_count});
			break;
		case MESSAGE_KEPT:
			progress_kept(message.text);
			progress_ending(message.actual);
			break;
		case MESSAGE_UNSET:
			break;
	}
	message_free(&message);
}

/* Cut what arrived into lines. */
static void
take_bytes(Runner *runner, CaseRun *run, const char *bytes, size_t length)
{
	const char *end;

	while ((end = memchr(bytes, '\n', length)) != NULL)
	{
		text_append_bytes(&run->unread, bytes, (size_t) (end - bytes));
		take_message(runner, run, text_get(&run->unread));
		text_clear(&run->unread);
		length -= (size_t) (end - bytes) + 1;
		bytes = end + 1;
	}
	text_append_bytes(&run->unread, bytes, length);
}

/* A lab that failed outranks a verdict that is missing, a failed check outranks both. */
static Result
judge_run(CaseRun *run, const char **reason)
{
	*reason = run->broken.length > 0 ? text_get(&run->broken) : NULL;
	if (run->failed > 0)
	{
		return RESULT_FAIL;
	}
	if (run->broken.length > 0)
	{
		return RESULT_BROKEN;
	}
	if (run->skipped.length > 0)
	{
		*reason = text_get(&run->skipped);
		return RESULT_SKIP;
	}
	if (run->passed == 0)
	{
		add_reason(&run->unknown, "nothing was checked");
	}
	if (run->unknown.length > 0)
	{
		*reason = text_get(&run->unknown);
		return RESULT_UNKNOWN;
	}
	return RESULT_PASS;
}

static void
finish_run(Runner *runner, CaseRun *run)
{
	const char *reason;
	Result result;
	int status = 0;

	while (waitpid(run->host, &status, 0) < 0 && errno == EINTR)
	{
	}
	if (!WIFEXITED(status))
	{
		add_reason(&run->broken, "its host was killed");
		(void) reaper_sweep(run->host, NULL);
	}
	close(run->fd);
	run->host = 0;
	runner->running--;
	if (!run->done && run->broken.length == 0)
	{
		add_reason(&run->broken, "its process ended before the case did");
	}
	verify_server(runner, run);
	if (run->broken.length > 0 && run->last_step[0] != '\0')
	{
		text_append(&run->broken, " (in step: %s)", run->last_step);
	}
	result = judge_run(run, &reason);
	end_run(runner, run, result, reason);
	text_free(&run->broken);
	text_free(&run->unknown);
	text_free(&run->skipped);
	text_free(&run->unread);
}


/* --- all cases --- */

static bool
may_start(const Runner *runner)
{
	return !runner->stop && !interrupt_seen() && runner->next < runner->run_count &&
		   runner->running < runner->config->jobs && (runner->running == 0 || !server_is_dead(runner));
}

static bool
start_more(Runner *runner)
{
	while (may_start(runner))
	{
		if (server_is_dead(runner) && !replace_server(runner))
		{
			runner->stop = true; /* what has ended is still told */
			break;
		}
		if (!start_run(runner, runner->order[runner->next++]))
		{
			return false;
		}
	}
	return true;
}

/* Wait for messages of the running cases, for ever when timeout_ms < 0; an end of file is the end of a host. */
static void
serve(Runner *runner, const sigset_t *while_waiting, int timeout_ms)
{
	struct pollfd fds[64];
	CaseRun *of[64];
	nfds_t count = 0;
	struct timespec timeout = {timeout_ms / 1000, timeout_ms % 1000 * 1000000L};

	for (int i = 0; i < runner->next && count < LENGTH_OF(fds); i++)
	{
		if (runner->order[i]->host > 0)
		{
			fds[count] = (struct pollfd){.fd = runner->order[i]->fd, .events = POLLIN};
			of[count++] = runner->order[i];
		}
	}
	if (ppoll(fds, count, timeout_ms < 0 ? NULL : &timeout, while_waiting) <= 0)
	{
		return; /* a signal, or nothing in time: the caller looks */
	}
	for (nfds_t i = 0; i < count; i++)
	{
		char bytes[16384];
		ssize_t length;

		if (fds[i].revents == 0)
		{
			continue;
		}
		length = read(fds[i].fd, bytes, sizeof(bytes));
		if (length > 0)
		{
			take_bytes(runner, of[i], bytes, (size_t) length);
		}
		else if (length == 0 || errno != EINTR)
		{
			finish_run(runner, of[i]);
		}
	}
}

static void
end_hosts(Runner *runner, int signal_number)
{
	for (int i = 0; i < runner->next; i++)
	{
		if (runner->order[i]->host > 0)
		{
			kill(runner->order[i]->host, signal_number);
		}
	}
}

/* Hosts end their cases on SIGTERM and say so; one that does not within its time is killed, and the reaper does the rest. */
static void
end_interrupted(Runner *runner)
{
	Deadline deadline = deadline_in_ms(INTERRUPT_MS);
	sigset_t nothing;

	sigfillset(&nothing);
	end_hosts(runner, SIGTERM);
	while (runner->running > 0 && !deadline_passed(deadline))
	{
		serve(runner, &nothing, deadline_left_ms(deadline));
	}
	end_hosts(runner, SIGKILL);
}

static bool
run_all(Runner *runner)
{
	sigset_t signals;
	sigset_t before;
	bool done = true;

	/* signals are let in only while waiting, so that none is missed between a look at the flag and the wait */
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	sigprocmask(SIG_BLOCK, &signals, &before);
	while (done && !interrupt_seen())
	{
		done = start_more(runner);
		if (runner->running == 0)
		{
			break;
		}
		serve(runner, &before, -1);
		done = done && !evidence_failed(runner->evidence);
	}
	if (interrupt_seen() || !done)
	{
		end_interrupted(runner);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	return done;
}

/* Side by side, the case that may take longest starts first, so that none is left to run alone at the end. */
static int
compare_starts(const void *a, const void *b)
{
	const CaseRun *x = *(CaseRun *const *) a;
	const CaseRun *y = *(CaseRun *const *) b;

	if (x->repetition != y->repetition)
	{
		return x->repetition < y->repetition ? -1 : 1;
	}
	if (x->scenario->deadline_ms != y->scenario->deadline_ms)
	{
		return x->scenario->deadline_ms > y->scenario->deadline_ms ? -1 : 1;
	}
	return x->index - y->index;
}

static void
plan(Runner *runner, const Scenario *const *scenarios, int count)
{
	int rounds = runner->config->until_fail ? UNTIL_FAIL_REPEATS_MAX : runner->config->repeat;

	runner->run_count = rounds * count;
	runner->runs = memory_get((size_t) runner->run_count * sizeof(CaseRun));
	runner->order = memory_get((size_t) runner->run_count * sizeof(CaseRun *));
	runner->names = memory_get((size_t) runner->run_count * sizeof(EvidenceCase));
	for (int i = 0; i < runner->run_count; i++)
	{
		const Scenario *scenario = scenarios[i % count];

		runner->runs[i].scenario = scenario;
		runner->runs[i].index = i;
		runner->runs[i].repetition = i / count + 1;
		runner->order[i] = &runner->runs[i];
		runner->names[i] = (EvidenceCase){.suite = scenario->suite,
										  .id = scenario->id,
										  .title = scenario->title,
										  .claim = scenario->claim,
										  .kind = scenario->kind,
										  .repetition = i / count + 1,
										  .guarantee = scenario->guarantee,
										  .observed = scenario->observed};
	}
	if (runner->config->jobs > 1)
	{
		qsort(runner->order, (size_t) runner->run_count, sizeof(CaseRun *), compare_starts);
	}
}

ExitCode
runner_exit_code(const EvidenceTotals *totals)
{
	if (totals->failed > 0)
	{
		return EXIT_CODE_FAIL;
	}
	if (totals->broken > 0)
	{
		return EXIT_CODE_BROKEN;
	}
	if (totals->unknown > 0 || totals->passed == 0)
	{
		return EXIT_CODE_INCONCLUSIVE;
	}
	return EXIT_CODE_PASS;
}

/* Databases that stay with --keep: on the run's own server, or on the one it was given. */
static int
tell_kept(Runner *runner)
{
	int kept = 0;

	for (int i = 0; i < runner->next; i++)
	{
		CaseRun *run = runner->order[i];

		if ((run->scenario->needs & NEEDS_DATABASE) != 0)
		{
			char *conninfo = session_conninfo_for(runner->server, run->database);

			progress_kept(conninfo != NULL ? conninfo : run->database);
			free(conninfo);
			kept++;
		}
	}
	return kept;
}

static bool
close_server(Runner *runner)
{
	if (runner->config->keep && tell_kept(runner) > 0 && runner->cluster != NULL)
	{
		Text ending = {0};

		cluster_keep(runner->cluster, &ending);
		progress_ending(text_get(&ending));
		text_free(&ending);
	}
	return cluster_free(runner->cluster);
}

/* The evidence is closed before the server goes: its log is copied from there. */
static bool
close_evidence(Runner *runner, bool complete)
{
	char *log = runner->cluster != NULL ? string_copy(cluster_log(runner->cluster)) : NULL;
	bool closed = evidence_close(runner->evidence, log, !complete);

	free(log);
	return closed;
}

static ExitCode
run_with_evidence(Runner *runner)
{
	bool ready = open_server(runner) && environment_record(runner->config, runner->server, runner->evidence);
	bool complete = ready && run_all(runner) && !interrupt_seen();
	EvidenceTotals totals;
	bool closed;
	bool stopped;

	interrupt_defer(); /* the rest is what an interrupt asks for as well */
	closed = close_evidence(runner, complete);
	totals = evidence_totals(runner->evidence);
	if (ready)
	{
		progress_end(runner->config, runner->evidence, complete);
	}
	stopped = close_server(runner);
	interrupt_resume();
	if (interrupt_seen() && !complete) /* too late to interrupt what had ended */
	{
		return EXIT_CODE_INTERRUPTED;
	}
	if (totals.failed > 0)
	{
		return EXIT_CODE_FAIL;
	}
	return complete && closed && stopped ? runner_exit_code(&totals) : EXIT_CODE_BROKEN;
}

ExitCode
runner_run(const RunnerConfig *config, const Scenario *const *scenarios, int count)
{
	Runner runner = {.config = config};
	ExitCode code = EXIT_CODE_BROKEN;

	plan(&runner, scenarios, count);
	environment_scrub();
	time_set_scale(config->scale);
	interrupt_catch();
	(void) signal(SIGPIPE, SIG_IGN);
	if (process_adopt_orphans() && reaper_start())
	{
		EvidenceRun evidence = {.root = config->evidence_root,
								.seed = config->seed,
								.cases = runner.names,
								.case_count = runner.run_count,
								.replay = config->replay,
								.keep = config->keep};

		runner.evidence = evidence_open(&evidence);
		if (runner.evidence != NULL)
		{
			code = run_with_evidence(&runner);
		}
		else if (interrupt_seen())
		{
			code = EXIT_CODE_INTERRUPTED;
		}
		evidence_free(runner.evidence);
		if (runner.running == 0)
		{
			reaper_dismiss(); /* else it has work to do when this process ends */
		}
	}
	free(runner.server);
	free(runner.runs);
	free(runner.order);
	free(runner.names);
	return code;
}
