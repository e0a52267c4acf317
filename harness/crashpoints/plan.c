#include "plan.h"

#include <cyaml/cyaml.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <yaml.h>

#define TIMEOUT_S 10
#define PAUSE_MS 500
#define TIMEOUT_MAX_S 3600
#define PAUSE_MAX_MS 600000
#define SETTLE_MAX_MS 600000

enum
{
	SETUP_PROGRAM = 0,
	PROGRAM,
	RECOVER,
	CONCURRENT,
	COMMANDS
};

/* One of the two forms is read, whichever the file has. */
typedef struct
{
	char *text;
	char **words;
	unsigned words_count;
} RawCommand;

/* What the schema fills. */
typedef struct
{
	char *setup;
	char *setup_file;
	char *needs;
	RawCommand commands[COMMANDS];
	CrashInvariant *invariants;
	unsigned invariants_count;
	int *faults;
	unsigned faults_count;
	int *timeout; /* NULL: not said */
	int *pause;
	int *settle;
	int *expect;
	int *tcp;
} RawPlan;


/* --- the schema --- */

static const char *const FAULT_NAMES[] = {[CRASH_KILL_CLIENT] = "kill-client",
										  [CRASH_CUT] = "cut",
										  [CRASH_STOP_SERVER] = "stop-server",
										  [CRASH_PAUSE] = "pause"};

static const cyaml_strval_t FAULTS[] = {
	{"kill-client", CRASH_KILL_CLIENT}, {"cut", CRASH_CUT}, {"stop-server", CRASH_STOP_SERVER}, {"pause", CRASH_PAUSE}};

/* libcyaml's own truth values take any word for true. */
static const cyaml_strval_t TRUTHS[] = {{"false", 0}, {"true", 1}};

static const cyaml_strval_t EXPECTATIONS[] = {{"clean", 0}, {"violation", 1}};

static const cyaml_schema_value_t WORD = {CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char *, 0, CYAML_UNLIMITED)};

static const cyaml_schema_value_t FAULT = {
	CYAML_VALUE_ENUM(CYAML_FLAG_STRICT, int, FAULTS, (uint32_t) LENGTH_OF(FAULTS))};

static const cyaml_schema_field_t INVARIANT_FIELDS[] = {
	CYAML_FIELD_STRING_PTR("name", CYAML_FLAG_POINTER, CrashInvariant, name, 1, CYAML_UNLIMITED),
	CYAML_FIELD_STRING_PTR("sql", CYAML_FLAG_POINTER, CrashInvariant, sql, 1, CYAML_UNLIMITED), CYAML_FIELD_END};

static const cyaml_schema_value_t INVARIANT = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, CrashInvariant, INVARIANT_FIELDS)};

#define OPTIONAL_POINTER (CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL)
#define COMMAND_TEXT(key, flags, which)                                                                                \
	CYAML_FIELD_STRING_PTR(key, flags, RawPlan, commands[which].text, 1, CYAML_UNLIMITED)
#define COMMAND_LIST(key, flags, which)                                                                                \
	CYAML_FIELD_SEQUENCE_COUNT(key, flags, RawPlan, commands[which].words, commands[which].words_count, &WORD, 1,      \
							   CYAML_UNLIMITED)

static const cyaml_schema_field_t AS_TEXT[COMMANDS] = {
	[SETUP_PROGRAM] = COMMAND_TEXT("setup_program", OPTIONAL_POINTER, SETUP_PROGRAM),
	[PROGRAM] = COMMAND_TEXT("program", CYAML_FLAG_POINTER, PROGRAM),
	[RECOVER] = COMMAND_TEXT("recover", OPTIONAL_POINTER, RECOVER),
	[CONCURRENT] = COMMAND_TEXT("concurrent", OPTIONAL_POINTER, CONCURRENT)};

