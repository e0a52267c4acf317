#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proc.h"
#include "suite.h"

#define PATIENCE_MS 10000

static Deadline
soon(void)
{
	return deadline_in_ms(PATIENCE_MS);
}

static Process *
start_shell(const char *script)
{
	const char *argv[] = {"/bin/sh", "-c", script, NULL};

	return process_start(&(ProcessSpec){.argv = argv});
}

static void
assert_last_error_has(const char *part)
{
	char last[512];

	notice_last_error(last, sizeof(last));
	ck_assert_msg(strstr(last, part) != NULL, "\"%s\" is not in the last error: %s", part, last);
}

static void
assert_ends(Process *process, EndedHow how, int code)
{
	ProcessEnd end;

	ck_assert(process_wait(process, soon(), &end));
	ck_assert_int_eq(end.how, how);
	ck_assert_int_eq(end.code, code);
}

START_TEST(exec_failure_is_found)
{
	const char *missing[] = {"/nonexistent/program", "argument", NULL};
	const char *sh[] = {"/bin/sh", "-c", "true", NULL};

	ck_assert_ptr_null(process_start(&(ProcessSpec){.argv = missing}));
	assert_last_error_has("/nonexistent/program argument: exec: No such file");
	ck_assert_ptr_null(process_start(&(ProcessSpec){.argv = sh, .directory = "/nonexistent"}));
	assert_last_error_has("working directory: No such file");
	ck_assert_ptr_null(process_start(&(ProcessSpec){.argv = sh, .output_file = "/nonexistent/log"}));
	assert_last_error_has("output file: No such file");
	ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
	ck_assert_int_eq(errno, ECHILD);
}
END_TEST

START_TEST(lines_are_read_one_by_one)
{
	Process *process = start_shell("printf 'one\\n\\nthree\\nrest'; exit 3");
	const char *expected[] = {"one", "", "three", "rest"};
	Text line = {0};
	bool ended = true;

	ck_assert_ptr_nonnull(process);
	for (size_t i = 0; i < LENGTH_OF(expected); i++)
	{
		ck_assert(process_read_line(process, &line, soon(), &ended));
		ck_assert(!ended);
		ck_assert_str_eq(text_get(&line), expected[i]);
	}
	ck_assert(!process_read_line(process, &line, soon(), &ended));
	ck_assert(ended);
	assert_ends(process, ENDED_EXIT, 3);
	assert_ends(process, ENDED_EXIT, 3);
	text_free(&line);
	process_free(process);
}
END_TEST

/* As in a dialogue: what it complains of stands where it was said. */
START_TEST(errors_are_read_in_their_place)
{
	const char *argv[] = {"/bin/sh", "-c", "echo one; echo two >&2; read answer; echo $answer >&2; echo four", NULL};
	Process *process = process_start(&(ProcessSpec){.argv = argv, .errors_too = true});
	const char *expected[] = {"one", "two", "three", "four"};
	Text line = {0};
	bool ended;

	ck_assert(process_write_line(process, "three"));
	for (size_t i = 0; i < LENGTH_OF(expected); i++)
	{
		ck_assert(process_read_line(process, &line, soon(), &ended));
		ck_assert_str_eq(text_get(&line), expected[i]);
	}
	assert_ends(process, ENDED_EXIT, 0);
	text_free(&line);
	process_free(process);
}
END_TEST

START_TEST(programs_are_found)
{
	char folder[] = "/tmp/programs-XXXXXX";
	char *old = string_copy(getenv("PATH"));
	char *mine;
	char *found;

	ck_assert_ptr_nonnull(mkdtemp(folder));
	mine = string_format("%s/sh", folder);
	ck_assert_int_eq(symlink("/bin/true", mine), 0);
	ck_assert_int_eq(setenv("PATH", "/nonexistent:/bin", 1), 0);
	found = process_find_program("sh", NULL);
	ck_assert_str_eq(found, "/bin/sh");
	free(found);
	found = process_find_program("sh", folder);
	ck_assert_str_eq(found, mine);
	free(found);
	ck_assert_ptr_null(process_find_program("no-such-program", folder));
	ck_assert_int_eq(setenv("PATH", "/nonexistent", 1), 0);
	ck_assert_ptr_null(process_find_program("sh", NULL));
	ck_assert_int_eq(setenv("PATH", old, 1), 0);
	unlink(mine);
	rmdir(folder);
	free(mine);
	free(old);
}
END_TEST

