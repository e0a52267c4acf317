#include "history.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_BYTES_MAX 256 /* B and E records: eleven numbers of at most 20 digits */
#define FIELDS_MAX 11

/* An id is the writer's pid above a count of this process, so that ids are unique without asking anyone. */
#define ID_COUNT_BITS 32

struct History
{
	int fd;
	char *path;
	atomic_flag reported; /* of many workers on one full disk, one says so */
};

/* An open operation has no end on record, hence no word. */
static const char *const outcome_words[] = {[OP_OK] = "ok", [OP_FAILED] = "failed", [OP_UNKNOWN] = "unknown"};


/* --- writing --- */

History *
history_open(const char *path)
{
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
	History *history;

	if (fd < 0)
	{
		report_error("could not open history \"%s\": %s", path, strerror(errno));
		return NULL;
	}
	history = memory_get(sizeof(*history));
	history->fd = fd;
	history->path = string_copy(path);
	return history;
}

void
history_close(History *history)
{
	if (history == NULL)
	{
		return;
	}
	close(history->fd);
	free(history->path);
	free(history);
}

/* A second write for the rest of a record could land behind someone else's: a short write is an error, not a loop. */
static bool
append_record(History *history, const char *record, size_t length)
{
	ssize_t written;
	bool first;

	do
	{
		written = write(history->fd, record, length);
	} while (written < 0 && errno == EINTR);

	if (written == (ssize_t) length)
	{
		return true;
	}
	first = !atomic_flag_test_and_set(&history->reported);
	if (first && written < 0)
	{
		report_error("could not write to history \"%s\": %s", history->path, strerror(errno));
	}
	else if (first)
	{
		report_error("could not write to history \"%s\": %zd of %zu bytes written", history->path, written, length);
	}
	return false;
}

static int64_t
next_id(void)
{
	static atomic_uint_least32_t given;

	/* getpid() each time: a child forked after history_open() goes on with a copy of the count. */
	return ((int64_t) getpid() << ID_COUNT_BITS) | (int64_t) (uint32_t) (atomic_fetch_add(&given, 1) + 1);
}

bool
history_begin(History *history, HistoryOp *op)
{
	char line[LINE_BYTES_MAX];
	int length;

	op->id = next_id();
	op->begin_ns = time_now_ns();
	op->end_ns = INT64_MAX;
	op->outcome = OP_OPEN;
	length = snprintf(line, sizeof(line), "B\t%" PRId64 "\t%d\t%" PRId64 "\t%" PRId64 "\t%" PRId64 "\t%d\n", op->id,
					  op->worker, op->begin_ns, op->key[0], op->key[1], op->want);
	return append_record(history, line, (size_t) length);
}

bool
history_end(History *history, HistoryOp *op)
{
	char line[LINE_BYTES_MAX];
	int length;

	op->end_ns = time_now_ns();
	if (op->outcome != OP_OK && op->outcome != OP_FAILED && op->outcome != OP_UNKNOWN)
	{
		report_error("operation %" PRId64 " cannot end with outcome %d", op->id, (int) op->outcome);
		return false;
	}
	length = snprintf(line, sizeof(line),
					  "E\t%" PRId64 "\t%" PRId64 "\t%s\t%d\t%d\t%" PRId64 "\t%" PRId64 "\t%" PRIu64 "\t%s\n", op->id,
					  op->end_ns, outcome_words[op->outcome], op->changed, op->state, op->version, op->number, op->xid,
					  op->sqlstate[0] == '\0' ? "-" : op->sqlstate);
	return append_record(history, line, (size_t) length);
}

bool
history_delivery(History *history, int worker, const int64_t *numbers, size_t count)
{
	Text record = {0};
	bool ok;

	text_append(&record, "D\t%d\t%" PRId64 "\t", worker, time_now_ns());
	for (size_t i = 0; i < count; i++)
	{
		text_append(&record, "%s%" PRId64, i == 0 ? "" : ",", numbers[i]);
	}
	text_append(&record, "\n");
	ok = append_record(history, record.data, record.length);
	text_free(&record);
	return ok;
}

/* Tabs and newlines are the format's own; the backslash, so that it can be undone. */
static void
append_escaped(Text *text, const char *string)
{
	for (const char *c = string; *c != '\0'; c++)
	{
		switch (*c)
		{
			case '\t':
				text_append_bytes(text, "\\t", 2);
				break;
			case '\n':
				text_append_bytes(text, "\\n", 2);
				break;
			case '\r':
				text_append_bytes(text, "\\r", 2);
				break;
			case '\\':
				text_append_bytes(text, "\\\\", 2);
				break;
			default:
				text_append_bytes(text, c, 1);
				break;
		}
	}
}

