#include "reaper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proc.h"
#include "rng.h"

#define SLOTS_MAX 256
#define PATH_BYTES 512
#define RANDOM_LETTERS 6
#define NAMES_MAX 100
#define QUIET_MS 50      /* a server that is on its way up shows itself within this */
#define PATIENCE_MS 5000 /* for an immediate shutdown */
#define GIVE_UP_MS 8000
#define REMOVE_MS 20000
#define ROUNDS_MAX 5
#define CMDLINE_BYTES 4096
#define ENDED_MAX 256

typedef enum
{
	SLOT_EMPTY = 0, /* free, or claimed and not yet written */
	SLOT_GROUP,
	SLOT_DIRECTORY
} SlotKind;

typedef struct
{
	_Atomic pid_t owner;   /* 0: free. Claimed by exchanging it, so that processes need no lock */
	_Atomic SlotKind kind; /* written last, so that the reaper never reads half an entry */
	pid_t group;
	pid_t session;  /* a group whose leader has gone is known by this */
	uint64_t birth; /* of the leader: its pid may have been given to someone else since */
	char directory[PATH_BYTES];
} Slot;

static Slot *table;
static pid_t reaper;
static pid_t runner;


/* --- the table --- */

static int
slot_claim(void)
{
	for (int i = 0; i < SLOTS_MAX; i++)
	{
		pid_t nobody = 0;

		if (atomic_compare_exchange_strong(&table[i].owner, &nobody, getpid()))
		{
			return i;
		}
	}
	report_error("the reaper's table is full: %d process groups and directories", SLOTS_MAX);
	return -1;
}

int
reaper_enter_group(pid_t group)
{
	ProcessStatus leader;
	int slot;

	if (table == NULL)
	{
		return 0;
	}
	if (!process_status(group, &leader) || leader.group != group)
	{
		report_error("pid %d leads no process group", (int) group);
		return -1;
	}
	slot = slot_claim();
	if (slot >= 0)
	{
		table[slot].group = group;
		table[slot].session = leader.session;
		table[slot].birth = leader.birth;
		atomic_store(&table[slot].kind, SLOT_GROUP);
	}
	return slot;
}

int
reaper_enter_directory(const char *directory)
{
	int slot;

	if (table == NULL)
	{
		return 0;
	}
	if (directory[0] != '/' || strlen(directory) >= PATH_BYTES)
	{
		report_error("the reaper takes absolute paths below %d bytes, not %s", PATH_BYTES, directory);
		return -1;
	}
	slot = slot_claim();
	if (slot >= 0)
	{
		memcpy(table[slot].directory, directory, strlen(directory) + 1);
		atomic_store(&table[slot].kind, SLOT_DIRECTORY);
	}
	return slot;
}

int
reaper_make_directory(char *path)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
	char *name = path + strlen(path) - RANDOM_LETTERS;

	for (int i = 0; i < NAMES_MAX; i++)
	{
		uint64_t drawn = rng_random_seed();
		int slot;

		for (int k = 0; k < RANDOM_LETTERS; k++, drawn /= sizeof(letters) - 1)
		{
			name[k] = letters[drawn % (sizeof(letters) - 1)];
		}
		if (access(path, F_OK) == 0)
		{
			continue; /* somebody else's is not even entered */
		}
		slot = reaper_enter_directory(path);
		if (slot < 0 || mkdir(path, 0700) == 0)
		{
			return slot;
		}
		reaper_leave(slot);
		if (errno != EEXIST)
		{
			break;
		}
	}
	report_error("cannot make the directory %s: %s", path, strerror(errno));
	return -1;
}

void
reaper_leave(int slot)
{
	if (table != NULL && slot >= 0 && slot < SLOTS_MAX)
	{
		atomic_store(&table[slot].kind, SLOT_EMPTY);
		atomic_store(&table[slot].owner, 0);
	}
}


/* --- the sweep --- */

/* A process that was told to go. */
typedef struct
{
	pid_t pid;
	uint64_t birth;
	Deadline patience;
} Asked;

