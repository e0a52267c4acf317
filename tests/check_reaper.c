#include <check.h>
#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cluster.h"
#include "reaper.h"
#include "server_suite.h"

#define REAPED_WITHIN_MS 1000
#define REMOVED_WITHIN_MS 30000 /* the disk may be busy with other things */

/* What a mock runner says on its pipe: the processes and the folder that must be gone after it. */
typedef struct
{
	pid_t reaper;
	pid_t leader;
	pid_t member;
	pid_t postmaster;
	pid_t unlisted;
	char directory[256];
} Said;

static bool
lives(pid_t pid)
{
	ProcessStatus status;

	return process_status(pid, &status) && status.state != 'Z';
}

static pid_t
start_sleeper(bool own_group)
{
	const char *argv[] = {"/bin/sleep", "300", NULL};
	Process *process = process_start(&(ProcessSpec){.argv = argv, .own_group = own_group, .output_file = "/dev/null"});
	pid_t pid;

	if (process == NULL)
	{
		_exit(EXIT_CODE_BROKEN);
	}
	pid = process_pid(process);
	process_release(process);
	return pid;
}

/* A group of its own with two members; the leader enters it before it starts the other. */
static void
start_group(Said *said, int fd)
{
	said->leader = fork();
	if (said->leader == 0)
	{
		setpgid(0, 0);
		if (reaper_enter_group(getpid()) < 0)
		{
			_exit(EXIT_CODE_BROKEN);
		}
		said->leader = getpid();
		said->member = start_sleeper(false);
		if (write(fd, said, sizeof(*said)) != (ssize_t) sizeof(*said))
		{
			_exit(EXIT_CODE_BROKEN);
		}
		for (;;)
		{
			pause();
		}
	}
}

/* A runner that starts a reaper, a server through pg_ctl and a group, says so, and waits to be killed. */
static void
mock_runner(int fd, bool restarted)
{
	Said said = {0};
	ServerKit kit;
	Cluster *cluster;

	(void) signal(SIGTERM, SIG_DFL); /* Check's own handler would end the test as well */
	if (!reaper_start() || !process_adopt_orphans() || !server_kit_find(&kit, bindir, 16))
	{
		_exit(EXIT_CODE_BROKEN);
	}
	said.reaper = reaper_pid();
	cluster = cluster_create(&kit, "mock");
	if (cluster == NULL || !cluster_start(cluster, soon()) ||
		(restarted && !cluster_restart_immediate(cluster, soon())))
	{
		_exit(EXIT_CODE_BROKEN);
	}
	said.postmaster = cluster_postmaster(cluster);
	snprintf(said.directory, sizeof(said.directory), "%s", cluster_directory(cluster));
	said.unlisted = start_sleeper(true);
	start_group(&said, fd);
	for (;;)
	{
		pause();
	}
}

static pid_t
start_mock_runner(bool restarted, Said *said)
{
	int pair[2];
	pid_t runner;

	ck_assert_int_eq(pipe(pair), 0);
	runner = fork();
	if (runner == 0)
	{
		close(pair[0]);
		mock_runner(pair[1], restarted);
	}
	close(pair[1]);
	ck_assert_int_eq(read(pair[0], said, sizeof(*said)), (ssize_t) sizeof(*said));
	close(pair[0]);
	return runner;
}

static ProbeAnswer
probe_processes_gone(void *context, Text *seen)
{
	const Said *said = context;

	text_append(seen, "leader %d member %d postmaster %d", lives(said->leader), lives(said->member),
				lives(said->postmaster));
	return lives(said->leader) || lives(said->member) || lives(said->postmaster) ? PROBE_AGAIN : PROBE_DONE;
}

static ProbeAnswer
probe_all_gone(void *context, Text *seen)
{
	const Said *said = context;
	bool directory = access(said->directory, F_OK) == 0;

	text_append(seen, "directory %d reaper %d", directory, lives(said->reaper));
	return directory || lives(said->reaper) ? PROBE_AGAIN : PROBE_DONE;
}

