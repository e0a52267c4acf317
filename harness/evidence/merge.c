/*
 * The evidence of parts as that of one run: what each part has on record of its cases goes through the same model as a run's,
 * so that what comes out is laid out as any other.
 */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "evidence_model.h"

#define SUMMARY_WORD "SUMMARY  "
#define TRACE_LABEL "=== "
#define TEXT_COLUMN 9 /* where the text of a line begins */

typedef struct
{
	const char *folder;
	json_t *head; /* of its results.json */
	Text trace;   /* all of its trace.shiviz */
} Part;

/* A case of a part. */
typedef struct
{
	const Part *part;
	json_t *entry;
	int order;      /* in which it was read */
	int repetition; /* in the whole */
} Piece;

typedef struct
{
	Part *parts;
	int part_count;
	Piece *pieces;
	int count;
	Part *reading;
} Collection;


/* --- reading the parts --- */

static bool
collect_head(void *context, const json_t *head)
{
	Collection *all = context;
	const char *suite = results_text(head, "suite");
	const char *first = results_text(all->parts[0].head, "suite");

	if (all->parts[0].head != NULL && strcmp(suite, first) != 0)
	{
		report_error("%s is of suite %s, %s of %s: only parts of one suite can be merged", all->reading->folder, suite,
					 all->parts[0].folder, first);
		return false;
	}
	all->reading->head = json_incref((json_t *) head);
	return true;
}

static bool
collect_entry(void *context, const json_t *head, const json_t *entry)
{
	Collection *all = context;

	(void) head;
	all->pieces = memory_grow(all->pieces, sizeof(Piece) * (size_t) (all->count + 1));
	all->pieces[all->count] =
		(Piece){.part = all->reading, .entry = json_incref((json_t *) entry), .order = all->count};
	all->count++;
	return true;
}

static int
compare_pieces(const void *a, const void *b)
{
	const Piece *x = a, *y = b;
	int by_id = strverscmp(results_text(x->entry, "id"), results_text(y->entry, "id"));

	return by_id != 0 ? by_id : x->order - y->order;
}

static int
compare_places(const void *a, const void *b)
{
	const Piece *x = a, *y = b;

	return x->repetition != y->repetition ? x->repetition - y->repetition : compare_pieces(a, b);
}

/* A case that is in several parts becomes as many repetitions, in the order of the parts. */
static void
order_pieces(Piece *pieces, int count)
{
	qsort(pieces, (size_t) count, sizeof(Piece), compare_pieces);
	for (int i = 0; i < count; i++)
	{
		bool again = i > 0 && strcmp(results_text(pieces[i].entry, "id"), results_text(pieces[i - 1].entry, "id")) == 0;

		pieces[i].repetition = again ? pieces[i - 1].repetition + 1 : 1;
	}
	qsort(pieces, (size_t) count, sizeof(Piece), compare_places);
}

static bool
collect_part(Collection *all, const char *folder)
{
	static const ResultsVisit visit = {collect_head, collect_entry};
	char *trace = string_format("%s/" EVIDENCE_TRACE, folder);
	bool done = true;

	for (int i = 0; i < all->part_count && done; i++)
	{
		done = strcmp(folder, all->parts[i].folder) != 0;
	}
	if (!done)
	{
		report_error("%s is named twice: its cases would be counted twice", folder);
	}
	all->reading = &all->parts[all->part_count++];
	all->reading->folder = folder;
	done = done && evidence_scan(folder, false, &visit, all) &&
		   (access(trace, F_OK) != 0 || file_read(trace, &all->reading->trace));
	free(trace);
	return done;
}

static bool
collect_all(Collection *all, const char *const *folders, int count)
{
	bool done = true;

	all->parts = memory_get(sizeof(Part) * (size_t) count);
	for (int i = 0; i < count && done; i++)
	{
		done = collect_part(all, folders[i]);
	}
	if (done && all->count == 0)
	{
		report_error("there is no case in what is to be merged");
		done = false;
	}
	if (done)
	{
		order_pieces(all->pieces, all->count);
	}
	return done;
}

static void
collection_free(Collection *all)
{
	for (int i = 0; i < all->count; i++)
	{
		json_decref(all->pieces[i].entry);
	}
	for (int i = 0; i < all->part_count; i++)
	{
		json_decref(all->parts[i].head);
		text_free(&all->parts[i].trace);
	}
	free(all->parts);
	free(all->pieces);
}


/* --- what is said of the whole --- */

/* Each value that the parts have for it, in their order; neighbours that are equal once. The caller frees. */
static char *
values_of(const Collection *all, const char *name)
{
	Text values = {0};
	const char *last = "";

	for (int i = 0; i < all->part_count; i++)
	{
		const char *value = results_text(json_object_get(all->parts[i].head, "environment"), name);

		if (strcmp(value, last) != 0)
		{
			text_append(&values, "%s%s", values.length > 0 ? "; " : "", value);
		}
		last = value;
	}
	return values.data != NULL ? values.data : string_copy("");
}

