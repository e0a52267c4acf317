/* watch: check again and again, a line a round for each counter, and a file that Prometheus' node exporter reads. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "connect.h"
#include "report.h"

#define MS_PER_S 1000
#define ROUND_SLACK_MS 60000 /* a wait for a moment lasts no longer than this beyond it */

/* A round's numbers on their way to the file: one text for each metric, because its lines have to stand together. */
typedef struct
{
	Text checked, scanned, drifted, missing, orphans, not_checkable, lag;
} Metrics;

static void
metrics_free(Metrics *metrics)
{
	Text *texts[] = {&metrics->checked, &metrics->scanned,       &metrics->drifted, &metrics->missing,
					 &metrics->orphans, &metrics->not_checkable, &metrics->lag};

	for (size_t i = 0; i < LENGTH_OF(texts); i++)
	{
		text_free(texts[i]);
	}
}

/* `counterproof_counter_<metric>{counter="..."<labels>} value` */
static void
add(Text *text, const char *metric, const char *counter, const char *labels, int64_t value)
{
	text_append(text, "counterproof_counter_%s{counter=\"", metric);
	for (; *counter != '\0'; counter++)
	{
		text_append(text, "%s%c", *counter == '"' || *counter == '\\' ? "\\" : "", *counter);
	}
	text_append(text, "\"%s} %" PRId64 "\n", labels, value);
}

static void
metrics_add(Metrics *metrics, const Finding *finding)
{
	const char *name = finding->counter->spec->name;
	const CounterTotals *totals = &finding->totals;

	add(&metrics->checked, "checked", name, "", finding->obstacle == NULL);
	add(&metrics->scanned, "scanned", name, "", totals_scanned(totals));
	add(&metrics->drifted, "drifted", name, ",kind=\"over\"", totals->keys[CLASS_OVER]);
	add(&metrics->drifted, "drifted", name, ",kind=\"under\"", totals->keys[CLASS_UNDER]);
	add(&metrics->drifted, "drifted", name, ",kind=\"negative\"", totals->keys[CLASS_NEGATIVE]);
	add(&metrics->drifted, "drifted", name, ",kind=\"null\"", totals->keys[CLASS_NULL]);
	add(&metrics->missing, "missing", name, "", totals->keys[CLASS_MISSING]);
	add(&metrics->orphans, "orphans", name, "", totals->orphan_rows);
	add(&metrics->not_checkable, "not_checkable", name, "", totals_not_checkable(totals));
	/* An unknown lag has no sample: it is absent, not 0. */
	if (finding->lag == LAG_KNOWN)
	{
		add(&metrics->lag, "lag_events", name, "", finding->behind);
	}
}

static bool
metrics_write(const Metrics *metrics, ExitCode code, const char *path)
{
	const struct
	{
		const char *name, *help;
		const Text *text;
	} rows[] = {{"checked", "1 when the counter could be checked.", &metrics->checked},
				{"scanned", "Keys that ought to have a count.", &metrics->scanned},
				{"drifted", "Keys whose count is wrong.", &metrics->drifted},
				{"missing", "Keys without a row for their count.", &metrics->missing},
				{"orphans", "Source rows whose key is nowhere.", &metrics->orphans},
				{"not_checkable", "Keys of which nothing can be said.", &metrics->not_checkable},
				{"lag_events", "Events that have not taken effect; absent while unknown.", &metrics->lag}};
	Text content = {0};
	bool done;

	for (size_t i = 0; i < LENGTH_OF(rows); i++)
	{
		if (rows[i].text->length > 0)
		{
			text_append(&content, "# HELP counterproof_counter_%s %s\n# TYPE counterproof_counter_%s gauge\n%s",
						rows[i].name, rows[i].help, rows[i].name, text_get(rows[i].text));
		}
	}
	text_append(
		&content,
		"# HELP counterproof_counters_exit What check would exit with: 0 right, 1 drift, 3 no connection, 4 not checkable.\n"
		"# TYPE counterproof_counters_exit gauge\ncounterproof_counters_exit %d\n"
		"# HELP counterproof_counters_round_seconds When the last round ended.\n"
		"# TYPE counterproof_counters_round_seconds gauge\ncounterproof_counters_round_seconds %" PRId64 "\n",
		(int) code, (int64_t) time(NULL));
	done = file_replace(path, text_get(&content));
	text_free(&content);
	return done;
}

static void
print_round(const Finding *finding)
{
	char stamp[32];
	time_t now = time(NULL);
	struct tm utc;
	Text line = {0};

	strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
	report_append_totals(&line, &finding->totals, true);
	printf("%s  %s  %s", stamp, finding->counter->spec->name, text_get(&line));
	if (finding->lag == LAG_KNOWN)
	{
		printf("  Lag: %" PRId64, finding->behind);
	}
	else if (finding->lag != LAG_NONE)
	{
		printf("  Lag: %s", finding->lag == LAG_UNKNOWN ? "unknown" : "ahead of the log");
	}
	printf("%s%s\n", finding->obstacle != NULL ? "  " : "", finding->obstacle != NULL ? finding->obstacle : "");
	fflush(stdout);
	text_free(&line);
}

/* A connection for each round: a server that restarts between two is no reason to end. */
static ExitCode
look_once(const CounterConfig *config, const CountersRequest *request, Metrics *metrics)
{
	Session *session = counters_connect(request);
	ExitCode code = session != NULL ? EXIT_CODE_PASS : EXIT_CODE_BROKEN;

	for (unsigned i = 0; session != NULL && i < config->count && !session_is_lost(session); i++)
	{
		Finding *finding = counters_selected(request, &config->counters[i])
							   ? finding_make(session, &config->counters[i], request)
							   : NULL;

		if (finding != NULL)
		{
			print_round(finding);
			metrics_add(metrics, finding);
			code = counters_worse(code, finding_code(finding));
			finding_free(finding);
		}
		else if (counters_selected(request, &config->counters[i]))
		{
			code = counters_worse(code, EXIT_CODE_BROKEN);
		}
	}
	session_close(session);
	return code;
}

static ProbeAnswer
probe_due(void *context, Text *seen)
{
	const Deadline *due = context;

	text_append(seen, "waiting for the next round");
	return deadline_passed(*due) ? PROBE_DONE : PROBE_AGAIN;
}

/* false: an interrupt has come. */
static bool
wait_for_round(Deadline due, int every_s)
{
	return wait_until("the next round", deadline_in_ms((int64_t) every_s * MS_PER_S + ROUND_SLACK_MS), probe_due, &due);
}

static ExitCode
watch_rounds(const CounterConfig *config, const CountersRequest *request, const CountersWatch *watch)
{
	ExitCode code;
	Deadline due;

	do
	{
		Metrics metrics = {.checked = {0}};

		due = deadline_in_ms((int64_t) watch->every_s * MS_PER_S);
		code = look_once(config, request, &metrics);
		if (watch->metrics != NULL && !metrics_write(&metrics, code, watch->metrics))
		{
			code = counters_worse(code, EXIT_CODE_BROKEN);
		}
		metrics_free(&metrics);
		if (watch->until_drift && code == EXIT_CODE_FAIL)
		{
			return code;
		}
	} while (!interrupt_seen() && wait_for_round(due, watch->every_s));
	return EXIT_CODE_INTERRUPTED;
}

ExitCode
counters_watch(const CountersRequest *request, const CountersWatch *watch)
{
	CounterConfig *config = counters_read(request);
	ExitCode code = EXIT_CODE_USAGE;

	if (config != NULL)
	{
		interrupt_catch();
		code = watch_rounds(config, request, watch);
	}
	counter_config_free(config);
	return code;
}