START_TEST(reading_keeps_its_deadline)
{
	Process *process = start_shell("printf 'half a line'; read answer; echo; echo \"got $answer\"");
	Text line = {0};
	bool ended = true;

	ck_assert(!process_read_line(process, &line, deadline_in_ms(50), &ended));
	ck_assert(!ended);
	ck_assert(process_write_line(process, "yes"));
	ck_assert(process_await_line(process, "got yes", soon()));
	assert_ends(process, ENDED_EXIT, 0);
	text_free(&line);
	process_free(process);
}
END_TEST

START_TEST(awaiting_a_line_that_never_comes)
{
	Process *process = start_shell("echo almost; exit 7");

	ck_assert(!process_await_line(process, "there", soon()));
	assert_last_error_has("until its output ended; last line \"almost\", exit 7");
	process_free(process);

	process = start_shell("echo waiting; read answer");
	ck_assert(!process_await_line(process, "there", deadline_in_ms(100)));
	assert_last_error_has("until its deadline; last line \"waiting\", still running");
	process_free(process);
}
END_TEST

/* What is printed faster than it is read must not keep anyone past a deadline. */
START_TEST(a_program_that_never_stops_printing)
{
	const char *argv[] = {"/bin/sh", "-c", "exec yes", NULL};
	Process *process = start_shell("exec yes");
	ProcessEnd end;

	ck_assert(!process_await_line(process, "no", deadline_in_ms(100)));
	assert_last_error_has("until its deadline; last line \"y\", still running");
	process_free(process);
	ck_assert(!process_run(&(ProcessSpec){.argv = argv}, deadline_in_ms(100), NULL, &end));
	assert_last_error_has("did not end in time and is killed");
}
END_TEST

START_TEST(writing_to_a_program_that_has_gone)
{
	Process *process = start_shell("exit 0");

	assert_ends(process, ENDED_EXIT, 0);
	ck_assert(!process_write_line(process, "hello"));
	assert_last_error_has("cannot write \"hello\"");
	process_free(process);
}
END_TEST

START_TEST(kill_confirms_its_cause)
{
	Process *process = start_shell("read answer");

	ck_assert(process_kill(process, SIGKILL, soon()));
	assert_ends(process, ENDED_SIGNAL, SIGKILL);
	process_free(process);

	process = start_shell("trap 'exit 5' TERM; echo ready; while :; do read answer; done");
	ck_assert(process_await_line(process, "ready", soon()));
	ck_assert(!process_kill(process, SIGTERM, soon()));
	assert_last_error_has("did not end by signal 15 but by exit 5");
	process_free(process);

	process = start_shell("trap '' TERM; echo ready; while :; do read answer; done");
	ck_assert(process_await_line(process, "ready", soon()));
	ck_assert(!process_kill(process, SIGTERM, deadline_in_ms(50)));
	assert_last_error_has("still runs after signal 15");
	process_free(process);
}
END_TEST

/* 't': stopped by a tracer. */
static bool
is_held(pid_t pid)
{
	ProcessStatus status;

	return process_status(pid, &status) && status.state == 't';
}

START_TEST(a_held_thread_stands_until_the_kill)
{
	Process *process = start_shell("echo ready; while :; do :; done");

	ck_assert(process_await_line(process, "ready", soon()));
	ck_assert(!process_hold_thread(process, "nothing"));
	assert_last_error_has("has no thread nothing");
	ck_assert(process_hold_thread(process, "sh"));
	ck_assert(is_held(process_pid(process)));
	ck_assert(process_kill(process, SIGKILL, soon()));
	process_free(process);

	process = start_shell("echo ready; while :; do :; done");
	ck_assert(process_await_line(process, "ready", soon()));
	ck_assert(process_hold_thread(process, "sh"));
	process_free(process);
}
END_TEST

