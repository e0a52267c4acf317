#include "lab.h"

#include <signal.h>
#include <unistd.h>

#include "environment.h"
#include "proc.h"
#include "progress.h"
#include "reaper.h"

ExitCode
lab_conclude(const RunnerConfig *config, Evidence *evidence, bool done)
{
	EvidenceTotals totals;
	bool complete;
	bool closed;

	interrupt_defer();
	complete = !interrupt_seen() && !evidence_failed(evidence);
	closed = evidence_close(evidence, NULL, !complete);
	totals = evidence_totals(evidence);
	progress_end(config, evidence, complete);
	interrupt_resume();
	if (interrupt_seen() && !complete)
	{
		return EXIT_CODE_INTERRUPTED;
	}
	if (totals.failed > 0)
	{
		return EXIT_CODE_FAIL;
	}
	return complete && closed && done ? runner_exit_code(&totals) : EXIT_CODE_BROKEN;
}

/* More jobs than processors wait for each other, and their deadlines with them. */
static double
crowding(int jobs)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);

	return processors > 0 && jobs > processors ? (double) jobs / (double) processors : 1;
}

ExitCode
lab_run(const RunnerConfig *config, const EvidenceCase *cases, int case_count, int64_t memory_bytes, LabBody body,
		void *context)
{
	EvidenceRun run = {.root = config->evidence_root,
					   .seed = config->seed,
					   .cases = cases,
					   .case_count = case_count,
					   .replay = config->replay,
					   .keep = config->keep};
	ServerKit kit = {.major = config->pg_major};
	ExitCode code;
	Evidence *evidence = NULL;

	environment_scrub();
	time_set_scale(config->scale * crowding(config->jobs));
	interrupt_catch();
	(void) signal(SIGPIPE, SIG_IGN);
	if (!process_adopt_orphans() || !reaper_start())
	{
		return EXIT_CODE_BROKEN;
	}
	if (config->server != NULL || server_kit_find(&kit, config->pg_bin, config->pg_major))
	{
		if (config->server == NULL)
		{
			kit.settings = config->server_settings;
			server_kit_prefer_memory(&kit, memory_bytes);
		}
		evidence = evidence_open(&run);
	}
	code = evidence != NULL   ? body(context, &kit, evidence)
		   : interrupt_seen() ? EXIT_CODE_INTERRUPTED
							  : EXIT_CODE_BROKEN;
	evidence_free(evidence);
	reaper_dismiss();
	return code;
}
