#include "lab.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ERROR_AT " at " /* in an outcome: "40001 at w2" */


/* --- telling --- */

static void
note_lines(Scene *scene, const char *lines)
{
	while (*lines != '\0')
	{
		int length = (int) strcspn(lines, "\n");

		note(scene, "    %.*s", length, lines);
		lines += length + (lines[length] == '\n' ? 1 : 0);
	}
}

/* What one check found in its shortest violation. */
static void
note_violation(Scene *scene, const SpecCheck *check)
{
	note(scene, "shortest: %s", text_get(&check->order));
	note_lines(scene, text_get(&check->detail));
	note_lines(scene, text_get(&check->story));
}

void
note_spec(Scene *scene, const char *file, const SpecReport *report)
{
	note(scene,
		 "%s: %" PRIu64 " interleavings, %" PRIu64 " times a step waited, %" PRId64 " retries after 40001, %" PRId64
		 " after 40P01",
		 file, report->run, report->waits, report->retries_40001, report->retries_40p01);
	if (report->false_conflicts > 0)
	{
		note(scene,
			 "    %" PRId64 " of the retries after 40001 met just what had been refused: false conflict possible: "
			 "sequential scan / page lock",
			 report->false_conflicts);
	}
	for (int i = 0; i < report->outcome_count; i++)
	{
		note(scene, "    %" PRIu64 " x %s", report->outcomes[i].count, report->outcomes[i].text);
	}
}


/* --- judging --- */

static SpecFile *
read_spec(Scene *scene, const char *file)
{
	char *inside = string_format("isolation/%s", file);
	SpecFile *spec = spec_file_read(scene_sql(scene, inside));

	free(inside);
	return spec;
}

static SpecReport *
judge(Scene *scene, const char *file, const SpecJudging *where)
{
	SpecFile *spec = read_spec(scene, file);
	SpecJudging judging = *where;
	SpecReport *report;

	require(scene, spec != NULL);
	judging.jobs = 1;
	judging.seed = scene_seed(scene);
	judging.step_limit_ms = SPEC_STEP_LIMIT_MS;
	report = spec_judge(spec, &judging);
	spec_file_free(spec);
	return report;
}

SpecReport *
judge_spec_in_place(Scene *scene, const char *file)
{
	return judge(scene, file, &(SpecJudging){.server = scene_conninfo(scene), .in_place = true});
}

void
check_unreadable(Scene *scene, const char *file, const char *words)
{
	char reason[512] = "read, and not refused";
	SpecFile *spec;
	const char *found;

	notice_expect_errors(true);
	spec = read_spec(scene, file);
	notice_expect_errors(false);
	if (spec == NULL)
	{
		notice_last_error(reason, sizeof(reason));
	}
	spec_file_free(spec);
	found = strstr(reason, file);
	check_text(scene, found != NULL ? found : reason, words, "%s is refused before anything runs", file);
}

SpecReport *
judge_spec(Scene *scene, const char *file, const char *prepared)
{
	SpecReport *report = judge(scene, file, &(SpecJudging){.server = scene_server(scene), .prepared = prepared});

	note_spec(scene, file, report);
	if (report->broken.length > 0 || report->refused.length > 0)
	{
		scene_broken(scene, "%s: %s", file, text_get(report->broken.length > 0 ? &report->broken : &report->refused));
	}
	if (report->unknown.length > 0)
	{
		scene_unknown(scene, "%s: %s", file, text_get(&report->unknown));
	}
	return report;
}

static const SpecCheck *
find(Scene *scene, const SpecReport *report, const char *what)
{
	const SpecCheck *check = spec_report_find(report, what);

	if (check == NULL)
	{
		scene_broken(scene, "the file has no check \"%s\"", what);
	}
	return check;
}

void
check_always(Scene *scene, const SpecReport *report, const char *what)
{
	const SpecCheck *check = find(scene, report, what);

	if (!CHECK_EQ(scene, check->held, report->run, "%s: interleavings in which it holds", what))
	{
		note_violation(scene, check);
	}
}

void
check_found(Scene *scene, const SpecReport *report, const char *what, const char *order)
{
	const SpecCheck *check = find(scene, report, what);
	bool found = check->violated > 0;

	if (order != NULL)
	{
		check_text(scene, found ? text_get(&check->order) : "none", order, "%s: shortest interleaving that breaks it",
				   what);
	}
	else
	{
		CHECK(scene, found, "%s: an interleaving that breaks it is found", what);
	}
	if (found)
	{
		note_violation(scene, check);
	}
}

void
check_violations(Scene *scene, const SpecReport *report, const char *what, int64_t violated)
{
	CHECK_EQ(scene, find(scene, report, what)->violated, violated, "%s: interleavings that break it, of %" PRIu64, what,
			 report->run);
}

void
check_cost(Scene *scene, const SpecReport *report, int64_t waits, int64_t retries_40001)
{
	char *cost = string_format("waits=%" PRIu64 " retries_40001=%" PRId64 " retries_40P01=%" PRId64, report->waits,
							   report->retries_40001, report->retries_40p01);
	char *expected = string_format("waits=%" PRId64 " retries_40001=%" PRId64 " retries_40P01=0", waits, retries_40001);

	check_text(scene, cost, expected, "what the %" PRIu64 " interleavings cost", report->run);
	free(cost);
	free(expected);
}

void
check_broken(Scene *scene, const SpecReport *report, const char *what, int64_t interleavings, const char *order,
			 const char *detail)
{
	const SpecCheck *check = find(scene, report, what);

	check_found(scene, report, what, order);
	check_violations(scene, report, what, interleavings);
	check_text(scene, text_get(&check->detail), detail, "%s: what is wrong in the shortest", what);
}

void
check_all_hold(Scene *scene, const SpecReport *report)
{
	for (int i = 0; i < report->check_count; i++)
	{
		check_always(scene, report, report->checks[i].what);
	}
}

void
check_deadlocks(Scene *scene, const SpecReport *report, const char *what)
{
	int64_t deadlocked = outcomes_with(report, "40P01 at ");

	check_at_least(scene, deadlocked, 1, "interleavings with a deadlock");
	CHECK_EQ(scene,
			 outcomes_with(report, "a committed; b 40P01 at ") + outcomes_with(report, "in attempt 2; b committed"),
			 deadlocked, "of these, interleavings in which one of the two is ended, and once");
	CHECK_EQ(scene, report->retries_40p01, deadlocked, "%s run again after 40P01", what);
}

void
judge_clean(Scene *scene, const char *file, const char *prepared, int64_t interleavings)
{
	SpecReport *report = judge_spec(scene, file, prepared);

	CHECK_EQ(scene, report->run, interleavings, "%s: interleavings", file);
	check_all_hold(scene, report);
	CHECK_EQ(scene, outcomes_with(report, ERROR_AT), 0, "interleavings in which a step ends in an error");
	spec_report_free(report);
}

int64_t
outcomes_with(const SpecReport *report, const char *part)
{
	int64_t count = 0;

	for (int i = 0; i < report->outcome_count; i++)
	{
		count += strstr(report->outcomes[i].text, part) != NULL ? (int64_t) report->outcomes[i].count : 0;
	}
	return count;
}
