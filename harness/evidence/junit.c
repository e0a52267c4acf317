/*
 * junit.xml for Jenkins, GitLab and the GitHub reporters, made from results.json alone.
 *
 * The counts in a testsuite's attributes are trusted by some readers and so come first; messages stand in the attribute
 * and again in the first line of the body, because GitLab shows the body only; names are unique, because GitLab drops
 * the second of a name.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libxml/xmlwriter.h>

#include "evidence_model.h"

typedef struct
{
	Evidence *evidence;
	OutputFile file;
} Sink;

static int
sink_write(void *context, const char *bytes, int length)
{
	Sink *sink = context;

	return output_write(sink->evidence, &sink->file, bytes, (size_t) length) ? length : -1;
}

/* A failed write has been reported by output_write(), in one line. */
static void
keep_silent(void *context, xmlErrorPtr error)
{
	(void) context;
	(void) error;
}

static void
attribute(xmlTextWriterPtr writer, const char *name, const char *value)
{
	xmlTextWriterWriteAttribute(writer, BAD_CAST name, BAD_CAST value);
}

static void PRINTF_LIKE(3, 4) attribute_format(xmlTextWriterPtr writer, const char *name, const char *format, ...)
{
	Text text = {0};
	va_list args;

	va_start(args, format);
	text_append_va(&text, format, args);
	va_end(args);
	attribute(writer, name, text_get(&text));
	text_free(&text);
}

static void
attribute_seconds(xmlTextWriterPtr writer, json_int_t ms)
{
	attribute_format(writer, "time", "%" JSON_INTEGER_FORMAT ".%03d", ms / 1000, (int) (ms % 1000));
}

static const char *
string_of(const json_t *object, const char *name)
{
	const char *string = json_string_value(json_object_get(object, name));

	return string == NULL ? "" : string;
}

static json_int_t
integer_of(const json_t *object, const char *name)
{
	return json_integer_value(json_object_get(object, name));
}

/* What went wrong in one line: the reason, else the first check that failed. */
static void
append_message(const json_t *entry, Text *message)
{
	const json_t *check;
	size_t i;

	if (string_of(entry, "reason")[0] != '\0')
	{
		text_append(message, "%s", string_of(entry, "reason"));
		return;
	}
	json_array_foreach(json_object_get(entry, "checks"), i, check)
	{
		if (json_is_false(json_object_get(check, "ok")))
		{
			text_append(message, "%s; expected %s, got %s", string_of(check, "text"), string_of(check, "expected"),
						string_of(check, "actual"));
			return;
		}
	}
	text_append(message, "%s without a reason", string_of(entry, "result"));
}

static void
write_outcome(xmlTextWriterPtr writer, const json_t *entry)
{
	const char *result = string_of(entry, "result");
	const char *element = strcmp(result, "FAIL") == 0 ? "failure" : strcmp(result, "SKIP") == 0 ? "skipped" : "error";
	Text message = {0};
	Text body = {0};
	const json_t *line;
	size_t i;

	append_message(entry, &message);
	text_append(&body, "%s\n", text_get(&message));
	json_array_foreach(json_object_get(entry, "lines"), i, line)
	{
		text_append(&body, "%s\n", json_string_value(line));
	}
	xmlTextWriterStartElement(writer, BAD_CAST element);
	attribute(writer, "message", text_get(&message));
	if (strcmp(element, "skipped") != 0)
	{
		attribute(writer, "type", result);
	}
	xmlTextWriterWriteString(writer, BAD_CAST text_get(&body));
	xmlTextWriterEndElement(writer);
	text_free(&message);
	text_free(&body);
}

static void
write_case(xmlTextWriterPtr writer, const json_t *head, const json_t *entry)
{
	Text name = {0};

	text_append(&name, "%s %s [seed %" JSON_INTEGER_FORMAT "]", string_of(entry, "id"), string_of(entry, "title"),
				integer_of(head, "seed"));
	if (integer_of(entry, "repetition") > 1)
	{
		text_append(&name, " #%" JSON_INTEGER_FORMAT, integer_of(entry, "repetition"));
	}
	xmlTextWriterStartElement(writer, BAD_CAST "testcase");
	attribute(writer, "name", text_get(&name));
	attribute_format(writer, "classname", "counterproof.%s", string_of(head, "suite"));
	attribute_seconds(writer, integer_of(entry, "duration_ms"));
	if (strcmp(string_of(entry, "result"), "PASS") != 0)
	{
		write_outcome(writer, entry);
	}
	xmlTextWriterEndElement(writer);
	text_free(&name);
}

static void
begin_suite(xmlTextWriterPtr writer, const json_t *head)
{
	const json_t *totals = json_object_get(head, "totals");
	const char *name;
	json_t *value;

	xmlTextWriterStartElement(writer, BAD_CAST "testsuite");
	attribute(writer, "name", string_of(head, "suite"));
	attribute_format(writer, "tests", "%" JSON_INTEGER_FORMAT, integer_of(totals, "scenarios"));
	attribute_format(writer, "failures", "%" JSON_INTEGER_FORMAT, integer_of(totals, "scenarios_failed"));
	attribute_format(writer, "errors", "%" JSON_INTEGER_FORMAT,
					 integer_of(totals, "unknown") + integer_of(totals, "broken"));
	attribute_format(writer, "skipped", "%" JSON_INTEGER_FORMAT, integer_of(totals, "skipped"));
	attribute_seconds(writer, integer_of(totals, "duration_ms"));
	xmlTextWriterStartElement(writer, BAD_CAST "properties");
	json_object_foreach(json_object_get(head, "environment"), name, value)
	{
		xmlTextWriterStartElement(writer, BAD_CAST "property");
		attribute(writer, "name", name);
		attribute(writer, "value", json_string_value(value));
		xmlTextWriterEndElement(writer);
	}
	xmlTextWriterEndElement(writer);
}

static bool
visit_head(void *context, const json_t *head)
{
	begin_suite(context, head);
	return true;
}

static bool
visit_case(void *context, const json_t *head, const json_t *entry)
{
	write_case(context, head, entry);
	return true;
}

bool
junit_write(Evidence *evidence, const Suite *suite)
{
	static const ResultsVisit visit = {visit_head, visit_case};
	Sink sink = {.evidence = evidence, .file = {.fd = -1}};
	xmlTextWriterPtr writer = NULL;
	bool done = output_open(evidence, &sink.file, suite->folder, "junit.xml");

	xmlSetStructuredErrorFunc(NULL, keep_silent);
	if (done)
	{
		writer = xmlNewTextWriter(xmlOutputBufferCreateIO(sink_write, NULL, &sink, NULL));
		done = writer != NULL || evidence_fail(evidence, "no memory for %s", sink.file.path);
	}
	if (done)
	{
		xmlTextWriterSetIndent(writer, 1);
		xmlTextWriterStartDocument(writer, NULL, "UTF-8", NULL);
		xmlTextWriterStartElement(writer, BAD_CAST "testsuites");
		done = evidence_scan(suite->folder, false, &visit, writer);
		evidence->failed = evidence->failed || !done;
		xmlTextWriterEndDocument(writer);
	}
	xmlFreeTextWriter(writer);
	xmlSetStructuredErrorFunc(NULL, NULL);
	output_close(&sink.file);
	free(sink.file.path);
	return done && !evidence->failed;
}