static const cyaml_schema_field_t AS_LIST[COMMANDS] = {
	[SETUP_PROGRAM] = COMMAND_LIST("setup_program", OPTIONAL_POINTER, SETUP_PROGRAM),
	[PROGRAM] = COMMAND_LIST("program", CYAML_FLAG_POINTER, PROGRAM),
	[RECOVER] = COMMAND_LIST("recover", OPTIONAL_POINTER, RECOVER),
	[CONCURRENT] = COMMAND_LIST("concurrent", OPTIONAL_POINTER, CONCURRENT)};

static const cyaml_schema_field_t OTHERS[] = {
	CYAML_FIELD_STRING_PTR("setup", OPTIONAL_POINTER, RawPlan, setup, 0, CYAML_UNLIMITED),
	CYAML_FIELD_STRING_PTR("setup_file", OPTIONAL_POINTER, RawPlan, setup_file, 1, CYAML_UNLIMITED),
	CYAML_FIELD_STRING_PTR("needs", OPTIONAL_POINTER, RawPlan, needs, 1, CYAML_UNLIMITED),
	CYAML_FIELD_SEQUENCE("invariants", CYAML_FLAG_POINTER, RawPlan, invariants, &INVARIANT, 1, CYAML_UNLIMITED),
	CYAML_FIELD_SEQUENCE("faults", OPTIONAL_POINTER, RawPlan, faults, &FAULT, 1, CRASH_FAULTS),
	CYAML_FIELD_INT_PTR("timeout", OPTIONAL_POINTER, RawPlan, timeout),
	CYAML_FIELD_INT_PTR("pause", OPTIONAL_POINTER, RawPlan, pause),
	CYAML_FIELD_INT_PTR("settle", OPTIONAL_POINTER, RawPlan, settle),
	CYAML_FIELD_ENUM_PTR("expect", CYAML_FLAG_STRICT | OPTIONAL_POINTER, RawPlan, expect, EXPECTATIONS,
						 (uint32_t) LENGTH_OF(EXPECTATIONS)),
	CYAML_FIELD_ENUM_PTR("tcp", CYAML_FLAG_STRICT | OPTIONAL_POINTER, RawPlan, tcp, TRUTHS,
						 (uint32_t) LENGTH_OF(TRUTHS))};

#define FIELDS (COMMANDS + (int) LENGTH_OF(OTHERS))

typedef struct
{
	const char *path;
	Text content;
	yaml_document_t tree;
	cyaml_config_t config;
	cyaml_schema_field_t fields[FIELDS + 1];
	cyaml_schema_value_t schema;
	RawPlan *raw;
	Text complaint; /* of libcyaml: the first line it says */
	int line;       /* and where, 0: it has not said */
	int column;
} Reading;


/* --- faults by name --- */

const char *
crash_fault_name(CrashFault fault)
{
	return FAULT_NAMES[fault];
}

bool
crash_fault_parse(const char *name, CrashFault *fault)
{
	for (int i = CRASH_KILL_CLIENT; i <= CRASH_FAULTS; i++)
	{
		if (strcmp(name, FAULT_NAMES[i]) == 0)
		{
			*fault = (CrashFault) i;
			return true;
		}
	}
	return false;
}


/* --- where things stand --- */

/* Says it about a place, which counts from 0 as libyaml does. */
static bool refuse(const Reading *reading, yaml_mark_t mark, const char *format, ...) PRINTF_LIKE(3, 4);

static bool
refuse(const Reading *reading, yaml_mark_t mark, const char *format, ...)
{
	Text text = {0};
	va_list args;

	va_start(args, format);
	text_append_va(&text, format, args);
	va_end(args);
	report_error("%s:%zu:%zu: %s", reading->path, mark.line + 1, mark.column + 1, text_get(&text));
	text_free(&text);
	return false;
}