START_TEST(kill_of_an_ended_program_is_refused)
{
	Process *process = start_shell("exit 0");
	bool ended = false;
	Text line = {0};
	ProcessEnd end;

	ck_assert(!process_read_line(process, &line, soon(), &ended));
	ck_assert(ended);
	ck_assert(process_wait(process, soon(), &end));
	ck_assert(!process_kill(process, SIGKILL, soon()));
	assert_last_error_has("it had already ended: exit 0");
	text_free(&line);
	process_free(process);
}
END_TEST

START_TEST(ends_are_decoded)
{
	Process *process = start_shell("kill -ABRT $$");
	Text text = {0};
	ProcessEnd end = {0};

	ck_assert(process_wait(process, soon(), &end));
	process_end_describe(end, &text);
	ck_assert_str_eq(text_get(&text), "signal 6 (Aborted)");
	process_free(process);

	text_clear(&text);
	process_end_describe((ProcessEnd){.how = ENDED_EXIT, .code = 4}, &text);
	process_end_describe((ProcessEnd){0}, &text);
	ck_assert_str_eq(text_get(&text), "exit 4still running");

	process = start_shell("read answer");
	ck_assert(!process_poll(process, &end));
	ck_assert(!process_wait(process, deadline_in_ms(20), &end));
	ck_assert_int_eq(end.how, ENDED_UNSET);
	assert_last_error_has("still runs at its deadline");
	process_free(process);
	text_free(&text);
}
END_TEST

START_TEST(freeing_ends_the_program)
{
	Process *process = start_shell("read answer");
	pid_t pid = process_pid(process);
	ProcessStatus status;

	ck_assert(process_status(pid, &status));
	process_free(process);
	ck_assert(!process_status(pid, &status));
	process_free(NULL);
	process_release(NULL);
}
END_TEST

START_TEST(run_collects_both_streams)
{
	const char *argv[] = {
		"/bin/sh", "-c",
		"echo out; echo err >&2; echo \"$LAB:$PWD\"; cat; tr '\\0' '\\n' </proc/$$/environ | grep ^LAB=; exit 2", NULL};
	const char *env[] = {"LAB=two words", "PATH=/bin:/usr/bin", NULL};
	Text output = {0};
	ProcessEnd end;

	setenv("LAB", "replaced", 1);
	ck_assert(process_run(&(ProcessSpec){.argv = argv, .env = env, .directory = "/usr"}, soon(), &output, &end));
	ck_assert_str_eq(text_get(&output), "out\nerr\ntwo words:/usr\nLAB=two words\n");
	ck_assert_int_eq(end.how, ENDED_EXIT);
	ck_assert_int_eq(end.code, 2);
	text_free(&output);
}
END_TEST

/* The background child holds the pipe open; only the program itself is waited for. */
START_TEST(run_does_not_wait_for_what_stays)
{
	const char *argv[] = {"/bin/sh", "-c", "sleep 30 & echo $!", NULL};
	Text output = {0};
	ProcessEnd end;
	int64_t before = time_now_ns();
	int64_t pid;

	ck_assert(process_run(&(ProcessSpec){.argv = argv}, soon(), &output, &end));
	ck_assert_int_lt(time_now_ns() - before, INT64_C(5000000000));
	output.data[strcspn(output.data, "\n")] = '\0';
	ck_assert(string_to_int64(output.data, 2, INT32_MAX, &pid));
	ck_assert_int_eq(kill((pid_t) pid, SIGKILL), 0);
	text_free(&output);
}
END_TEST