typedef struct
{
	pid_t owners[SLOTS_MAX + 1]; /* whose slots */
	int owner_count;             /* 0: everyone's */
	Text *report;                /* NULL: nobody reads it */
	int ended;
	bool found; /* something lived in this pass */
	Asked asked[ENDED_MAX];
	int asked_count;
} Sweep;

static bool
slot_is_swept(const Sweep *sweep, const Slot *slot)
{
	pid_t owner = atomic_load(&slot->owner);
	bool swept = sweep->owner_count == 0;

	for (int i = 0; i < sweep->owner_count && !swept; i++)
	{
		swept = sweep->owners[i] == owner;
	}
	return swept;
}

static bool
slot_matches(const Sweep *sweep, const Slot *slot, SlotKind kind)
{
	return atomic_load(&slot->kind) == kind && slot_is_swept(sweep, slot);
}

/* The owner, and the leaders of the groups that it has entered: they may have died with it, and have entered more. */
static void
find_owners(Sweep *sweep, pid_t owner)
{
	sweep->owners[0] = owner;
	sweep->owner_count = 1;
	for (int i = 0; i < SLOTS_MAX; i++)
	{
		if (atomic_load(&table[i].kind) == SLOT_GROUP && atomic_load(&table[i].owner) == owner)
		{
			sweep->owners[sweep->owner_count++] = table[i].group;
		}
	}
}

/*
 * Is the group still the one that was entered? Its number stays taken while it has members, so a leader that has gone
 * is no doubt about them; a leader of another birth is, and so is another session.
 */
static bool
group_is_same(const Slot *slot, const ProcessStatus *member)
{
	ProcessStatus leader;

	if (member->group != slot->group || member->session != slot->session)
	{
		return false;
	}
	return !process_status(slot->group, &leader) || leader.birth == slot->birth;
}

static bool
in_listed_group(const Sweep *sweep, const ProcessStatus *status)
{
	for (int i = 0; i < SLOTS_MAX; i++)
	{
		if (slot_matches(sweep, &table[i], SLOT_GROUP) && group_is_same(&table[i], status))
		{
			return true;
		}
	}
	return false;
}

static bool
is_data_directory(const char *path, const char *directory, bool deeper)
{
	static const char name[] = "/data";
	size_t length = strlen(directory), whole = strlen(path);

	return strncmp(path, directory, length) == 0 && whole >= length + strlen(name) &&
		   strcmp(path + whole - strlen(name), name) == 0 &&
		   (deeper ? path[length] == '/' : whole == length + strlen(name));
}

/* Does an argument of this process name the data directory of a listed directory, or `deeper` one below it? */
static bool
names_listed_directory(const Sweep *sweep, pid_t pid, bool deeper)
{
	char arguments[CMDLINE_BYTES];
	size_t length = process_arguments(pid, arguments, sizeof(arguments));

	for (size_t at = 0; at < length; at += strlen(arguments + at) + 1)
	{
		for (int i = 0; i < SLOTS_MAX; i++)
		{
			if (slot_matches(sweep, &table[i], SLOT_DIRECTORY) &&
				is_data_directory(arguments + at, table[i].directory, deeper))
			{
				return true;
			}
		}
	}
	return false;
}

/* One signal of the first kind, and after a while SIGKILL. Told once, however many passes still see it. */
static void
end_process(Sweep *sweep, const char *what, pid_t pid, uint64_t birth, int signal_number)
{
	for (int i = 0; i < sweep->asked_count; i++)
	{
		if (sweep->asked[i].pid == pid && sweep->asked[i].birth == birth)
		{
			if (deadline_passed(sweep->asked[i].patience))
			{
				(void) kill(pid, SIGKILL);
			}
			return;
		}
	}
	sweep->ended++;
	if (sweep->report != NULL)
	{
		text_append(sweep->report, "%s: pid %d ", what, (int) pid);
		process_describe(pid, sweep->report);
		text_append(sweep->report, "\n");
	}
	(void) kill(pid, signal_number);
	(void) kill(pid, SIGCONT); /* a stopped one obeys nothing but SIGKILL */
	if (sweep->asked_count < ENDED_MAX)
	{
		sweep->asked[sweep->asked_count++] =
			(Asked){.pid = pid, .birth = birth, .patience = deadline_in_ms(PATIENCE_MS)};
	}
}