/* One pass over the text; nodes remember where they stand. false: reported. */
static bool
tree_load(Reading *reading)
{
	yaml_parser_t parser;
	yaml_document_t second;
	const yaml_node_t *root;
	bool done = false;

	if (yaml_parser_initialize(&parser) == 0)
	{
		report_error("%s: libyaml has no memory", reading->path);
		return false;
	}
	yaml_parser_set_input_string(&parser, (const unsigned char *) text_get(&reading->content), reading->content.length);
	if (yaml_parser_load(&parser, &reading->tree) == 0)
	{
		(void) refuse(reading, parser.problem_mark, "%s", parser.problem != NULL ? parser.problem : "no YAML");
		yaml_parser_delete(&parser);
		return false;
	}
	root = yaml_document_get_root_node(&reading->tree);
	if (root == NULL || root->type != YAML_MAPPING_NODE)
	{
		(void) refuse(reading, root != NULL ? root->start_mark : (yaml_mark_t){0}, "not a mapping of keys to values");
	}
	else if (yaml_parser_load(&parser, &second) == 0)
	{
		(void) refuse(reading, parser.problem_mark, "%s", parser.problem != NULL ? parser.problem : "no YAML");
	}
	else
	{
		root = yaml_document_get_root_node(&second);
		done = root == NULL || refuse(reading, root->start_mark, "a second document; one file is one");
		yaml_document_delete(&second);
	}
	if (!done)
	{
		yaml_document_delete(&reading->tree);
	}
	yaml_parser_delete(&parser);
	return done;
}

static bool
is_scalar(const yaml_node_t *node, const char *value)
{
	return node != NULL && node->type == YAML_SCALAR_NODE && node->data.scalar.length == strlen(value) &&
		   memcmp(node->data.scalar.value, value, node->data.scalar.length) == 0;
}

/* The value of a key of the outermost mapping, NULL when it is not there. */
static const yaml_node_t *
tree_value(Reading *reading, const char *key)
{
	const yaml_node_t *root = yaml_document_get_root_node(&reading->tree);

	for (const yaml_node_pair_t *pair = root->data.mapping.pairs.start; pair < root->data.mapping.pairs.top; pair++)
	{
		if (is_scalar(yaml_document_get_node(&reading->tree, pair->key), key))
		{
			return yaml_document_get_node(&reading->tree, pair->value);
		}
	}
	return NULL;
}

/* The nth key of that name in any mapping, in the order of the file. */
static const yaml_node_t *
tree_key(Reading *reading, const char *key, int nth)
{
	const yaml_node_t *found = NULL;

	for (const yaml_node_t *node = reading->tree.nodes.start; node < reading->tree.nodes.top && nth > 0; node++)
	{
		if (node->type != YAML_MAPPING_NODE)
		{
			continue;
		}
		for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start; pair < node->data.mapping.pairs.top; pair++)
		{
			const yaml_node_t *candidate = yaml_document_get_node(&reading->tree, pair->key);

			if (nth > 0 && is_scalar(candidate, key))
			{
				found = candidate;
				nth--;
			}
		}
	}
	return found;
}


/* --- libcyaml --- */

/* libcyaml's log. It says what is wrong in one line, then where, from the inside out. */
static void hear(cyaml_log_t level, void *context, const char *format, va_list args) PRINTF_LIKE(3, 0);

static void
hear(cyaml_log_t level, void *context, const char *format, va_list args)
{
	Reading *reading = context;
	Text line = {0};
	const char *where;

	(void) level;
	text_append_va(&line, format, args);
	where = strstr(text_get(&line), "(line: ");
	if (where != NULL && reading->line == 0)
	{
		(void) sscanf(where, "(line: %d, column: %d)", &reading->line, &reading->column);
	}
	else if (where == NULL && reading->complaint.length == 0)
	{
		const char *said = text_get(&line);

		said += strncmp(said, "Load: ", 6) == 0 ? 6 : 0;
		text_append(&reading->complaint, "%.*s", (int) strcspn(said, "\n"), said);
	}
	text_free(&line);
}

/* Copies the word behind `what` of the complaint. */
static bool
complaint_names(const Reading *reading, const char *what, char *word, size_t size)
{
	const char *complaint = text_get(&reading->complaint);

	if (strncmp(complaint, what, strlen(what)) != 0)
	{
		return false;
	}
	snprintf(word, size, "%s", complaint + strlen(what));
	return true;
}