static bool
add_environment(Evidence *evidence, const Collection *all)
{
	const char *name;
	json_t *value;
	bool done = true;

	json_object_foreach(json_object_get(all->parts[0].head, "environment"), name, value)
	{
		char *values = values_of(all, name);
		bool same = strcmp(name, "commit") == 0 || strcmp(name, "server_version") == 0;

		if (same && strcmp(values, json_string_value(value)) != 0)
		{
			report_warning("the parts differ in %s: %s", name, values);
		}
		done = done && evidence_add_settings(evidence, &(EvidenceSetting){name, values}, 1);
		free(values);
	}
	return done;
}


/* --- conclusions that are not sums over checks --- */

typedef struct
{
	Text names[16];
	Text values[16];
	int count;
} Fields;

/* Numbers are added; a word stands once, or with the others that parts have said. */
static void
add_field(Fields *fields, const char *name, size_t name_length, const char *value)
{
	char *end_a, *end_b;
	int64_t a, b;
	int i = 0;

	while (i < fields->count &&
		   (fields->names[i].length != name_length || memcmp(text_get(&fields->names[i]), name, name_length) != 0))
	{
		i++;
	}
	if (i == fields->count)
	{
		if (i < (int) LENGTH_OF(fields->names))
		{
			text_append(&fields->names[i], "%.*s", (int) name_length, name);
			text_append(&fields->values[i], "%s", value);
			fields->count++;
		}
		return;
	}
	a = strtoll(text_get(&fields->values[i]), &end_a, 10);
	b = strtoll(value, &end_b, 10);
	if (*end_a == '\0' && *end_b == '\0' && strcmp(text_get(&fields->names[i]), "seed") != 0)
	{
		text_clear(&fields->values[i]);
		text_append(&fields->values[i], "%lld", (long long) (a + b));
	}
	else if (strcmp(text_get(&fields->values[i]), value) != 0)
	{
		text_append(&fields->values[i], ",%s", value);
	}
}

/* The words of a part's SUMMARY, where they are not the sums that every run has. false: it has no such line. */
static bool
add_conclusion(const char *folder, Fields *fields)
{
	char *path = string_format("%s/" EVIDENCE_OUTPUT, folder);
	Text output = {0};
	char *line = file_read(path, &output) ? strstr(text_get(&output), "\n" SUMMARY_WORD) : NULL;
	char *rest = line != NULL ? line + strlen("\n" SUMMARY_WORD) : NULL;
	bool sums = line != NULL && strncmp(rest, "passed=", strlen("passed=")) == 0;
	char *word;

	if (line == NULL)
	{
		report_error("%s has no SUMMARY: a part that did not end cannot be merged", path);
	}
	while (!sums && (word = strsep(&rest, " \n")) != NULL)
	{
		char *equals = strchr(word, '=');

		if (equals != NULL)
		{
			add_field(fields, word, (size_t) (equals - word), equals + 1);
		}
	}
	free(path);
	text_free(&output);
	return line != NULL;
}

static bool
conclude(Evidence *evidence, const Collection *all)
{
	Fields fields = {.count = 0};
	Text conclusion = {0};
	bool done = true;

	for (int i = 0; i < all->part_count && done; i++)
	{
		done = add_conclusion(all->parts[i].folder, &fields);
	}
	for (int i = 0; i < fields.count; i++)
	{
		text_append(&conclusion, "%s%s=%s", i > 0 ? " " : "", text_get(&fields.names[i]), text_get(&fields.values[i]));
		text_free(&fields.names[i]);
		text_free(&fields.values[i]);
	}
	if (conclusion.length > 0)
	{
		evidence_conclude(evidence, text_get(&conclusion));
	}
	text_free(&conclusion);
	return done;
}


/* --- cases --- */

/* In its part. */
static int
repetition_of(const Piece *piece)
{
	return (int) json_integer_value(json_object_get(piece->entry, "repetition"));
}

/* Its execution, of those in the part's trace. */
static void
take_execution(const Piece *piece, Text *execution)
{
	Text label = {0};
	const char *begin, *end;

	text_append(&label, "\n");
	trace_label(results_text(piece->entry, "id"), repetition_of(piece), &label);
	begin = strstr(text_get(&piece->part->trace), text_get(&label));
	if (begin != NULL)
	{
		begin += label.length;
		end = strstr(begin, "\n" TRACE_LABEL);
		text_append_bytes(execution, begin, end != NULL ? (size_t) (end + 1 - begin) : strlen(begin));
	}
	text_free(&label);
}

static int
is_file(const struct dirent *entry)
{
	return entry->d_type == DT_REG;
}

