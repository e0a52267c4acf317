#include "crew.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../reaper.h"
#include "told.h"

#define END_MS 60000 /* for a worker that is to stop its server and remove its folders */
#define LOOK_MS 500  /* how often it is told that time goes by */

typedef struct
{
	pid_t pid; /* 0: it has ended */
	int fd;
	bool ready; /* waits for work */
} Worker;

struct Crew
{
	Worker *workers;
	int count;
	Text complaint; /* one of them could not go on */
	Text server;
};


/* --- a worker --- */

static bool
tell_points(int fd, const CrashPoints *points)
{
	bool done = true;

	for (int i = 0; done && i < points->count; i++)
	{
		Told told = {.kind = TOLD_POINT,
					 .point = points->points[i],
					 .connections = points->connections,
					 .unstable = points->unstable};

		done = told_send(fd, &told, NULL);
	}
	return done;
}

/* What was asked for. An interrupt is no failure: nobody listens any more. */
static bool
work(Site *site, int fd, const Told *order)
{
	TrialOutcome outcome = {0};
	CrashPoints points = {0};
	Told told = {.kind = TOLD_OUTCOME, .index = order->index};
	bool done;

	if (order->kind == TOLD_REFERENCE)
	{
		done = trial_reference(site, &points, &outcome) && tell_points(fd, &points);
	}
	else
	{
		done = trial_run(site, &order->point, order->unstable, order->fault, &outcome);
	}
	if (!done && !interrupt_seen())
	{
		char last[600];

		notice_last_error(last, sizeof(last));
		told.kind = TOLD_BROKEN;
		text_clear(&outcome.reason);
		text_append(&outcome.reason, "%s", last);
	}
	done = (done || told.kind == TOLD_BROKEN) && told_send(fd, &told, &outcome);
	crash_points_free(&points);
	trial_outcome_free(&outcome);
	return done && told.kind == TOLD_OUTCOME;
}

static bool
tell_site(const Site *site, int fd)
{
	Told told = {.kind = site != NULL ? TOLD_READY : TOLD_BROKEN};
	TrialOutcome words = {0};
	char last[600];
	bool sent;

	notice_last_error(last, sizeof(last));
	if (site != NULL)
	{
		text_append(&words.reason, "host='%s' port=%d user=" CLUSTER_USER " dbname=postgres",
					site_surroundings_past(site).host, CLUSTER_PORT);
	}
	else
	{
		text_append(&words.reason, "%s", last);
	}
	sent = told_send(fd, &told, &words);
	trial_outcome_free(&words);
	return sent;
}

static bool
renew_site(Site **site, const SiteSetup *setup)
{
	if (!site_is_used_up(*site))
	{
		return true;
	}
	if (!site_close(*site))
	{
		report_warning("a server of this run was not put away in order");
	}
	*site = site_open(setup);
	return *site != NULL;
}

static ExitCode
worker_serve(const SiteSetup *setup, int fd)
{
	Site *site = site_open(setup);
	bool going = tell_site(site, fd) && site != NULL;
	TrialOutcome words;
	Told order;

	while (going && told_receive(fd, &order, &words))
	{
		trial_outcome_free(&words);
		if (!renew_site(&site, setup))
		{
			(void) tell_site(NULL, fd);
			break;
		}
		going = work(site, fd, &order);
	}
	return site_close(site) ? EXIT_CODE_PASS : EXIT_CODE_BROKEN;
}

/* In a group of its own, which a Ctrl-C of the terminal does not reach; the parent ends it by SIGTERM. */
static void
worker_main(const SiteSetup *setup, pid_t parent, int fd)
{
	ExitCode code = EXIT_CODE_BROKEN;
	int slot;

	(void) setpgid(0, 0);
	(void) prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int other = STDERR_FILENO + 1; other < fd; other++)
	{
		(void) close(other);
	}
	closefrom(fd + 1);
	notice_set_prefix(setup->plan->id);
	interrupt_catch();
	slot = reaper_enter_group(getpid());
	if (slot >= 0 && process_adopt_orphans() && getppid() == parent)
	{
		code = worker_serve(setup, fd);
	}
	reaper_leave(slot);
	exit(code);
}


/* --- the parent --- */

static bool
start_worker(Crew *crew, const SiteSetup *setup)
{
	Worker *worker = &crew->workers[crew->count];
	pid_t parent = getpid();
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
	{
		report_error("cannot make a socket pair for a worker: %s", strerror(errno));
		return false;
	}
	fflush(NULL);
	worker->pid = fork();
	if (worker->pid == 0)
	{
		worker_main(setup, parent, ends[1]);
	}
	close(ends[1]);
	worker->fd = ends[0];
	if (worker->pid < 0)
	{
		report_error("cannot fork a worker: %s", strerror(errno));
		close(ends[0]);
		return false;
	}
	(void) setpgid(worker->pid, worker->pid);
	crew->count++;
	return true;
}