bool
history_fault(History *history, const char *what)
{
	Text record = {0};
	bool ok;

	text_append(&record, "F\t%" PRId64 "\t", time_now_ns());
	append_escaped(&record, what);
	text_append(&record, "\n");
	ok = append_record(history, record.data, record.length);
	text_free(&record);
	return ok;
}


/* --- reading --- */

typedef struct
{
	HistoryOp op; /* of an end: id, end_ns and the answer */
	size_t line;
} Record;

typedef struct
{
	Record *items;
	size_t count, room;
} RecordList;

static Record *
list_add(RecordList *list, size_t line)
{
	Record *record;

	if (list->count == list->room)
	{
		list->room = list->room == 0 ? 256 : list->room * 2;
		list->items = memory_grow(list->items, list->room * sizeof(Record));
	}
	record = &list->items[list->count++];
	memset(record, 0, sizeof(*record));
	record->line = line;
	return record;
}

/* Cuts the line at its tabs. Answers the number of fields, FIELDS_MAX + 1 when there are more than fit. */
static int
split_fields(char *line, char *fields[FIELDS_MAX])
{
	int count = 0;

	for (char *rest = line; rest != NULL;)
	{
		char *field = strsep(&rest, "\t");

		if (count == FIELDS_MAX)
		{
			return FIELDS_MAX + 1;
		}
		fields[count++] = field;
	}
	return count;
}

static bool
parse_bool(const char *field, bool *value)
{
	int64_t number;

	if (!string_to_int64(field, 0, 1, &number))
	{
		return false;
	}
	*value = number == 1;
	return true;
}

static bool
parse_xid(const char *field, uint64_t *value)
{
	char *end;

	if (field[0] < '0' || field[0] > '9')
	{
		return false;
	}
	errno = 0;
	*value = strtoull(field, &end, 10);
	return errno == 0 && *end == '\0';
}

static bool
parse_outcome(const char *field, OpOutcome *outcome)
{
	for (int i = OP_OK; i <= OP_UNKNOWN; i++)
	{
		if (strcmp(field, outcome_words[i]) == 0)
		{
			*outcome = (OpOutcome) i;
			return true;
		}
	}
	return false;
}

static bool
parse_begin(char *fields[FIELDS_MAX], HistoryOp *op)
{
	int64_t worker;

	if (!string_to_int64(fields[1], 1, INT64_MAX, &op->id) ||
		!string_to_int64(fields[2], INT32_MIN, INT32_MAX, &worker) ||
		!string_to_int64(fields[3], 0, INT64_MAX, &op->begin_ns) ||
		!string_to_int64(fields[4], INT64_MIN, INT64_MAX, &op->key[0]) ||
		!string_to_int64(fields[5], INT64_MIN, INT64_MAX, &op->key[1]) || !parse_bool(fields[6], &op->want))
	{
		return false;
	}
	op->worker = (int) worker;
	op->end_ns = INT64_MAX;
	return true;
}

static bool
parse_end(char *fields[FIELDS_MAX], HistoryOp *op)
{
	const char *sqlstate = strcmp(fields[9], "-") == 0 ? "" : fields[9];

	if (strlen(sqlstate) >= sizeof(op->sqlstate))
	{
		return false;
	}
	memcpy(op->sqlstate, sqlstate, strlen(sqlstate) + 1);
	return string_to_int64(fields[1], 1, INT64_MAX, &op->id) && string_to_int64(fields[2], 0, INT64_MAX, &op->end_ns) &&
		   parse_outcome(fields[3], &op->outcome) && parse_bool(fields[4], &op->changed) &&
		   parse_bool(fields[5], &op->state) && string_to_int64(fields[6], INT64_MIN, INT64_MAX, &op->version) &&
		   string_to_int64(fields[7], INT64_MIN, INT64_MAX, &op->number) && parse_xid(fields[8], &op->xid);
}

/* Deliveries and faults are for people; their form is checked so that a torn line does not pass for one. */
static bool
parse_delivery(char *fields[FIELDS_MAX])
{
	int64_t ignored;

	return string_to_int64(fields[1], INT32_MIN, INT32_MAX, &ignored) &&
		   string_to_int64(fields[2], 0, INT64_MAX, &ignored) && strspn(fields[3], "-0123456789,") == strlen(fields[3]);
}