static const char *
nearest_key(const char *word)
{
	const char *candidates[FIELDS + 3] = {"name", "sql"};
	int count = 2;

	for (int i = 0; i < COMMANDS; i++)
	{
		candidates[count++] = AS_TEXT[i].key;
	}
	for (size_t i = 0; i < LENGTH_OF(OTHERS); i++)
	{
		candidates[count++] = OTHERS[i].key;
	}
	return string_nearest(word, candidates);
}

/* What could stand at this place, where one of a few words is meant. */
static const char *
words_of(Reading *reading, yaml_mark_t mark)
{
	static const struct
	{
		const char *key;
		const char *words;
	} rows[] = {{"tcp", "true, false"}, {"expect", "clean, violation"}};

	for (size_t i = 0; i < LENGTH_OF(rows); i++)
	{
		const yaml_node_t *value = tree_value(reading, rows[i].key);

		if (value != NULL && value->start_mark.line == mark.line && value->start_mark.column == mark.column)
		{
			return rows[i].words;
		}
	}
	return "kill-client, cut, stop-server, pause";
}

/* libcyaml stands at the last thing that was right when a key is wrong; the tree knows where the key is. */
static bool
refuse_complaint(Reading *reading, cyaml_err_t error)
{
	yaml_mark_t mark = {.line = reading->line > 0 ? (size_t) reading->line - 1 : 0,
						.column = reading->column > 0 ? (size_t) reading->column - 1 : 0};
	const yaml_node_t *key = NULL;
	char word[80];

	if (complaint_names(reading, "Unexpected key: ", word, sizeof(word)))
	{
		key = tree_key(reading, word, 1);
		return refuse(reading, key != NULL ? key->start_mark : mark, "unknown key \"%s\"; the nearest is \"%s\"", word,
					  nearest_key(word));
	}
	if (complaint_names(reading, "Mapping field already seen: ", word, sizeof(word)))
	{
		key = tree_key(reading, word, 2);
		return refuse(reading, key != NULL ? key->start_mark : mark, "\"%s\" a second time", word);
	}
	if (complaint_names(reading, "Missing required mapping field: ", word, sizeof(word)))
	{
		return refuse(reading, mark, "the key \"%s\" is missing", word);
	}
	if (complaint_names(reading, "STRING length < 1: ", word, sizeof(word)))
	{
		return refuse(reading, mark, "there must be something here");
	}
	if (complaint_names(reading, "Invalid ENUM value: ", word, sizeof(word)))
	{
		return refuse(reading, mark, "\"%s\" is none of: %s", word, words_of(reading, mark));
	}
	return refuse(reading, mark, "%s",
				  reading->complaint.length > 0 ? text_get(&reading->complaint) : cyaml_strerror(error));
}

/* A command is a string or a list; a schema knows no either-or, so it is made for what the file has. */
static bool
schema_load(Reading *reading)
{
	cyaml_data_t *data = NULL;
	cyaml_err_t error;

	reading->config = (cyaml_config_t){.log_fn = hear,
									   .log_ctx = reading,
									   .log_level = CYAML_LOG_ERROR,
									   .mem_fn = cyaml_mem,
									   .flags = CYAML_CFG_NO_ALIAS};
	reading->schema = (cyaml_schema_value_t){CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, RawPlan, reading->fields)};
	for (int i = 0; i < COMMANDS; i++)
	{
		const yaml_node_t *value = tree_value(reading, AS_TEXT[i].key);

		reading->fields[i] = value != NULL && value->type == YAML_SEQUENCE_NODE ? AS_LIST[i] : AS_TEXT[i];
	}
	memcpy(reading->fields + COMMANDS, OTHERS, sizeof(OTHERS));
	error = cyaml_load_data((const uint8_t *) text_get(&reading->content), reading->content.length, &reading->config,
							&reading->schema, &data, NULL);
	if (error != CYAML_OK || data == NULL)
	{
		return refuse_complaint(reading, error);
	}
	reading->raw = data;
	return true;
}


