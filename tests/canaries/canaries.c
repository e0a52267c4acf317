/*
 * The judge on trial: cases that must not pass, each for a reason of its own. tests/canaries/check_canaries.c holds the
 * exact result and exit code that the runner must give each.
 */
#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "canaries.h"
#include "scenario.h"

static void
run_passes(Scene *scene)
{
	CHECK_EQ(scene, 1 + 1, 2, "one and one");
}

/* The runner's files are not a case's: three streams, the host's signals, the way to the runner, the trace, this folder. */
static void
run_counts_files(Scene *scene)
{
	DIR *folder = opendir("/proc/self/fd");
	int count = 0;

	require(scene, folder != NULL);
	for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder))
	{
		count += entry->d_name[0] != '.';
	}
	closedir(folder);
	CHECK_EQ(scene, count, 7, "open files");
}

static void
run_fails(Scene *scene)
{
	CHECK_EQ(scene, 1 + 1, 2, "one and one");
	CHECK_EQ(scene, 1 + 1, 3, "one and one is three");
}

static void
run_hangs(Scene *scene)
{
	CHECK_EQ(scene, 1, 1, "before it hangs");
	step(scene, "waiting for what never comes");
	for (;;)
	{
		pause();
	}
}

static void
run_crashes(Scene *scene)
{
	CHECK_EQ(scene, 1, 1, "before it crashes");
	signal(SIGSEGV, SIG_DFL); /* a sanitizer would turn the signal into an exit code */
	raise(SIGSEGV);
}

static void
run_exits(Scene *scene)
{
	CHECK_EQ(scene, 1, 1, "before it exits");
	_exit(EXIT_CODE_PASS);
}

static void
run_checks_nothing(Scene *scene)
{
	note(scene, "no check here");
}

static void
run_gives_up(Scene *scene)
{
	CHECK_EQ(scene, 1, 1, "before it gives up");
	scene_broken(scene, "the lab could not do it");
}

static void
run_skips(Scene *scene)
{
	note(scene, "before it looks for what it needs");
	(void) scene_session(scene, "lab");
	scene_skip(scene, "no %s on this machine", "such thing");
}

static void
run_skips_too_late(Scene *scene)
{
	CHECK_EQ(scene, 1, 1, "before it skips");
	scene_skip(scene, "no such thing on this machine");
}

static void
run_fails_and_skips(Scene *scene)
{
	CHECK_EQ(scene, 0, 1, "a check that fails first");
	scene_skip(scene, "no such thing on this machine");
}

static void
run_fails_and_gives_up(Scene *scene)
{
	CHECK_EQ(scene, 0, 1, "a check that fails first");
	scene_broken(scene, "the lab could not go on");
}

static void
run_wait_expires(Scene *scene)
{
	Session *session = scene_session(scene, "lab");

	scene_await_int(scene, session, 2, "SELECT 1", NO_ARGS);
}

static void
run_never_fires(Scene *scene)
{
	(void) scene_fault(scene, "kill -9 nobody at nowhere");
	CHECK_EQ(scene, 1, 1, "while the fault does not fire");
}

/* A kill that finds its program ended has broken nothing: the case was not exercised. */
static void
run_kills_too_late(Scene *scene)
{
	const char *argv[] = {"/bin/true", NULL};
	Fault *fault = scene_fault(scene, "kill -9 true when it has ended");
	Process *process = scene_start(scene, &(ProcessSpec){.argv = argv});
	ProcessEnd end;

	require(scene, process_wait(process, scene_deadline(scene, 5000), &end));
	CHECK(scene, !fault_kill(fault, scene_history(scene), process, scene_deadline(scene, 5000)), "it is told");
}

static void
run_does_not_know(Scene *scene)
{
	CHECK_EQ(scene, 1, 1, "beside the question");
	scene_unknown(scene, "nobody can tell");
}

static void
leak_child(bool own_session)
{
	pid_t pid = fork();

	if (pid == 0)
	{
		if (own_session)
		{
			(void) setsid();
		}
		execl("/bin/sleep", "sleep", "300", (char *) NULL);
		_exit(EXIT_CODE_BROKEN);
	}
}

static void
run_leaks_child(Scene *scene)
{
	leak_child(false);
	CHECK_EQ(scene, 1, 1, "with a child left behind");
}

static void
run_leaks_daemon(Scene *scene)
{
	leak_child(true);
	CHECK_EQ(scene, 1, 1, "with a child in a session of its own left behind");
}