Crew *
crew_start(const SiteSetup *setup, int workers)
{
	Crew *crew = memory_get(sizeof(*crew));

	crew->workers = memory_get(sizeof(Worker) * (size_t) workers);
	for (int i = 0; i < workers; i++)
	{
		if (!start_worker(crew, setup))
		{
			(void) crew_end(crew);
			return NULL;
		}
	}
	return crew;
}

/* Wait for the end of a worker whose socket has ended; what it had entered with the reaper and not left is ended, too. */
static bool
collect(Worker *worker)
{
	Text left = {0};
	int status = 0;
	bool clean;

	while (waitpid(worker->pid, &status, 0) < 0 && errno == EINTR)
	{
	}
	if (WIFSIGNALED(status))
	{
		report_error("a worker ended by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
	}
	clean = WIFEXITED(status) && WEXITSTATUS(status) == EXIT_CODE_PASS;
	if (reaper_sweep(worker->pid, &left) > 0)
	{
		report_error("a worker left behind: %s", text_get(&left));
		clean = false;
	}
	text_free(&left);
	close(worker->fd);
	worker->pid = 0;
	return clean;
}

/* Wait for packets; signals are let in only here, so that none is missed between a look and the wait. */
static Worker *
next_speaker(Crew *crew, Deadline deadline)
{
	struct pollfd fds[64];
	Worker *of[64];
	nfds_t count = 0;
	int ms = deadline_left_ms(deadline);
	struct timespec timeout = {ms / 1000, ms % 1000 * 1000000L};
	sigset_t signals;
	sigset_t before;

	for (int i = 0; i < crew->count && count < LENGTH_OF(fds); i++)
	{
		if (crew->workers[i].pid > 0)
		{
			fds[count] = (struct pollfd){.fd = crew->workers[i].fd, .events = POLLIN};
			of[count++] = &crew->workers[i];
		}
	}
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	sigprocmask(SIG_BLOCK, &signals, &before);
	if (interrupt_presses() || ppoll(fds, count, &timeout, &before) <= 0)
	{
		count = 0;
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	for (nfds_t i = 0; i < count; i++)
	{
		if (fds[i].revents != 0)
		{
			return of[i];
		}
	}
	return NULL;
}

/* One packet of whoever speaks next. false: nobody did within LOOK_MS, or the one who did could not go on. */
static bool
hear(Crew *crew, Worker **speaker, Told *told, TrialOutcome *outcome)
{
	Worker *worker = next_speaker(crew, deadline_in_ms(LOOK_MS));

	if (worker == NULL)
	{
		return false;
	}
	if (!told_receive(worker->fd, told, outcome))
	{
		(void) collect(worker);
		text_append(&crew->complaint, "a worker ended before its work did");
		return false;
	}
	if (told->kind == TOLD_BROKEN)
	{
		text_append(&crew->complaint, "%s%s", crew->complaint.length > 0 ? "; " : "", text_get(&outcome->reason));
		trial_outcome_free(outcome);
		return false;
	}
	if (told->kind == TOLD_READY && crew->server.length == 0)
	{
		text_append(&crew->server, "%s", text_get(&outcome->reason));
	}
	worker->ready = told->kind == TOLD_READY || told->kind == TOLD_OUTCOME;
	*speaker = worker;
	return true;
}

static Worker *
idle_worker(Crew *crew)
{
	for (int i = 0; i < crew->count; i++)
	{
		if (crew->workers[i].ready)
		{
			return &crew->workers[i];
		}
	}
	return NULL;
}

/* A worker that has gone shows at its socket's end. */
static void
give(Worker *worker, const Told *order)
{
	(void) !told_send(worker->fd, order, NULL);
	worker->ready = false;
}

static bool
may_go_on(const Crew *crew)
{
	return crew->complaint.length == 0 && !interrupt_seen();
}

static void
take_point(CrashPoints *points, const Told *told)
{
	points->points = memory_grow(points->points, sizeof(CrashPoint) * ((size_t) points->count + 1));
	points->points[points->count++] = told->point;
	points->unstable = told->unstable;
	points->connections = told->connections;
}

const char *
crew_server(Crew *crew)
{
	while (crew->server.length == 0 && may_go_on(crew))
	{
		TrialOutcome words = {0};
		Worker *speaker;
		Told told;

		if (hear(crew, &speaker, &told, &words))
		{
			trial_outcome_free(&words);
		}
	}
	return crew->server.length > 0 ? text_get(&crew->server) : NULL;
}

bool
crew_reference(Crew *crew, CrashPoints *points, TrialOutcome *outcome)
{
	bool done = false;

	give(idle_worker(crew), &(Told){.kind = TOLD_REFERENCE});
	while (!done && may_go_on(crew))
	{
		TrialOutcome words = {0};
		Worker *speaker;
		Told told;

		if (!hear(crew, &speaker, &told, &words))
		{
			continue;
		}
		if (told.kind == TOLD_POINT)
		{
			take_point(points, &told);
		}
		if (told.kind == TOLD_OUTCOME)
		{
			*outcome = words;
			words = (TrialOutcome){0};
			done = true;
		}
		trial_outcome_free(&words);
	}
	return done;
}

const char *
crew_complaint(const Crew *crew)
{
	return text_get(&crew->complaint);
}

/* What has come too early waits here for its turn. */
typedef struct
{
	TrialOutcome *outcomes;
	int told;
	int ended;
	int given;
} Ledger;

static void
give_out(Crew *crew, const CrashPoints *points, const CrashPair *pairs, int count, Ledger *ledger)
{
	Worker *worker;

	while (ledger->given < count && (worker = idle_worker(crew)) != NULL)
	{
		const CrashPair *pair = &pairs[ledger->given];

		give(worker, &(Told){.kind = TOLD_RUN,
							 .index = ledger->given,
							 .point = points->points[pair->point],
							 .unstable = points->unstable,
							 .fault = pair->fault});
		ledger->given++;
	}
}

static void
tell_in_order(Ledger *ledger, int count, const CrewEars *ears)
{
	while (ledger->told < count && ledger->outcomes[ledger->told].verdict != TRIAL_UNSET)
	{
		ears->outcome(ears->context, ledger->told, &ledger->outcomes[ledger->told]);
		trial_outcome_free(&ledger->outcomes[ledger->told]);
		ledger->told++;
	}
}

bool
crew_run(Crew *crew, const CrashPoints *points, const CrashPair *pairs, int count, const CrewEars *ears)
{
	Ledger ledger = {.outcomes = memory_get(sizeof(TrialOutcome) * (size_t) count)};
	bool done;

	while (ledger.ended < count && may_go_on(crew))
	{
		TrialOutcome words = {0};
		Worker *speaker;
		Told told;

		give_out(crew, points, pairs, count, &ledger);
		if (hear(crew, &speaker, &told, &words) && told.kind == TOLD_OUTCOME)
		{
			ledger.outcomes[told.index] = words;
			ledger.ended++;
			words = (TrialOutcome){0};
			tell_in_order(&ledger, count, ears);
		}
		trial_outcome_free(&words);
		ears->moved(ears->context, ledger.ended);
	}
	done = ledger.ended == count;
	for (int i = ledger.told; i < count; i++)
	{
		trial_outcome_free(&ledger.outcomes[i]);
	}
	free(ledger.outcomes);
	return done;
}

static bool
any_left(const Crew *crew)
{
	for (int i = 0; i < crew->count; i++)
	{
		if (crew->workers[i].pid > 0)
		{
			return true;
		}
	}
	return false;
}

/* Idle ones end with their socket; one at work is interrupted. Past the deadline they are killed, and swept after. */
static bool
end_workers(Crew *crew)
{
	Deadline deadline = deadline_in_ms(END_MS);
	bool clean = true;

	for (int i = 0; i < crew->count; i++)
	{
		if (crew->workers[i].pid > 0)
		{
			(void) kill(crew->workers[i].pid, SIGTERM);
			(void) shutdown(crew->workers[i].fd, SHUT_WR);
		}
	}
	while (any_left(crew) && !deadline_passed(deadline))
	{
		Worker *worker = next_speaker(crew, deadline);
		TrialOutcome words;
		Told told;

		if (worker != NULL && told_receive(worker->fd, &told, &words))
		{
			trial_outcome_free(&words);
		}
		else if (worker != NULL)
		{
			clean = collect(worker) && clean;
		}
	}
	for (int i = 0; i < crew->count; i++)
	{
		if (crew->workers[i].pid > 0)
		{
			(void) kill(-crew->workers[i].pid, SIGKILL);
			clean = collect(&crew->workers[i]) && clean;
		}
	}
	return clean;
}

bool
crew_end(Crew *crew)
{
	bool clean;

	if (crew == NULL)
	{
		return true;
	}
	interrupt_defer();
	clean = end_workers(crew);
	interrupt_resume();
	text_free(&crew->complaint);
	text_free(&crew->server);
	free(crew->workers);
	free(crew);
	return clean;
}