static void
sweep_visit(void *context, pid_t pid, const ProcessStatus *status)
{
	static const char *const helpers[] = {"pg_ctl", "initdb", "cp"};
	Sweep *sweep = context;

	if (status->state == 'Z' || status->state == 'X' || pid == getpid())
	{
		return;
	}
	if (in_listed_group(sweep, status))
	{
		sweep->found = true;
		end_process(sweep, "left in the process group", pid, status->birth, SIGKILL);
		return;
	}
	/*
	 * SIGKILL would leave the shared memory of a server behind for ever, or of the one that initdb runs; asked
	 * politely, they clean up and take milliseconds.
	 */
	if (strcmp(status->command, "postgres") == 0 && names_listed_directory(sweep, pid, false))
	{
		sweep->found = true;
		end_process(sweep, "left server", pid, status->birth, SIGQUIT);
		return;
	}
	/* Leaves nothing but files. One that programs of crash points share is in a session of its own, in the folder of a run. */
	if (strcmp(status->command, "redis-server") == 0 && names_listed_directory(sweep, pid, true))
	{
		sweep->found = true;
		end_process(sweep, "left Redis", pid, status->birth, SIGKILL);
		return;
	}
	for (size_t i = 0; i < LENGTH_OF(helpers); i++)
	{
		if (strcmp(status->command, helpers[i]) == 0 && names_listed_directory(sweep, pid, false))
		{
			sweep->found = true;
			end_process(sweep, "left at work on a server", pid, status->birth, SIGTERM);
		}
	}
}

static int
slots_listed(const Sweep *sweep, SlotKind kind)
{
	int count = 0;

	for (int i = 0; i < SLOTS_MAX; i++)
	{
		count += slot_matches(sweep, &table[i], kind) ? 1 : 0;
	}
	return count;
}

/* Pass after pass, until nothing lived for a while. */
static void
sweep_processes(Sweep *sweep)
{
	bool servers = slots_listed(sweep, SLOT_DIRECTORY) > 0;
	Deadline give_up = deadline_in_ms(GIVE_UP_MS);
	Deadline quiet = deadline_in_ms(QUIET_MS);
	bool ever = false;

	do
	{
		sweep->found = false;
		process_visit_all(sweep_visit, sweep);
		if (sweep->found)
		{
			ever = true;
			quiet = deadline_in_ms(QUIET_MS);
		}
		if (sweep->found || servers)
		{
			backoff_us(2000);
		}
	} while ((servers || ever) && !deadline_passed(quiet) && !deadline_passed(give_up));
}

static bool
remove_directories(const Sweep *sweep)
{
	bool done = true;

	for (int i = 0; i < SLOTS_MAX; i++)
	{
		if (slot_matches(sweep, &table[i], SLOT_DIRECTORY))
		{
			done = process_remove_directory(table[i].directory, deadline_in_ms(REMOVE_MS)) && done;
		}
	}
	return done;
}

static void
free_slots(const Sweep *sweep)
{
	for (int i = 0; i < SLOTS_MAX; i++)
	{
		if (slot_matches(sweep, &table[i], SLOT_DIRECTORY) && sweep->report != NULL &&
			access(table[i].directory, F_OK) == 0)
		{
			text_append(sweep->report, "left directory: %s\n", table[i].directory);
		}
		if (slot_is_swept(sweep, &table[i]))
		{
			reaper_leave(i);
		}
	}
}

/*
 * On a busy machine a program may come up later than any quiet time that one would wait for, and write into a directory
 * that is being removed: look again afterwards, and repeat.
 */