START_TEST(run_past_its_deadline_is_killed)
{
	const char *argv[] = {"/bin/sh", "-c", "echo begun; sleep 30", NULL};
	Text output = {0};
	ProcessEnd end;

	ck_assert(!process_run(&(ProcessSpec){.argv = argv, .own_group = true}, deadline_in_ms(200), &output, &end));
	ck_assert_str_eq(text_get(&output), "begun\n");
	assert_last_error_has("did not end in time");
	text_free(&output);
}
END_TEST

/* Its program ends with it; what is on the way out still runs to its end. */
START_TEST(an_interrupt_ends_a_run_silently)
{
	const char *sleeps[] = {"/bin/sh", "-c", "kill -TERM $PPID; echo $$; sleep 30", NULL};
	char folder[] = "/tmp/check_proc-XXXXXX";
	int64_t start_ns = time_now_ns();
	Text output = {0};
	char last[64];
	ProcessEnd end;
	int64_t pid;

	ck_assert_ptr_nonnull(mkdtemp(folder));
	interrupt_catch();
	ck_assert(!process_run(&(ProcessSpec){.argv = sleeps, .own_group = true}, soon(), &output, &end));
	ck_assert_int_eq(end.how, ENDED_UNSET);
	ck_assert(!process_run(&(ProcessSpec){.argv = sleeps, .own_group = true}, soon(), NULL, &end));
	ck_assert_int_lt(time_now_ns() - start_ns, 5 * INT64_C(1000000000));
	if (output.length > 0)
	{
		output.data[--output.length] = '\0';
		ck_assert(string_to_int64(text_get(&output), 1, INT32_MAX, &pid));
		ck_assert_int_eq(kill((pid_t) pid, 0), -1);
		ck_assert_int_eq(errno, ESRCH);
	}
	ck_assert(process_remove_directory(folder, soon()));
	notice_last_error(last, sizeof(last));
	ck_assert_str_eq(last, "");
	text_free(&output);
}
END_TEST

/* The terminal's signal may come while the child is not yet in a group of its own. */
START_TEST(a_group_of_its_own_does_not_hear_the_old_one)
{
	const char *argv[] = {"/bin/sh", "-c", "exit 7", NULL};
	int64_t until_ns = time_now_ns() + 500 * INT64_C(1000000);
	pid_t group = getpid();
	pid_t noise;
	ProcessEnd end;

	ck_assert(setpgid(0, 0) == 0 || getpgrp() == group);
	(void) signal(SIGINT, SIG_IGN);
	noise = fork();
	if (noise == 0)
	{
		while (kill(-group, SIGINT) == 0 && time_now_ns() < until_ns)
		{
			backoff_us(100);
		}
		_exit(0);
	}
	while (time_now_ns() < until_ns)
	{
		ck_assert(process_run(&(ProcessSpec){.argv = argv, .own_group = true}, soon(), NULL, &end));
		ck_assert_int_eq(end.how, ENDED_EXIT);
		ck_assert_int_eq(end.code, 7);
	}
	ck_assert_int_eq(waitpid(noise, NULL, 0), noise);
}
END_TEST

/* Whoever started it is killed at once: it goes, though nobody knew its group. */
START_TEST(a_program_may_die_with_who_started_it)
{
	const char *argv[] = {"/bin/sh", "-c", "exec sleep 60", NULL};
	Process *orphan;
	ProcessEnd end;
	pid_t pid = 0;
	int ends[2];
	pid_t starter;

	ck_assert(process_adopt_orphans());
	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	starter = fork();
	if (starter == 0)
	{
		Process *process = process_start(&(ProcessSpec){.argv = argv, .own_group = true, .dies_with_us = true});

		pid = process != NULL ? process_pid(process) : 0;
		(void) !write(ends[1], &pid, sizeof(pid));
		(void) kill(getpid(), SIGKILL);
	}
	ck_assert_int_eq(read(ends[0], &pid, sizeof(pid)), sizeof(pid));
	ck_assert_int_eq(waitpid(starter, NULL, 0), starter);
	orphan = process_adopt(pid);
	ck_assert_ptr_nonnull(orphan);
	ck_assert(process_wait(orphan, soon(), &end));
	ck_assert_int_eq(end.how, ENDED_SIGNAL);
	ck_assert_int_eq(end.code, SIGKILL);
	process_free(orphan);
	close(ends[0]);
	close(ends[1]);
}
END_TEST

