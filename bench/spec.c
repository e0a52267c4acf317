/*
 * The scenario language beside PostgreSQL's own isolationtester: the same files on one server, whose settings are the
 * defaults and whose directory lies in memory, as that of ./run.sh spec does; in alternating pairs.
 *
 * Files: those of COUNTERPROOF_BENCH_SPECS, a folder, or the tests' own; isolationtester is started for each, as it takes no
 * more than one. What either program prints of them is compared: a fast wrong answer would be none.
 */
#include "bench.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "session.h"
#include "spec.h"

#define FILES_PAIRS 5
#define FILES_MS 600000
#define SKEW_PAIRS 7
#define SKEW_RUNS 4 /* of the 70 interleavings, in each pair */
#define SKEW_INTERLEAVINGS 70
#define STEP_MS 30000
#define WAITS 101
#define WAIT_BAR_US 2000
#define MEMORY_FEW 2000
#define MEMORY_MANY 20000
#define FOLDER_TEMPLATE "/tmp/cpb-spec-XXXXXX"

typedef struct
{
	const Bench *bench;
	Cluster *cluster;
	char *tester;    /* isolationtester */
	char *libraries; /* that it is linked to */
	char *program;   /* counterproof */
	char folder[sizeof(FOLDER_TEMPLATE)];
	Session *session;
	bool same; /* what both printed of the files */
} SpecBench;


/* --- programs --- */

/* Run to the end; exit codes 0 and 1 are both of them answers, of the files that are run. */
static bool
run_said(const SpecBench *spec, const char *const *argv, Text *output)
{
	char *libraries = string_format("LD_LIBRARY_PATH=%s", spec->libraries);
	const char *environment[] = {libraries, "PG_TEST_TIMEOUT_DEFAULT=60", "PGAPPNAME=isolation",
								 "PGOPTIONS=-c datestyle=Postgres,MDY -c intervalstyle=postgres_verbose "
								 "-c timezone=PST8PDT",
								 NULL};
	ProcessSpec process = {.argv = argv, .env = environment};
	ProcessEnd end;
	bool done = process_run(&process, deadline_in_ms(FILES_MS), output, &end) && end.how == ENDED_EXIT && end.code <= 1;

	if (!done)
	{
		report_error("%s failed: %.400s", argv[0], text_get(output));
	}
	free(libraries);
	return done;
}

/* Beside the server's binaries, where a package has PGXS. */
static bool
find_tester(SpecBench *spec)
{
	static const char *const places[] = {"../lib/postgresql/pgxs", "../lib/pgxs"};
	const char *bindir = spec->bench->kit.bindir;

	for (size_t i = 0; i < LENGTH_OF(places) && spec->tester == NULL; i++)
	{
		char *path = string_format("%s/%s/src/test/isolation/isolationtester", bindir, places[i]);

		if (access(path, X_OK) == 0)
		{
			spec->tester = path;
			continue;
		}
		free(path);
	}
	if (spec->tester == NULL)
	{
		report_error("bench spec needs PostgreSQL's own isolationtester, which is not beside the server's binaries: "
					 "%s/../lib/postgresql/pgxs/src/test/isolation/isolationtester",
					 bindir);
	}
	return spec->tester != NULL;
}

static bool
make_database(SpecBench *spec, const char *name, const char *template)
{
	char *drop = string_format("DROP DATABASE IF EXISTS %s WITH (FORCE)", name);
	char *create = string_format("CREATE DATABASE %s%s%s", name, template != NULL ? " TEMPLATE " : "",
								 template != NULL ? template : "");
	bool done = session_execute(spec->session, drop) && session_execute(spec->session, create);

	free(drop);
	free(create);
	return done;
}

/* A file of bench/specs, and what follows it, as a file of its own; the caller frees its path. NULL: reported. */
static char *
make_file(const SpecBench *spec, const char *name, const char *copy, const char *rest)
{
	char *from = string_format("%s/bench/specs/%s.spec", spec->bench->home, name);
	char *path = string_format("%s/%s.spec", spec->folder, copy);
	Text text = {0};
	bool done = file_read(from, &text);

	text_append(&text, "\n%s", rest);
	done = done && file_replace(path, text_get(&text));
	text_free(&text);
	free(from);
	if (!done)
	{
		free(path);
		return NULL;
	}
	return path;
}