static void
assert_reaped(bool restarted, int signal_number)
{
	Said said;
	pid_t runner = start_mock_runner(restarted, &said);

	ck_assert(lives(said.reaper) && lives(said.leader) && lives(said.member) && lives(said.postmaster));
	ck_assert_int_eq(getsid(said.reaper), said.reaper);
	/* what would end a terminal's job must not end the reaper */
	ck_assert_int_eq(kill(said.reaper, SIGINT), 0);
	ck_assert_int_eq(kill(said.reaper, SIGTERM), 0);
	ck_assert_int_eq(kill(said.reaper, SIGHUP), 0);
	ck_assert_int_eq(kill(runner, signal_number), 0);
	ck_assert_int_eq(waitpid(runner, NULL, 0), runner);
	ck_assert(wait_until("the end of all", deadline_in_ms(REAPED_WITHIN_MS), probe_processes_gone, &said));
	ck_assert(wait_until("the reaper's work", deadline_in_ms(REMOVED_WITHIN_MS), probe_all_gone, &said));
	ck_assert(lives(said.unlisted));
	ck_assert_int_eq(kill(said.unlisted, SIGKILL), 0);
}

START_TEST(a_killed_runner_leaves_nothing)
{
	assert_reaped(false, SIGKILL);
}
END_TEST

START_TEST(nor_when_its_server_came_from_pg_ctl)
{
	assert_reaped(true, SIGKILL);
}
END_TEST

START_TEST(nor_when_it_ends_without_a_word)
{
	assert_reaped(false, SIGTERM);
}
END_TEST

typedef struct
{
	const char *folder;
	Text *seen;
} Mention;

static void
mention_visit(void *context, pid_t pid, const ProcessStatus *status)
{
	const Mention *mention = context;
	Text command = {0};

	process_describe(pid, &command);
	if (status->state != 'Z' && strstr(text_get(&command), mention->folder) != NULL)
	{
		text_append(mention->seen, "%s; ", text_get(&command));
	}
	text_free(&command);
}

/* Neither a process that names the folder, nor anything in it. */
static ProbeAnswer
probe_folder_deserted(void *context, Text *seen)
{
	const char *folder = context;

	process_visit_all(mention_visit, &(Mention){.folder = folder, .seen = seen});
	if (seen->length > 0)
	{
		return PROBE_AGAIN;
	}
	if (rmdir(folder) != 0)
	{
		text_append(seen, "%s: %s", folder, strerror(errno));
		return PROBE_AGAIN;
	}
	return PROBE_DONE;
}

/* A runner that never stops to create, start, restart and free servers. */
static void
busy_runner(void)
{
	ServerKit kit;

	if (!reaper_start() || !server_kit_find(&kit, bindir, 16))
	{
		_exit(EXIT_CODE_BROKEN);
	}
	for (;;)
	{
		Cluster *cluster = cluster_create(&kit, "mock");

		if (cluster == NULL || !cluster_start(cluster, soon()) || !cluster_restart_immediate(cluster, soon()) ||
			!cluster_free(cluster))
		{
			_exit(EXIT_CODE_BROKEN);
		}
	}
}

START_TEST(killed_at_any_moment)
{
	static const int moments_ms[] = {10, 30, 60, 90, 130, 180, 240, 320, 400};
	char *folder = string_format("%s/scratch", cache);
	ServerKit kit;

	ck_assert(server_kit_find(&kit, bindir, 16));
	ck_assert(cluster_free(cluster_create(&kit, "template")));
	setenv("TMPDIR", folder, 1);
	for (size_t i = 0; i < LENGTH_OF(moments_ms); i++)
	{
		Deadline moment = deadline_in_ms(moments_ms[i]);
		pid_t runner;
		int status;

		ck_assert_int_eq(mkdir(folder, 0755), 0);
		runner = fork();
		if (runner == 0)
		{
			busy_runner();
		}
		while (!deadline_passed(moment))
		{
			backoff_us(1000);
		}
		ck_assert_int_eq(kill(runner, SIGKILL), 0);
		ck_assert_int_eq(waitpid(runner, &status, 0), runner);
		ck_assert(WIFSIGNALED(status));
		ck_assert(wait_until("a deserted folder", deadline_in_ms(REMOVED_WITHIN_MS), probe_folder_deserted, folder));
	}
	free(folder);
}
END_TEST