START_TEST(a_descriptor_tells_of_the_end)
{
	Process *process = start_shell("read go; exit 3");
	struct pollfd ending = {.fd = process_descriptor(process), .events = POLLIN};

	ck_assert_int_ge(ending.fd, 0);
	ck_assert_int_eq(poll(&ending, 1, 50), 0);
	ck_assert(process_write_line(process, "go"));
	ck_assert_int_eq(poll(&ending, 1, PATIENCE_MS), 1);
	assert_ends(process, ENDED_EXIT, 3);
	close(ending.fd);
	process_free(process);
}
END_TEST

START_TEST(output_file_is_appended)
{
	char path[] = "/tmp/check_proc-XXXXXX";
	int fd = mkstemp(path);
	const char *argv[] = {"/bin/sh", "-c", "echo out; echo err >&2", NULL};
	Text content = {0};
	Process *process;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, "before\n", 7), 7);
	close(fd);
	process = process_start(&(ProcessSpec){.argv = argv, .output_file = path});
	ck_assert_ptr_nonnull(process);
	assert_ends(process, ENDED_EXIT, 0);
	process_free(process);
	ck_assert(file_read(path, &content));
	ck_assert_str_eq(text_get(&content), "before\nout\nerr\n");
	text_free(&content);
	unlink(path);
}
END_TEST

START_TEST(groups_sessions_and_descriptors)
{
	/* a descriptor without close-on-exec must not reach the child either */
	int leaked = fcntl(STDERR_FILENO, F_DUPFD, 57);
	const char *argv[] = {"/bin/sh", "-c", "echo /proc/$$/fd/*; read answer", NULL};
	Process *process = process_start(&(ProcessSpec){.argv = argv, .own_group = true});
	ProcessStatus status;
	Text line = {0};
	Text expected = {0};
	bool ended;
	pid_t pid;

	ck_assert_int_eq(leaked, 57);
	ck_assert_ptr_nonnull(process);
	pid = process_pid(process);
	ck_assert(process_status(pid, &status));
	ck_assert_int_eq(status.group, pid);
	ck_assert_int_eq(status.session, getsid(0));
	ck_assert_int_eq(status.parent, getpid());
	ck_assert_int_gt(status.birth, 0);
	ck_assert_str_eq(status.command, "sh");
	text_append(&expected, "/proc/%d/fd/0 /proc/%d/fd/1 /proc/%d/fd/2", pid, pid, pid);
	ck_assert(process_read_line(process, &line, soon(), &ended));
	/* the shell adds the folder that it lists */
	ck_assert_int_eq(strncmp(text_get(&line), text_get(&expected), expected.length), 0);
	ck_assert_ptr_null(strstr(text_get(&line), "/fd/57"));
	process_free(process);
	close(leaked);

	process = process_start(&(ProcessSpec){.argv = argv, .own_session = true});
	ck_assert(process_status(process_pid(process), &status));
	ck_assert_int_eq(status.session, process_pid(process));
	process_free(process);
	text_free(&line);
	text_free(&expected);
}
END_TEST