/* --- a: files, in the compatible mode --- */

typedef struct
{
	const char **argv; /* of a run: the words before the files, and they */
	size_t words;
	char **paths;
	size_t count;
} Files;

/* isolationtester takes one file, from stdin. */
static const char one_by_one[] =
	"tester=$1 conninfo=$2; shift 2; "
	"for file; do echo \"== $file\"; \"$tester\" \"$conninfo\" <\"$file\" 2>&1; done; true";

/* Those that end by their limit's seconds, which no program can shorten, are left out. */
static bool
find_files(const SpecBench *spec, Files *files)
{
	const char *chosen = getenv("COUNTERPROOF_BENCH_SPECS");
	char *folder = chosen != NULL ? string_copy(chosen) : string_format("%s/tests/isolation/specs", spec->bench->home);
	size_t kept = 0;
	bool done = folder_files(folder, ".spec", &files->paths, &files->count);

	for (size_t i = 0; done && i < files->count; i++)
	{
		if (strstr(files->paths[i], "/timeout_") != NULL)
		{
			free(files->paths[i]);
			continue;
		}
		files->paths[kept++] = files->paths[i];
	}
	files->count = done ? kept : 0;
	if (done && kept == 0)
	{
		report_error("no *.spec in %s", folder);
		done = false;
	}
	free(folder);
	return done;
}

/* Words, then the files. */
static const char *const *
fill_argv(Files *files, const char *const *words)
{
	files->words = 0;
	while (words[files->words] != NULL)
	{
		files->words++;
	}
	files->argv = memory_grow(files->argv, sizeof(char *) * (files->words + files->count + 1));
	memcpy(files->argv, words, sizeof(char *) * files->words);
	memcpy(files->argv + files->words, files->paths, sizeof(char *) * files->count);
	files->argv[files->words + files->count] = NULL;
	return files->argv;
}

/* The exit code in the line above each file's output, which may follow a last line that has no end. */
static void
drop_codes(Text *text)
{
	char *to = text->data;
	bool head = false;

	for (const char *from = text->data; *from != '\0'; from++)
	{
		head = (head && *from != '\n') || strncmp(from, "== ", 3) == 0;
		if (head && strncmp(from, " (exit ", 7) == 0)
		{
			from += strcspn(from, "\n");
			head = false;
		}
		*to++ = *from;
	}
	*to = '\0';
	text->length = (size_t) (to - text->data);
}

static bool
measure_files(SpecBench *spec, Files *files, const char *jobs, double *seconds, Text *output)
{
	char *conninfo = string_copy(cluster_conninfo(spec->cluster, "isolation_regression"));
	const char *const theirs[] = {"/bin/sh", "-c", one_by_one, "sh", spec->tester, conninfo, NULL};
	const char *const ours[] = {spec->program, "isolationtester", "--jobs", jobs, conninfo, NULL};
	bool done = make_database(spec, "isolation_regression", NULL) && session_execute(spec->session, "CHECKPOINT");
	int64_t begin = time_now_ns();

	text_clear(output);
	done = done && run_said(spec, fill_argv(files, jobs == NULL ? theirs : ours), output);
	*seconds = bench_seconds_since(begin);
	if (done && jobs != NULL)
	{
		drop_codes(output);
	}
	free(conninfo);
	return done;
}

typedef struct
{
	double theirs[FILES_PAIRS], one[FILES_PAIRS], two[FILES_PAIRS];
	Text expected, output;
} FilesTimes;

static bool
measure_ours(SpecBench *spec, Files *files, const char *jobs, double *seconds, FilesTimes *times)
{
	bool done = measure_files(spec, files, jobs, seconds, &times->output);

	if (done && strcmp(text_get(&times->output), text_get(&times->expected)) != 0)
	{
		spec->same = false;
	}
	return done;
}

