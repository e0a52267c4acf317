#include "plan.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../yaml_file.h"

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
	char *server;
	RawCommand commands[COMMANDS];
	CrashInvariant *invariants;
	unsigned invariants_count;
	int *faults;
	unsigned faults_count;
	int *timeout; /* NULL: not said */
	int *pause;
	int *settle;
	int *expect;
	int *points;
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
static const cyaml_strval_t TRUTHS[] = {{"true", 1}, {"false", 0}};

static const cyaml_strval_t POINTS[] = {{"all", 0}, {"turns", 1}};

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
	CYAML_FIELD_STRING_PTR("server", OPTIONAL_POINTER, RawPlan, server, 1, CYAML_UNLIMITED),
	CYAML_FIELD_SEQUENCE("invariants", CYAML_FLAG_POINTER, RawPlan, invariants, &INVARIANT, 1, CYAML_UNLIMITED),
	CYAML_FIELD_SEQUENCE("faults", OPTIONAL_POINTER, RawPlan, faults, &FAULT, 1, CRASH_FAULTS),
	CYAML_FIELD_INT_PTR("timeout", OPTIONAL_POINTER, RawPlan, timeout),
	CYAML_FIELD_INT_PTR("pause", OPTIONAL_POINTER, RawPlan, pause),
	CYAML_FIELD_INT_PTR("settle", OPTIONAL_POINTER, RawPlan, settle),
	CYAML_FIELD_ENUM_PTR("expect", CYAML_FLAG_STRICT | OPTIONAL_POINTER, RawPlan, expect, EXPECTATIONS,
						 (uint32_t) LENGTH_OF(EXPECTATIONS)),
	CYAML_FIELD_ENUM_PTR("points", CYAML_FLAG_STRICT | OPTIONAL_POINTER, RawPlan, points, POINTS,
						 (uint32_t) LENGTH_OF(POINTS)),
	CYAML_FIELD_ENUM_PTR("tcp", CYAML_FLAG_STRICT | OPTIONAL_POINTER, RawPlan, tcp, TRUTHS,
						 (uint32_t) LENGTH_OF(TRUTHS))};

#define FIELDS (COMMANDS + (int) LENGTH_OF(OTHERS))

typedef struct
{
	YamlFile *file;
	cyaml_schema_field_t fields[FIELDS + 1];
	cyaml_schema_value_t schema;
	const RawPlan *raw;
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


/* --- reading --- */

/* The value of a key of the outermost mapping, NULL when it is not there. */
static const yaml_node_t *
value_of(const Reading *reading, const char *key)
{
	return yaml_file_value(reading->file, yaml_file_root(reading->file), key);
}

/* A command is a string or a list; a schema knows no either-or, so it is made for what the file has. */
static bool
schema_load(Reading *reading)
{
	reading->schema = (cyaml_schema_value_t){CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, RawPlan, reading->fields)};
	for (int i = 0; i < COMMANDS; i++)
	{
		const yaml_node_t *value = value_of(reading, AS_TEXT[i].key);

		reading->fields[i] = value != NULL && value->type == YAML_SEQUENCE_NODE ? AS_LIST[i] : AS_TEXT[i];
	}
	memcpy(reading->fields + COMMANDS, OTHERS, sizeof(OTHERS));
	reading->raw = yaml_file_load(reading->file, &reading->schema);
	return reading->raw != NULL;
}


/* --- what a schema does not know --- */

/* libcyaml takes 1.5 for 1, and 010 for 8. */
static bool
check_range(const Reading *reading, const char *key, const int *value, int most)
{
	const yaml_node_t *node = value_of(reading, key);
	const char *said = value != NULL ? (const char *) node->data.scalar.value : "";

	if (value == NULL ||
		(*value >= 1 && *value <= most && said[0] != '0' && strspn(said, "0123456789") == strlen(said)))
	{
		return true;
	}
	return yaml_file_refuse(reading->file, node, "%s is a number from 1 to %d, not %.80s", key, most, said);
}

static bool
check_sense(const Reading *reading)
{
	const RawPlan *raw = reading->raw;

	if (raw->setup != NULL && raw->setup_file != NULL)
	{
		return yaml_file_refuse(reading->file, yaml_file_key(reading->file, "setup_file", 1),
								"setup and setup_file: one of them");
	}
	for (unsigned i = 0; i < raw->faults_count; i++)
	{
		for (unsigned j = 0; j < i; j++)
		{
			if (raw->faults[i] == raw->faults[j])
			{
				return yaml_file_refuse(reading->file, value_of(reading, "faults"), "%s a second time",
										crash_fault_name((CrashFault) raw->faults[i]));
			}
		}
	}
	for (unsigned i = 0; i < raw->invariants_count; i++)
	{
		if (strpbrk(raw->invariants[i].name, "\t\n\r") != NULL)
		{
			return yaml_file_refuse(reading->file, value_of(reading, "invariants"),
									"the name of an invariant is one line without tabs");
		}
		if (strcmp(raw->invariants[i].name, "recovers") == 0)
		{
			return yaml_file_refuse(reading->file, value_of(reading, "invariants"),
									"\"recovers\" is the name of the invariant that is there always");
		}
		for (unsigned j = 0; j < i; j++)
		{
			if (strcmp(raw->invariants[i].name, raw->invariants[j].name) == 0)
			{
				return yaml_file_refuse(reading->file, value_of(reading, "invariants"),
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
	plan->server = string_copy(raw->server);
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
	plan->turns = said_or(raw->points, 0) != 0;
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

/* It names the case in the evidence, whose lines are one line each. */
static bool
check_name(const char *path)
{
	for (const char *at = path; *at != '\0'; at++)
	{
		if ((unsigned char) *at < ' ' || *at == 0x7f)
		{
			report_error("the name of a file has a control character: %.*s ...", (int) (at - path), path);
			return false;
		}
	}
	return true;
}

static bool
check_setup_file(const Reading *reading, const CrashPlan *plan)
{
	return plan->setup_file == NULL || access(plan->setup_file, R_OK) == 0 ||
		   yaml_file_refuse(reading->file, value_of(reading, "setup_file"), "%s: %s", plan->setup_file,
							strerror(errno));
}

CrashPlan *
crash_plan_read(const char *path)
{
	char *directory = check_name(path) ? directory_of(path) : NULL;
	Reading reading = {.file = directory != NULL ? yaml_file_open(path) : NULL};
	CrashPlan *plan = NULL;

	if (reading.file != NULL && schema_load(&reading) && check_sense(&reading))
	{
		plan = plan_make(path, directory, reading.raw);
	}
	if (plan != NULL && !check_setup_file(&reading, plan))
	{
		crash_plan_free(plan);
		plan = NULL;
	}
	yaml_file_close(reading.file);
	free(directory);
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
	free(plan->server);
	free(plan->setup);
	free(plan->id);
	free(plan->directory);
	free(plan->path);
	free(plan);
}