START_TEST(a_dismissed_reaper_ends_nothing)
{
	pid_t sleeper = start_sleeper(true);
	pid_t reaper;
	int slot;

	ck_assert_int_eq(reaper_pid(), 0);
	ck_assert_int_eq(reaper_enter_group(sleeper), 0);
	ck_assert(reaper_start());
	reaper = reaper_pid();
	ck_assert(lives(reaper));
	slot = reaper_enter_group(sleeper);
	ck_assert_int_eq(slot, 0);
	reaper_dismiss();
	ck_assert_int_eq(reaper_pid(), 0);
	ck_assert(!lives(reaper));
	ck_assert(lives(sleeper));
	ck_assert_int_eq(kill(sleeper, SIGKILL), 0);
	ck_assert_int_eq(waitpid(sleeper, NULL, 0), sleeper);
	ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
}
END_TEST

START_TEST(another_process_cannot_dismiss_it)
{
	pid_t other;

	ck_assert(reaper_start());
	other = fork();
	if (other == 0)
	{
		reaper_dismiss();
		_exit(0);
	}
	ck_assert_int_eq(waitpid(other, NULL, 0), other);
	ck_assert(lives(reaper_pid()));
	reaper_dismiss();
}
END_TEST

/* A case: enters its own group, starts a server, leaves a program behind and ends without giving back anything. */
static void
careless_case(const ServerKit *kit)
{
	Cluster *cluster;

	setpgid(0, 0);
	if (reaper_enter_group(getpid()) < 0)
	{
		_exit(EXIT_CODE_BROKEN);
	}
	cluster = cluster_create(kit, "careless");
	if (cluster == NULL || !cluster_start(cluster, soon()))
	{
		_exit(EXIT_CODE_BROKEN);
	}
	(void) start_sleeper(false);
	_exit(0);
}

START_TEST(sweeping_after_a_case)
{
	pid_t sleeper = start_sleeper(true);
	pid_t pids[8];
	ServerKit kit;
	Text report = {0};
	pid_t ended;
	int status;

	ck_assert(reaper_start());
	ck_assert(process_adopt_orphans());
	ck_assert(server_kit_find(&kit, bindir, 16));
	ck_assert_int_eq(reaper_enter_group(sleeper), 0); /* ours, not the case's */
	ended = fork();
	if (ended == 0)
	{
		careless_case(&kit);
	}
	ck_assert_int_eq(waitpid(ended, &status, 0), ended);
	ck_assert_int_eq(status, 0);
	ck_assert_int_eq(process_children(pids, 8), 4); /* reaper, two sleepers, postmaster */

	ck_assert_int_eq(reaper_sweep(ended, &report), 2);
	ck_assert_ptr_nonnull(strstr(text_get(&report), "left server: pid "));
	ck_assert_ptr_nonnull(strstr(text_get(&report), "/bin/postgres -D /tmp/cp-"));
	ck_assert_ptr_nonnull(strstr(text_get(&report), "left in the process group: pid "));
	ck_assert_ptr_nonnull(strstr(text_get(&report), " /bin/sleep 300\n"));
	ck_assert_int_eq(process_children(pids, 8), 2);
	ck_assert(lives(sleeper));

	text_clear(&report);
	ck_assert_int_eq(reaper_sweep(ended, &report), 0);
	ck_assert_str_eq(text_get(&report), "");
	ck_assert_int_eq(reaper_sweep(getpid(), &report), 1);
	ck_assert_int_eq(process_children(pids, 8), 1);
	ck_assert_int_eq(pids[0], reaper_pid());
	reaper_dismiss();
	text_free(&report);
}
END_TEST

