#include "program.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "../cluster.h"
#include "../reaper.h"

#define END_MS 5000 /* SIGKILL is obeyed at once */

static Process *
launch(const CrashCommand *command, const Surroundings *around)
{
	const char *path = getenv("PATH");
	char *env[] = {string_format("PGHOST=%s", around->host),
				   string_format("PGPORT=%d", around->port),
				   string_format("PGDATABASE=%s", around->database),
				   string_copy("PGUSER=" CLUSTER_USER),
				   string_format("PATH=%s:%s", around->programs, path != NULL ? path : "/usr/bin:/bin"),
				   string_format("CRASHPOINTS_DIR=%s", around->directory),
				   NULL};
	ProcessSpec spec = {.argv = command->argv,
						.env = (const char *const *) env,
						.directory = around->work,
						.output_file = around->output,
						.own_group = true,
						.dies_with_us = true};
	Process *process = process_start(&spec);

	for (size_t i = 0; env[i] != NULL; i++)
	{
		free(env[i]);
	}
	return process;
}

bool
program_start(Program *program, const CrashCommand *command, const Surroundings *around)
{
	*program = (Program){.process = launch(command, around), .descriptor = -1, .slot = -1};
	if (program->process == NULL)
	{
		return false;
	}
	/* one that has ended already is a zombie of ours, and still leads its group */
	program->slot = reaper_enter_group(process_pid(program->process));
	program->descriptor = process_descriptor(program->process);
	if (program->slot < 0 || program->descriptor < 0)
	{
		(void) program_end(program);
		return false;
	}
	return true;
}

bool
program_runs(const Program *program)
{
	return program->process != NULL;
}

void
program_signal(const Program *program, int signal_number)
{
	(void) kill(-process_pid(program->process), signal_number);
}

/* Not reaped before its group is killed: until then the group's number is not given to others. */
bool
program_end(Program *program)
{
	bool done;

	if (program->process == NULL)
	{
		return true;
	}
	interrupt_defer();
	program_signal(program, SIGKILL);
	done = process_wait(program->process, deadline_in_ms(END_MS), &program->end);
	interrupt_resume();
	if (program->descriptor >= 0)
	{
		close(program->descriptor);
	}
	reaper_leave(program->slot);
	process_free(program->process);
	program->process = NULL;
	return done;
}

bool
program_succeeded(const Program *program)
{
	return program->process == NULL && program->end.how == ENDED_EXIT && program->end.code == 0;
}