static bool
parse_line(char *line, size_t line_number, RecordList *begins, RecordList *ends)
{
	char *fields[FIELDS_MAX];
	int count = split_fields(line, fields);
	int64_t ignored;

	if (strcmp(fields[0], "B") == 0 && count == 7)
	{
		return parse_begin(fields, &list_add(begins, line_number)->op);
	}
	if (strcmp(fields[0], "E") == 0 && count == 10)
	{
		return parse_end(fields, &list_add(ends, line_number)->op);
	}
	if (strcmp(fields[0], "D") == 0 && count == 4)
	{
		return parse_delivery(fields);
	}
	return strcmp(fields[0], "F") == 0 && count == 3 && string_to_int64(fields[1], 0, INT64_MAX, &ignored);
}

static bool
parse_file(const char *path, char *data, size_t length, RecordList *begins, RecordList *ends)
{
	size_t line_number = 1;

	for (size_t at = 0; at < length; line_number++)
	{
		char *newline = memchr(data + at, '\n', length - at);

		if (newline == NULL)
		{
			report_error("history \"%s\" line %zu is torn: it has no end, the disk may have been full", path,
						 line_number);
			return false;
		}
		*newline = '\0';
		if (strlen(data + at) != (size_t) (newline - (data + at)) || !parse_line(data + at, line_number, begins, ends))
		{
			report_error("history \"%s\" line %zu cannot be read", path, line_number);
			return false;
		}
		at = (size_t) (newline - data) + 1;
	}
	return true;
}

static int
compare_id(const void *left, const void *right)
{
	const Record *a = left;
	const Record *b = right;

	if (a->op.id != b->op.id)
	{
		return a->op.id < b->op.id ? -1 : 1;
	}
	return a->line < b->line ? -1 : 1;
}

static int
compare_begin(const void *left, const void *right)
{
	const HistoryOp *a = left;
	const HistoryOp *b = right;

	if (a->begin_ns != b->begin_ns)
	{
		return a->begin_ns < b->begin_ns ? -1 : 1;
	}
	return a->id < b->id ? -1 : a->id > b->id;
}

static void
take_answer(HistoryOp *op, const HistoryOp *end)
{
	op->end_ns = end->end_ns;
	op->outcome = end->outcome;
	op->changed = end->changed;
	op->state = end->state;
	op->version = end->version;
	op->number = end->number;
	op->xid = end->xid;
	memcpy(op->sqlstate, end->sqlstate, sizeof(op->sqlstate));
}

/* Both lists by id; gives each beginning its end. */
static bool
join_ends(const char *path, RecordList *begins, RecordList *ends)
{
	size_t at = 0;

	for (size_t i = 0; i < begins->count; i++)
	{
		Record *begin = &begins->items[i];

		if (i > 0 && begins->items[i - 1].op.id == begin->op.id)
		{
			report_error("history \"%s\" line %zu begins operation %" PRId64 " again", path, begin->line, begin->op.id);
			return false;
		}
		if (at < ends->count && ends->items[at].op.id == begin->op.id)
		{
			const Record *end = &ends->items[at++];

			if (end->line < begin->line || end->op.end_ns < begin->op.begin_ns)
			{
				report_error("history \"%s\" line %zu ends operation %" PRId64 " before it began", path, end->line,
							 end->op.id);
				return false;
			}
			take_answer(&begin->op, &end->op);
		}
		/* An end left over here has a smaller id than the next beginning: nothing can claim it any more. */
		if (at < ends->count && (i + 1 == begins->count || ends->items[at].op.id < begins->items[i + 1].op.id))
		{
			break;
		}
	}
	if (at < ends->count)
	{
		report_error("history \"%s\" line %zu ends operation %" PRId64 ", which did not begin or had ended", path,
					 ends->items[at].line, ends->items[at].op.id);
		return false;
	}
	return true;
}

bool
history_read(const char *path, HistoryOp **ops, size_t *count)
{
	Text text = {0};
	RecordList begins = {0};
	RecordList ends = {0};
	bool ok = false;

	*ops = NULL;
	*count = 0;
	if (!file_read(path, &text) || !parse_file(path, text.data, text.length, &begins, &ends))
	{
		goto out;
	}
	if (begins.count > 0)
	{
		qsort(begins.items, begins.count, sizeof(Record), compare_id);
	}
	if (ends.count > 0)
	{
		qsort(ends.items, ends.count, sizeof(Record), compare_id);
	}
	if (!join_ends(path, &begins, &ends))
	{
		goto out;
	}

	*ops = memory_get((begins.count + 1) * sizeof(HistoryOp));
	for (size_t i = 0; i < begins.count; i++)
	{
		(*ops)[i] = begins.items[i].op;
	}
	qsort(*ops, begins.count, sizeof(HistoryOp), compare_begin);
	*count = begins.count;
	ok = true;
out:
	text_free(&text);
	free(begins.items);
	free(ends.items);
	return ok;
}