/* A group of its own under a pid that was used before. 0: not allowed here, or the pid is taken. */
static pid_t
start_with_pid(pid_t wanted)
{
	struct clone_args args = {.exit_signal = SIGCHLD, .set_tid = (uint64_t) (uintptr_t) &wanted, .set_tid_size = 1};
	pid_t pid = (pid_t) syscall(SYS_clone3, &args, sizeof(args));

	if (pid == 0)
	{
		setpgid(0, 0);
		for (;;)
		{
			pause();
		}
	}
	return pid > 0 ? pid : 0;
}

/* What lives under the number now is not what was entered. */
START_TEST(a_number_that_was_given_to_someone_else)
{
	pid_t entered = start_sleeper(true);
	Text report = {0};
	pid_t other;

	ck_assert(reaper_start());
	ck_assert_int_eq(reaper_enter_group(entered), 0);
	ck_assert_int_eq(kill(entered, SIGKILL), 0);
	ck_assert_int_eq(waitpid(entered, NULL, 0), entered);
	backoff_us(20000); /* births are told in ticks of 10 ms */
	other = start_with_pid(entered);
	if (other == 0)
	{
		fprintf(stderr, "no process can be given a chosen pid here: the reuse of one is not tried\n");
	}
	else
	{
		(void) setpgid(other, other);
		ck_assert_int_eq(reaper_sweep(getpid(), &report), 0);
		ck_assert(lives(other));
		ck_assert_int_eq(kill(other, SIGKILL), 0);
		ck_assert_int_eq(waitpid(other, NULL, 0), other);
	}
	reaper_dismiss();
	text_free(&report);
}
END_TEST

START_TEST(a_group_that_was_left_or_is_not_one)
{
	pid_t sleeper = start_sleeper(true);
	pid_t plain = start_sleeper(false);
	Text report = {0};
	int slot;

	ck_assert(reaper_start());
	ck_assert_int_eq(reaper_enter_group(plain), -1);
	slot = reaper_enter_group(sleeper);
	ck_assert_int_eq(slot, 0);
	reaper_leave(slot);
	ck_assert_int_eq(reaper_sweep(getpid(), &report), 0);
	ck_assert(lives(sleeper) && lives(plain));
	ck_assert_int_eq(kill(sleeper, SIGKILL), 0);
	ck_assert_int_eq(kill(plain, SIGKILL), 0);
	reaper_dismiss();
}
END_TEST

START_TEST(the_table_has_an_end)
{
	int slot = 0;
	int entered = 0;
	Text report = {0};

	ck_assert(reaper_start());
	while (slot >= 0 && entered <= 10000)
	{
		slot = reaper_enter_directory("/nonexistent/cp-test");
		entered += slot >= 0 ? 1 : 0;
	}
	ck_assert_int_eq(entered, 256);
	ck_assert_int_eq(reaper_sweep(getpid(), &report), 0);
	ck_assert_int_eq(reaper_enter_directory("/nonexistent/cp-test"), 0);
	ck_assert_int_eq(reaper_enter_directory("relative"), -1);
	reaper_dismiss();
}
END_TEST

static TCase *
cases(void)
{
	TCase *tcase = tcase_create("reaper");

	tcase_set_timeout(tcase, 180);
	tcase_add_test(tcase, a_killed_runner_leaves_nothing);
	tcase_add_test(tcase, nor_when_its_server_came_from_pg_ctl);
	tcase_add_test(tcase, nor_when_it_ends_without_a_word);
	tcase_add_test(tcase, killed_at_any_moment);
	tcase_add_test(tcase, a_dismissed_reaper_ends_nothing);
	tcase_add_test(tcase, another_process_cannot_dismiss_it);
	tcase_add_test(tcase, sweeping_after_a_case);
	tcase_add_test(tcase, a_number_that_was_given_to_someone_else);
	tcase_add_test(tcase, a_group_that_was_left_or_is_not_one);
	tcase_add_test(tcase, the_table_has_an_end);
	return tcase;
}

int
main(void)
{
	Suite *suite = suite_create("reaper");

	suite_add_tcase(suite, cases());
	return suite_run_with_servers(suite);
}