START_TEST(signals_are_at_their_defaults)
{
	const char *argv[] = {"/bin/sh", "-c", "grep -E '^Sig(Blk|Ign)' /proc/self/status", NULL};
	sigset_t blocked;
	Text output = {0};
	ProcessEnd end;

	sigemptyset(&blocked);
	sigaddset(&blocked, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &blocked, NULL);
	signal(SIGPIPE, SIG_IGN);
	ck_assert(process_run(&(ProcessSpec){.argv = argv}, soon(), &output, &end));
	ck_assert_str_eq(text_get(&output), "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
	pthread_sigmask(SIG_SETMASK, NULL, &blocked);
	ck_assert(sigismember(&blocked, SIGTERM));
	text_free(&output);
}
END_TEST

START_TEST(root_drops_to_an_account)
{
	const char *argv[] = {"/bin/sh", "-c", "id -u; id -g; id -G; echo x > log2; cat /proc/self/status | grep CapEff",
						  NULL};
	Account account = {.uid = 65534, .gid = 65534, .name = "nobody"};
	char folder[] = "/tmp/check_proc-XXXXXX";
	char *log;
	struct stat status;
	Text output = {0};
	ProcessEnd end;
	Process *process;

	if (geteuid() != 0)
	{
		fprintf(stderr, "not root: the change of account is not tried\n");
		return;
	}
	ck_assert_int_eq(setgroups(1, &(gid_t){4}), 0);
	ck_assert_ptr_nonnull(mkdtemp(folder));
	ck_assert_int_eq(chown(folder, account.uid, account.gid), 0);
	log = string_format("%s/log", folder);
	ck_assert(
		process_run(&(ProcessSpec){.argv = argv, .account = &account, .directory = folder}, soon(), &output, &end));
	ck_assert_str_eq(text_get(&output), "65534\n65534\n65534\nCapEff:\t0000000000000000\n");

	process = process_start(&(ProcessSpec){.argv = argv, .account = &account, .directory = folder, .output_file = log});
	ck_assert_ptr_nonnull(process);
	assert_ends(process, ENDED_EXIT, 0);
	process_free(process);
	ck_assert_int_eq(stat(log, &status), 0);
	ck_assert_int_eq(status.st_uid, account.uid);

	ck_assert(process_remove_directory(folder, soon()));
	ck_assert_int_eq(access(folder, F_OK), -1);
	ck_assert(process_remove_directory(folder, soon()));
	text_free(&output);
	free(log);
}
END_TEST

/* Until it has become its program, the child bears the arguments of the shell that forked it. */
static ProbeAnswer
probe_sleeper(void *context, Text *seen)
{
	process_describe(*(const pid_t *) context, seen);
	return strcmp(text_get(seen), "sleep 60") == 0 ? PROBE_DONE : PROBE_AGAIN;
}

START_TEST(orphans_are_inherited_and_listed)
{
	Process *process;
	Process *orphan;
	Text line = {0};
	pid_t pids[8];
	bool ended;
	int64_t pid;
	ProcessStatus status;

	ck_assert(process_adopt_orphans());
	ck_assert_int_eq(process_children(pids, 8), 0);
	process = start_shell("sleep 60 >/dev/null & echo $!; exit 0");
	ck_assert(process_read_line(process, &line, soon(), &ended));
	ck_assert(string_to_int64(text_get(&line), 2, INT32_MAX, &pid));
	assert_ends(process, ENDED_EXIT, 0);
	process_free(process);

	ck_assert_int_eq(process_children(pids, 8), 1);
	ck_assert_int_eq(pids[0], pid);
	ck_assert_int_eq(process_children(pids, 0), 0);
	ck_assert(wait_until("the arguments of the orphan", soon(), probe_sleeper, &pids[0]));

	ck_assert_ptr_null(process_adopt(1));
	assert_last_error_has("pid 1 is no child of this process");
	orphan = process_adopt((pid_t) pid);
	ck_assert_ptr_nonnull(orphan);
	ck_assert(process_kill(orphan, SIGKILL, soon()));
	ck_assert_int_eq(process_children(pids, 8), 0);
	process_free(orphan);
	ck_assert(!process_status((pid_t) pid, &status));
	text_free(&line);
}
END_TEST

/* A status that a handle waits for is not taken by the list; that of an unknown child is. */
START_TEST(the_list_takes_only_unknown_zombies)
{
	Process *process = start_shell("exit 9");
	pid_t pids[8];
	siginfo_t info;
	pid_t unknown = fork();

	if (unknown == 0)
	{
		_exit(0);
	}
	ck_assert_int_eq(waitid(P_PID, (id_t) unknown, &info, WEXITED | WNOWAIT), 0);
	ck_assert_int_eq(waitid(P_PID, (id_t) process_pid(process), &info, WEXITED | WNOWAIT), 0);
	ck_assert_int_eq(process_children(pids, 8), 0);
	ck_assert_int_eq(waitpid(unknown, NULL, WNOHANG), -1);
	assert_ends(process, ENDED_EXIT, 9);
	process_free(process);
}
END_TEST

START_TEST(a_forked_copy_leaves_the_program_alone)
{
	Process *process = start_shell("read answer; exit 4");
	pid_t copy = fork();

	if (copy == 0)
	{
		process_free(process);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(copy, NULL, 0), copy);
	ck_assert(process_write_line(process, "go on"));
	assert_ends(process, ENDED_EXIT, 4);
	process_free(process);
}
END_TEST

static atomic_bool stop_allocating;

static void *
allocate_until_told(void *unused)
{
	(void) unused;
	while (!atomic_load(&stop_allocating))
	{
		free(memory_get(1024));
	}
	return NULL;
}

/* A child that allocated between fork and exec would stand still on a lock held by the other thread. */
START_TEST(starting_beside_busy_threads)
{
	pthread_t threads[2];
	const char *argv[] = {"/bin/true", NULL};
	ProcessEnd end;

	atomic_store(&stop_allocating, false);
	for (size_t i = 0; i < LENGTH_OF(threads); i++)
	{
		ck_assert_int_eq(pthread_create(&threads[i], NULL, allocate_until_told, NULL), 0);
	}
	for (int i = 0; i < 50; i++)
	{
		ck_assert(process_run(&(ProcessSpec){.argv = argv}, soon(), NULL, &end));
		ck_assert_int_eq(end.code, 0);
	}
	atomic_store(&stop_allocating, true);
	for (size_t i = 0; i < LENGTH_OF(threads); i++)
	{
		pthread_join(threads[i], NULL);
	}
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("proc");
	TCase *tcase = tcase_create("proc");

	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, exec_failure_is_found);
	tcase_add_test(tcase, lines_are_read_one_by_one);
	tcase_add_test(tcase, errors_are_read_in_their_place);
	tcase_add_test(tcase, programs_are_found);
	tcase_add_test(tcase, reading_keeps_its_deadline);
	tcase_add_test(tcase, awaiting_a_line_that_never_comes);
	tcase_add_test(tcase, a_program_that_never_stops_printing);
	tcase_add_test(tcase, writing_to_a_program_that_has_gone);
	tcase_add_test(tcase, kill_confirms_its_cause);
	tcase_add_test(tcase, a_held_thread_stands_until_the_kill);
	tcase_add_test(tcase, kill_of_an_ended_program_is_refused);
	tcase_add_test(tcase, ends_are_decoded);
	tcase_add_test(tcase, freeing_ends_the_program);
	tcase_add_test(tcase, run_collects_both_streams);
	tcase_add_test(tcase, run_does_not_wait_for_what_stays);
	tcase_add_test(tcase, run_past_its_deadline_is_killed);
	tcase_add_test(tcase, an_interrupt_ends_a_run_silently);
	tcase_add_test(tcase, a_group_of_its_own_does_not_hear_the_old_one);
	tcase_add_test(tcase, a_program_may_die_with_who_started_it);
	tcase_add_test(tcase, a_descriptor_tells_of_the_end);
	tcase_add_test(tcase, output_file_is_appended);
	tcase_add_test(tcase, groups_sessions_and_descriptors);
	tcase_add_test(tcase, signals_are_at_their_defaults);
	tcase_add_test(tcase, root_drops_to_an_account);
	tcase_add_test(tcase, orphans_are_inherited_and_listed);
	tcase_add_test(tcase, the_list_takes_only_unknown_zombies);
	tcase_add_test(tcase, a_forked_copy_leaves_the_program_alone);
	tcase_add_test(tcase, starting_beside_busy_threads);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