static bool
measure_files_pair(SpecBench *spec, Files *files, int pair, FilesTimes *times)
{
	return measure_files(spec, files, NULL, &times->theirs[pair], &times->expected) &&
		   measure_ours(spec, files, "1", &times->one[pair], times) &&
		   measure_ours(spec, files, "2", &times->two[pair], times);
}

static double
median_ratio(const double *theirs, const double *ours, int count)
{
	double ratios[PAIRS_MAX];

	for (int i = 0; i < count; i++)
	{
		ratios[i] = theirs[i] / ours[i];
	}
	return bench_median(ratios, count);
}

static bool
bench_files(SpecBench *spec)
{
	FilesTimes times = {.expected = {0}};
	Files files = {0};
	char what[64];
	bool done = find_files(spec, &files);

	spec->same = true;
	for (int i = 0; done && i < FILES_PAIRS; i++)
	{
		done = measure_files_pair(spec, &files, i, &times);
	}
	if (done)
	{
		snprintf(what, sizeof(what), "%zu files / isolationtester", files.count);
		bench_print_row(what, bench_median(times.one, FILES_PAIRS), bench_median(times.theirs, FILES_PAIRS), "s",
						median_ratio(times.theirs, times.one, FILES_PAIRS), "times as fast: at least 1.15");
		snprintf(what, sizeof(what), "%zu files, two jobs / isolationtester", files.count);
		bench_print_row(what, bench_median(times.two, FILES_PAIRS), bench_median(times.theirs, FILES_PAIRS), "s",
						median_ratio(times.theirs, times.two, FILES_PAIRS), "times as fast: at least 1.8");
		bench_say("  both print %s", spec->same ? "the same, each time" : "DIFFERENT things: the times mean nothing");
	}
	paths_free(files.paths, files.count);
	free(files.argv);
	text_free(&times.expected);
	text_free(&times.output);
	return done && spec->same;
}


/* --- b: exploring --- */

/* Theirs: the program from its start to its end, without what it takes to say its version. */
static bool
measure_tester(SpecBench *spec, const char *path, double *rate)
{
	char *conninfo = string_copy(cluster_conninfo(spec->cluster, "bench_skew"));
	const char *const argv[] = {"/bin/sh", "-c", "exec \"$1\" \"$2\" <\"$3\"", "sh", spec->tester, conninfo,
								path,      NULL};
	const char *const idle[] = {"/bin/sh", "-c", "exec \"$1\" -V <\"$2\"", "sh", spec->tester, path, NULL};
	double seconds = 0;
	bool done = make_database(spec, "bench_skew", "bench_prepared");

	for (int i = 0; done && i < SKEW_RUNS; i++)
	{
		Text output = {0};
		int64_t begin = time_now_ns();
		double startup;

		done = run_said(spec, idle, &output);
		startup = bench_seconds_since(begin);
		begin = time_now_ns();
		done = done && run_said(spec, argv, &output);
		seconds += bench_seconds_since(begin) - startup;
		text_free(&output);
	}
	*rate = SKEW_RUNS * SKEW_INTERLEAVINGS / seconds;
	free(conninfo);
	return done;
}

/* Ours: as ./run.sh spec says it, serial orders and all. Only databases are made before the clock runs. */
static bool
measure_explorer(SpecBench *spec, const SpecFile *file, int jobs, double *rate)
{
	char *server = string_copy(cluster_conninfo(spec->cluster, "postgres"));
	SpecJudging judging = {.server = server, .prepared = "bench_prepared", .jobs = jobs, .step_limit_ms = STEP_MS};
	double seconds = 0;
	bool done = true;

	for (int i = 0; done && i < SKEW_RUNS; i++)
	{
		SpecReport *report = spec_judge(file, &judging);
		const SpecCheck *serializable = spec_report_find(report, "serializable");

		done = spec_report_result(report) == RESULT_FAIL && report->run == SKEW_INTERLEAVINGS && serializable != NULL &&
			   serializable->held + serializable->violated == SKEW_INTERLEAVINGS && serializable->violated > 0;
		if (!done)
		{
			report_error("the exploration that was measured is wrong: %" PRIu64 " interleavings %s%s", report->run,
						 text_get(&report->broken), text_get(&report->unknown));
		}
		seconds += (double) report->duration_ns / 1e9;
		spec_report_free(report);
	}
	*rate = SKEW_RUNS * SKEW_INTERLEAVINGS / seconds;
	free(server);
	return done;
}