static void
sweep_all(Sweep *sweep)
{
	bool done = false;

	for (int round = 0; round < ROUNDS_MAX && !done; round++)
	{
		sweep_processes(sweep);
		done = remove_directories(sweep);
		if (slots_listed(sweep, SLOT_DIRECTORY) > 0)
		{
			sweep->found = false;
			process_visit_all(sweep_visit, sweep);
			done = done && !sweep->found;
		}
	}
	free_slots(sweep);
}

int
reaper_sweep(pid_t owner, Text *report)
{
	Sweep sweep = {.report = report};

	if (table == NULL)
	{
		return 0;
	}
	find_owners(&sweep, owner);
	if (slots_listed(&sweep, SLOT_GROUP) == 0 && slots_listed(&sweep, SLOT_DIRECTORY) == 0)
	{
		return 0;
	}
	sweep_all(&sweep);
	return sweep.ended;
}


/* --- the reaper itself --- */

/* Nothing of the runner is held but its pidfd: an open pipe of it would keep others waiting for its end. */
static int
reaper_detach(int runner_fd)
{
	static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};
	sigset_t none;
	int null_fd;

	(void) setsid();
	(void) prctl(PR_SET_NAME, "cp-reaper");
	for (size_t i = 0; i < LENGTH_OF(ignored); i++)
	{
		(void) signal(ignored[i], SIG_IGN);
	}
	(void) signal(SIGCHLD, SIG_DFL);
	sigemptyset(&none);
	(void) sigprocmask(SIG_SETMASK, &none, NULL);
	if (chdir("/") != 0)
	{
		_exit(EXIT_CODE_BROKEN);
	}
	/* to number 3, with all else closed or empty below and above it */
	runner_fd = fcntl(runner_fd, F_DUPFD_CLOEXEC, 3);
	null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (runner_fd < 0 || null_fd < 0)
	{
		_exit(EXIT_CODE_BROKEN);
	}
	for (int fd = 0; fd < 3; fd++)
	{
		(void) dup2(null_fd, fd);
	}
	if (runner_fd != 3)
	{
		(void) dup3(runner_fd, 3, O_CLOEXEC);
	}
	closefrom(4);
	return 3;
}

static void
reaper_run(int runner_fd)
{
	struct pollfd ending = {.events = POLLIN};
	Sweep everything = {0};

	ending.fd = reaper_detach(runner_fd);
	while (poll(&ending, 1, -1) < 0 && errno == EINTR)
	{
	}
	sweep_all(&everything);
	_exit(EXIT_CODE_PASS);
}

bool
reaper_start(void)
{
	int runner_fd = (int) syscall(SYS_pidfd_open, getpid(), 0);
	void *memory = mmap(NULL, sizeof(Slot) * SLOTS_MAX, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	bool done = false;

	if (runner_fd < 0 || memory == MAP_FAILED)
	{
		report_error("cannot prepare the reaper: %s", strerror(errno));
		goto out;
	}
	table = memory;
	runner = getpid();
	reaper = fork();
	if (reaper == 0)
	{
		reaper_run(runner_fd);
	}
	done = reaper > 0;
	if (!done)
	{
		report_error("cannot fork the reaper: %s", strerror(errno));
		reaper = 0;
		table = NULL;
	}
out:
	if (runner_fd >= 0)
	{
		close(runner_fd);
	}
	if (!done && memory != MAP_FAILED)
	{
		munmap(memory, sizeof(Slot) * SLOTS_MAX);
	}
	return done;
}

pid_t
reaper_pid(void)
{
	return reaper;
}

void
reaper_dismiss(void)
{
	if (reaper <= 0 || runner != getpid())
	{
		return;
	}
	(void) kill(reaper, SIGKILL);
	while (waitpid(reaper, NULL, 0) < 0 && errno == EINTR)
	{
	}
	munmap(table, sizeof(Slot) * SLOTS_MAX);
	table = NULL;
	reaper = 0;
}