/* When the child is ended, its own child is left. */
static void
run_leaks_family(Scene *scene)
{
	pid_t grandchild = 0;
	int pair[2];

	require(scene, pipe(pair) == 0);
	if (fork() == 0)
	{
		(void) setsid();
		grandchild = fork();
		if (grandchild > 0 && write(pair[1], &grandchild, sizeof(grandchild)) != (ssize_t) sizeof(grandchild))
		{
			_exit(EXIT_CODE_BROKEN);
		}
		execl("/bin/sleep", "sleep", "300", (char *) NULL);
		_exit(EXIT_CODE_BROKEN);
	}
	require(scene, read(pair[0], &grandchild, sizeof(grandchild)) == (ssize_t) sizeof(grandchild));
	CHECK(scene, grandchild > 1, "with a child of a child left behind, pid %d", (int) grandchild);
}

static void
run_kills_host(Scene *scene)
{
	CHECK(scene, cluster_postmaster(scene_cluster(scene)) > 1, "its own server runs, pid %d",
		  (int) cluster_postmaster(scene_cluster(scene)));
	kill(getppid(), SIGKILL);
	for (;;)
	{
		pause();
	}
}

static void
run_leaks_postmaster(Scene *scene)
{
	Cluster *cluster = cluster_create(canary_server_kit(), "leaked");

	require(scene, cluster != NULL && cluster_start(cluster, deadline_in_ms(20000)));
	note(scene, "leaked postmaster %d", (int) cluster_postmaster(cluster));
	CHECK_EQ(scene, cluster_state(cluster), CLUSTER_RUNNING, "a server that nobody stops");
}

static void
run_fails_in_teardown(Scene *scene)
{
	CHECK_EQ(scene, cluster_state(scene_cluster(scene)), CLUSTER_RUNNING, "its own server runs");
	kill(cluster_postmaster(scene_cluster(scene)), SIGKILL);
}

static void
run_kills_server(Scene *scene)
{
	Session *session = scene_session(scene, "lab");
	int64_t pid = 0;

	require(scene, session_query_int(session, &pid, "SELECT split_part(pg_read_file('postmaster.pid'), E'\\n', 1)::int",
									 NO_ARGS));
	CHECK(scene, pid > 1, "the run's postmaster is known");
	kill((pid_t) pid, SIGKILL);
}

#define CANARY(name_, needs_, deadline_, run_)                                                                         \
	{                                                                                                                  \
		.suite = "canary", .id = "canary-" name_, .title = "must not pass", .claim = "a result, not a verdict",        \
		.kind = "canary", .guarantee = "none", .observed = "exit code", .needs = (needs_), .deadline_ms = (deadline_), \
		.run = (run_)                                                                                                  \
	}

static const Scenario canary_table[] = {
	CANARY("passes", NEEDS_NOTHING, 5000, run_passes),
	CANARY("counts-files", NEEDS_NOTHING, 5000, run_counts_files),
	CANARY("fails", NEEDS_NOTHING, 5000, run_fails),
	CANARY("hangs", NEEDS_NOTHING, 800, run_hangs),
	CANARY("crashes", NEEDS_NOTHING, 5000, run_crashes),
	CANARY("exits", NEEDS_NOTHING, 5000, run_exits),
	CANARY("checks-nothing", NEEDS_NOTHING, 5000, run_checks_nothing),
	CANARY("gives-up", NEEDS_NOTHING, 5000, run_gives_up),
	CANARY("skips", NEEDS_DATABASE, 5000, run_skips),
	CANARY("skips-too-late", NEEDS_NOTHING, 5000, run_skips_too_late),
	CANARY("fails-and-skips", NEEDS_NOTHING, 5000, run_fails_and_skips),
	CANARY("fails-and-gives-up", NEEDS_NOTHING, 5000, run_fails_and_gives_up),
	CANARY("wait-expires", NEEDS_DATABASE, 3000, run_wait_expires),
	CANARY("never-fires", NEEDS_NOTHING, 5000, run_never_fires),
	CANARY("kills-too-late", NEEDS_NOTHING, 5000, run_kills_too_late),
	CANARY("does-not-know", NEEDS_NOTHING, 5000, run_does_not_know),
	CANARY("leaks-child", NEEDS_NOTHING, 5000, run_leaks_child),
	CANARY("leaks-daemon", NEEDS_NOTHING, 5000, run_leaks_daemon),
	CANARY("leaks-family", NEEDS_NOTHING, 5000, run_leaks_family),
	CANARY("kills-host", NEEDS_CLUSTER, 30000, run_kills_host),
	CANARY("leaks-postmaster", NEEDS_NOTHING, 30000, run_leaks_postmaster),
	CANARY("fails-in-teardown", NEEDS_CLUSTER, 30000, run_fails_in_teardown),
	CANARY("kills-server", NEEDS_DATABASE, 30000, run_kills_server),
};

const Scenario *const *
canary_scenarios(void)
{
	static const Scenario *list[LENGTH_OF(canary_table) + 1];

	for (size_t i = 0; i < LENGTH_OF(canary_table); i++)
	{
		list[i] = &canary_table[i];
	}
	return list;
}