static bool
measure_skew(SpecBench *spec, const char *path, const SpecFile *file)
{
	double theirs[SKEW_PAIRS] = {0};
	double one[SKEW_PAIRS] = {0};
	double two[SKEW_PAIRS] = {0};

	for (int i = 0; i < SKEW_PAIRS; i++)
	{
		bool done = i % 2 == 0 ? measure_explorer(spec, file, 1, &one[i]) && measure_tester(spec, path, &theirs[i]) &&
									 measure_explorer(spec, file, 2, &two[i])
							   : measure_explorer(spec, file, 2, &two[i]) && measure_tester(spec, path, &theirs[i]) &&
									 measure_explorer(spec, file, 1, &one[i]);

		if (!done)
		{
			return false;
		}
	}
	bench_print_row("explored, judged / isolationtester", bench_median(one, SKEW_PAIRS),
					bench_median(theirs, SKEW_PAIRS), "1/s", median_ratio(one, theirs, SKEW_PAIRS), "at least 0.9");
	bench_print_row("explored by two jobs / isolationtester", bench_median(two, SKEW_PAIRS),
					bench_median(theirs, SKEW_PAIRS), "1/s", median_ratio(two, theirs, SKEW_PAIRS), "at least 1.6");
	return true;
}

static bool
bench_skew(SpecBench *spec)
{
	char *judged = string_format("%s/bench/specs/skew_judged.spec", spec->bench->home);
	Text rest = {0};
	char *plain = make_file(spec, "skew", "skew", "");
	char *whole = file_read(judged, &rest) ? make_file(spec, "skew", "skew_judged", text_get(&rest)) : NULL;
	SpecFile *file = whole != NULL ? spec_file_read(whole) : NULL;
	bool done = plain != NULL && file != NULL && measure_skew(spec, plain, file);

	spec_file_free(file);
	text_free(&rest);
	free(judged);
	free(plain);
	free(whole);
	return done;
}


/* --- c: waits --- */

/* The median of what the file's own steps say. */
static bool
read_waits(const char *output, double *median_us)
{
	double waits[WAITS];
	int count = 0;

	for (const char *found = output; count < WAITS && (found = strstr(found, "\nwaited ")) != NULL; found++)
	{
		waits[count++] = strtod(found + strlen("\nwaited "), NULL);
	}
	if (count != WAITS)
	{
		report_error("%d waits of %d were seen: %.400s", count, WAITS, output);
		return false;
	}
	*median_us = bench_median(waits, WAITS);
	return true;
}

static bool
measure_waits(SpecBench *spec, const char *program, const char *word, const char *path, double *median_us)
{
	char *conninfo = string_copy(cluster_conninfo(spec->cluster, "bench_skew"));
	const char *const argv[] = {
		"/bin/sh", "-c",    "file=$1; shift; exec \"$@\" <\"$file\"", "sh",
		path,      program, word != NULL ? word : conninfo,           word != NULL ? conninfo : NULL,
		NULL};
	Text output = {0};
	bool done = make_database(spec, "bench_skew", "bench_prepared") && run_said(spec, argv, &output) &&
				read_waits(text_get(&output), median_us);

	text_free(&output);
	free(conninfo);
	return done;
}