static bool
copy_file(Evidence *evidence, const char *from, const char *folder, const char *name)
{
	char *source = string_format("%s/%s", from, name);
	OutputFile file = {.fd = -1};
	bool done = output_open(evidence, &file, folder, name) && output_copy(evidence, &file, source);

	output_close(&file);
	free(file.path);
	free(source);
	return done;
}

/* Its history, logs and offset files, where the part has kept them. */
static bool
take_files(Evidence *evidence, int index, const Piece *piece)
{
	char *name = case_folder_name(results_text(piece->entry, "id"), repetition_of(piece));
	char *from = string_format("%s/%s", piece->part->folder, name);
	struct dirent **files = NULL;
	int count = scandir(from, &files, is_file, alphasort);
	bool done = true;

	for (int i = 0; i < count; i++)
	{
		const char *folder = done ? evidence_case_folder(evidence, index) : NULL;

		done = folder != NULL && copy_file(evidence, from, folder, files[i]->d_name);
		free(files[i]);
	}
	free(files);
	free(from);
	free(name);
	return done;
}

/* The lines between the claim and the result, which are said anew. */
static void
take_lines(LiveCase *live, const json_t *lines)
{
	for (size_t i = 1; i + 1 < json_array_size(lines); i++)
	{
		const char *line = json_string_value(json_array_get(lines, i));
		char *word = string_format("%.*s", (int) strcspn(line, " "), line);

		stream_line(live, word, strlen(line) > TEXT_COLUMN ? line + TEXT_COLUMN : "");
		free(word);
	}
}

static bool
take_case(Evidence *evidence, int index, const Piece *piece)
{
	const json_t *entry = piece->entry;
	LiveCase *live;

	evidence_case_begin(evidence, index);
	live = evidence->cases[index].live;
	take_lines(live, json_object_get(entry, "lines"));
	json_array_extend(live->checks, json_object_get(entry, "checks"));
	json_array_extend(live->faults, json_object_get(entry, "faults"));
	json_array_extend(live->series, json_object_get(entry, "series"));
	live->passed = (int) json_integer_value(json_object_get(entry, "passed"));
	live->failed = (int) json_integer_value(json_object_get(entry, "failed"));
	take_execution(piece, &live->trace);
	evidence_case_retries(evidence, index, json_integer_value(json_object_get(entry, "retries_40001")),
						  json_integer_value(json_object_get(entry, "retries_40P01")));
	evidence_case_end(evidence, index, results_result(results_text(entry, "result")), results_text(entry, "reason"),
					  json_integer_value(json_object_get(entry, "duration_ms")));
	return take_files(evidence, index, piece);
}


/* --- the whole --- */

static EvidenceCase *
cases_of(const Collection *all)
{
	EvidenceCase *cases = memory_get(sizeof(EvidenceCase) * (size_t) all->count);

	for (int i = 0; i < all->count; i++)
	{
		const json_t *entry = all->pieces[i].entry;
		cases[i] = (EvidenceCase){.suite = results_text(all->parts[0].head, "suite"),
								  .id = results_text(entry, "id"),
								  .title = results_text(entry, "title"),
								  .claim = results_text(entry, "claim"),
								  .kind = results_text(entry, "kind"),
								  .repetition = all->pieces[i].repetition,
								  .guarantee = results_text(entry, "guarantee"),
								  .observed = results_text(entry, "observed"),
								  .method = results_text(entry, "method"),
								  .expect = results_text(entry, "expect"),
								  .not_shown = results_text(entry, "not_shown")};
	}
	return cases;
}

static bool
write_whole(const char *root, const Collection *all, EvidenceTotals *totals, Text *summary)
{
	char *replay = values_of(all, "replay");
	EvidenceCase *cases = cases_of(all);
	EvidenceRun run = {.root = root,
					   .seed = (uint64_t) json_integer_value(json_object_get(all->parts[0].head, "seed")),
					   .cases = cases,
					   .case_count = all->count,
					   .replay = replay};
	Evidence *evidence = evidence_open(&run);
	bool done = evidence != NULL && add_environment(evidence, all) && conclude(evidence, all);

	for (int i = 0; i < all->count && done; i++)
	{
		done = take_case(evidence, i, &all->pieces[i]);
	}
	done = done && evidence_close(evidence, NULL, false);
	if (done)
	{
		*totals = evidence_totals(evidence);
		evidence_summary(evidence, summary);
	}
	evidence_free(evidence);
	free(cases);
	free(replay);
	return done;
}

bool
evidence_merge(const char *root, const char *const *folders, int count, EvidenceTotals *totals, Text *summary)
{
	Collection all = {.parts = NULL};
	bool done;

	done = collect_all(&all, folders, count) && write_whole(root, &all, totals, summary);
	collection_free(&all);
	return done;
}