/* --- what a schema does not know --- */

static bool
check_range(Reading *reading, const char *key, const int *value, int most)
{
	const yaml_node_t *node = tree_value(reading, key);

	if (value == NULL || (*value >= 1 && *value <= most))
	{
		return true;
	}
	return refuse(reading, node->start_mark, "%s is a number from 1 to %d, not %d", key, most, *value);
}

static bool
check_sense(Reading *reading)
{
	const RawPlan *raw = reading->raw;

	if (raw->setup != NULL && raw->setup_file != NULL)
	{
		return refuse(reading, tree_key(reading, "setup_file", 1)->start_mark, "setup and setup_file: one of them");
	}
	for (unsigned i = 0; i < raw->faults_count; i++)
	{
		for (unsigned j = 0; j < i; j++)
		{
			if (raw->faults[i] == raw->faults[j])
			{
				return refuse(reading, tree_value(reading, "faults")->start_mark, "%s a second time",
							  crash_fault_name((CrashFault) raw->faults[i]));
			}
		}
	}
	for (unsigned i = 0; i < raw->invariants_count; i++)
	{
		if (strpbrk(raw->invariants[i].name, "\t\n\r") != NULL)
		{
			return refuse(reading, tree_value(reading, "invariants")->start_mark,
						  "the name of an invariant is one line without tabs");
		}
		for (unsigned j = 0; j < i; j++)
		{
			if (strcmp(raw->invariants[i].name, raw->invariants[j].name) == 0)
			{
				return refuse(reading, tree_value(reading, "invariants")->start_mark,
							  "two invariants have the name \"%s\"", raw->invariants[i].name);
			}
		}
	}
	return check_range(reading, "timeout", raw->timeout, TIMEOUT_MAX_S) &&
		   check_range(reading, "pause", raw->pause, PAUSE_MAX_MS) &&
		   check_range(reading, "settle", raw->settle, SETTLE_MAX_MS);
}


/* --- the plan --- */

/* A list goes through the shell as well: it looks the program up in PATH. */
static CrashCommand
command_make(const RawCommand *raw)
{
	size_t count = 0;
	CrashCommand command = {.argv = memory_get(sizeof(char *) * (raw->words_count + 5))};

	if (raw->text == NULL && raw->words == NULL)
	{
		free(command.argv);
		return (CrashCommand){0};
	}
	command.argv[count++] = string_copy("/bin/sh");
	command.argv[count++] = string_copy("-c");
	command.argv[count++] = string_copy(raw->text != NULL ? raw->text : "exec \"$@\"");
	command.argv[count++] = string_copy("sh");
	for (unsigned i = 0; i < raw->words_count; i++)
	{
		command.argv[count++] = string_copy(raw->words[i]);
	}
	return command;
}

static CrashCommand
command_copy(const CrashCommand *original)
{
	size_t count = 0;
	CrashCommand copy;

	while (original->argv[count] != NULL)
	{
		count++;
	}
	copy.argv = memory_get(sizeof(char *) * (count + 1));
	for (size_t i = 0; i < count; i++)
	{
		copy.argv[i] = string_copy(original->argv[i]);
	}
	return copy;
}

static void
command_free(CrashCommand *command)
{
	for (size_t i = 0; command->argv != NULL && command->argv[i] != NULL; i++)
	{
		free((char *) command->argv[i]);
	}
	free(command->argv);
}

static char *
id_make(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *id = string_copy(slash != NULL ? slash + 1 : path);
	char *dot = strrchr(id, '.');

	if (dot != NULL && dot != id)
	{
		*dot = '\0';
	}
	return id;
}

static int
said_or(const int *value, int otherwise)
{
	return value != NULL ? *value : otherwise;
}