static bool
bench_waits(SpecBench *spec)
{
	Text permutations = {0};
	double ours = 0;
	double theirs = 0;
	char *path;
	bool done;

	for (int i = 0; i < WAITS; i++)
	{
		text_append(&permutations, "permutation ua ub see ca cb\n");
	}
	path = make_file(spec, "wait", "wait", text_get(&permutations));
	done = path != NULL && measure_waits(spec, spec->tester, NULL, path, &theirs) &&
		   measure_waits(spec, spec->program, "isolationtester", path, &ours);
	if (done)
	{
		bench_print_row("a wait, seen and gone on / 2 ms", ours, WAIT_BAR_US, "us", ours / WAIT_BAR_US, "at most 1");
		bench_say("  isolationtester needs %.0f us", theirs);
	}
	text_free(&permutations);
	free(path);
	return done;
}


/* --- d: memory --- */

static bool
measure_memory(SpecBench *spec, int interleavings, double *peak_mib, double *rate)
{
	char *evidence = string_format("%s/evidence", spec->folder);
	char *output_path = string_format("%s/output", spec->folder);
	char *explore = string_format("explore sample %d\n", interleavings);
	char *path = make_file(spec, "sample", "sample", explore);
	const char *argv[] = {spec->program, "spec", path, "--jobs", "2", "--evidence", evidence, NULL};
	Text output = {0};
	const char *found = NULL;
	bool done = path != NULL && file_replace(output_path, "") && bench_peak_of(argv, output_path, peak_mib) &&
				file_read(output_path, &output);

	if (done)
	{
		found = strstr(text_get(&output), " interleavings a second");
		while (found != NULL && found > text_get(&output) && found[-1] >= '0' && found[-1] <= '9')
		{
			found--;
		}
		done = found != NULL;
		*rate = done ? strtod(found, NULL) : 0;
	}
	if (!done)
	{
		report_error("%s spec did not tell its rate: %.400s", spec->program, text_get(&output));
	}
	text_free(&output);
	free(evidence);
	free(output_path);
	free(explore);
	free(path);
	return done;
}

static bool
bench_spec_memory(SpecBench *spec)
{
	double few = 0;
	double many = 0;
	double rate = 0;
	double bytes_each;

	if (!measure_memory(spec, MEMORY_FEW, &few, &rate) || !measure_memory(spec, MEMORY_MANY, &many, &rate))
	{
		return false;
	}
	bench_print_row("peak, 20,000 interleavings / 2,000", many, few, "MiB", many / few, "at most 1.1");
	bytes_each = many > few ? (many - few) * (1 << 20) / (MEMORY_MANY - MEMORY_FEW) : 0;
	bench_say("  %.0f interleavings a second; %.1f bytes more for each, so at most %.1f MiB for a million", rate,
			  bytes_each, bytes_each * 1e6 / (1 << 20));
	return true;
}


/* --- all --- */

static bool
prepare(SpecBench *spec)
{
	char *conninfo;
	char *sql = string_format("%s/bench/specs/skew.sql", spec->bench->home);
	Session *session = NULL;
	bool done = spec->session != NULL && make_database(spec, "bench_prepared", NULL);

	conninfo = string_copy(cluster_conninfo(spec->cluster, "bench_prepared"));
	session = done ? session_open(conninfo, "bench") : NULL;
	done = session != NULL && session_execute_file(session, sql);
	session_close(session);
	free(conninfo);
	free(sql);
	return done;
}

bool
bench_spec(const Bench *bench, Cluster *cluster)
{
	SpecBench spec = {.bench = bench, .cluster = cluster, .folder = FOLDER_TEMPLATE};
	bool done = mkdtemp(spec.folder) != NULL && find_tester(&spec);

	spec.libraries = string_format("%s/../lib", bench->kit.bindir);
	spec.program = string_format("%s/counterproof", bench->programs);
	spec.session = done ? session_open(cluster_conninfo(cluster, "postgres"), "bench") : NULL;
	done = done && prepare(&spec) && bench_files(&spec) && bench_skew(&spec) && bench_waits(&spec) &&
		   bench_spec_memory(&spec);
	session_close(spec.session);
	done = bench_run_command((const char *[]){"/bin/rm", "-rf", spec.folder, NULL}, NULL, NULL, NULL) && done;
	free(spec.tester);
	free(spec.libraries);
	free(spec.program);
	return done;
}