static void
plan_take_faults(CrashPlan *plan, const RawPlan *raw)
{
	for (int fault = CRASH_KILL_CLIENT; fault <= CRASH_FAULTS; fault++)
	{
		bool named = raw->faults == NULL;

		for (unsigned i = 0; i < raw->faults_count; i++)
		{
			named = named || raw->faults[i] == fault;
		}
		if (named)
		{
			plan->faults[plan->fault_count++] = (CrashFault) fault;
		}
	}
}

static CrashPlan *
plan_make(const char *path, const char *directory, const RawPlan *raw)
{
	CrashPlan *plan = memory_get(sizeof(*plan));

	plan->path = string_copy(path);
	plan->directory = string_copy(directory);
	plan->id = id_make(path);
	plan->setup = string_copy(raw->setup);
	if (raw->setup_file != NULL)
	{
		plan->setup_file = raw->setup_file[0] == '/' ? string_copy(raw->setup_file)
													 : string_format("%s/%s", directory, raw->setup_file);
	}
	plan->needs = string_copy(raw->needs);
	plan->setup_program = command_make(&raw->commands[SETUP_PROGRAM]);
	plan->program = command_make(&raw->commands[PROGRAM]);
	plan->recover = command_make(&raw->commands[RECOVER]);
	plan->concurrent = command_make(&raw->commands[CONCURRENT]);
	if (plan->recover.argv == NULL)
	{
		plan->recover = command_copy(&plan->program);
	}
	plan->invariant_count = (int) raw->invariants_count;
	plan->invariants = memory_get(sizeof(CrashInvariant) * raw->invariants_count);
	for (unsigned i = 0; i < raw->invariants_count; i++)
	{
		plan->invariants[i] =
			(CrashInvariant){string_copy(raw->invariants[i].name), string_copy(raw->invariants[i].sql)};
	}
	plan_take_faults(plan, raw);
	plan->timeout_ms = said_or(raw->timeout, TIMEOUT_S) * 1000;
	plan->pause_ms = said_or(raw->pause, PAUSE_MS);
	plan->settle_ms = said_or(raw->settle, 0);
	plan->expects_violation = said_or(raw->expect, 0) != 0;
	plan->tcp = said_or(raw->tcp, 0) != 0;
	return plan;
}

static char *
directory_of(const char *path)
{
	char absolute[PATH_MAX];

	if (realpath(path, absolute) == NULL)
	{
		report_error("%s: %s", path, strerror(errno));
		return NULL;
	}
	*strrchr(absolute, '/') = '\0';
	return string_copy(absolute[0] != '\0' ? absolute : "/");
}

CrashPlan *
crash_plan_read(const char *path)
{
	Reading reading = {.path = path};
	char *directory = directory_of(path);
	CrashPlan *plan = NULL;

	if (directory != NULL && file_read(path, &reading.content) && tree_load(&reading))
	{
		if (schema_load(&reading) && check_sense(&reading))
		{
			plan = plan_make(path, directory, reading.raw);
		}
		if (plan != NULL && plan->setup_file != NULL && access(plan->setup_file, R_OK) != 0)
		{
			(void) refuse(&reading, tree_value(&reading, "setup_file")->start_mark, "%s: %s", plan->setup_file,
						  strerror(errno));
			crash_plan_free(plan);
			plan = NULL;
		}
		(void) cyaml_free(&reading.config, &reading.schema, reading.raw, 0);
		yaml_document_delete(&reading.tree);
	}
	free(directory);
	text_free(&reading.complaint);
	text_free(&reading.content);
	return plan;
}

void
crash_plan_free(CrashPlan *plan)
{
	if (plan == NULL)
	{
		return;
	}
	for (int i = 0; i < plan->invariant_count; i++)
	{
		free(plan->invariants[i].name);
		free(plan->invariants[i].sql);
	}
	free(plan->invariants);
	command_free(&plan->setup_program);
	command_free(&plan->program);
	command_free(&plan->recover);
	command_free(&plan->concurrent);
	free(plan->setup_file);
	free(plan->needs);
	free(plan->setup);
	free(plan->id);
	free(plan->directory);
	free(plan->path);
	free(plan);
}
