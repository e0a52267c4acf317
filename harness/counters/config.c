#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "../yaml_file.h"

/* What the schema fills. The file stays open for as long as its counters are used. */
typedef struct
{
	CounterSpec *counters;
	unsigned counters_count;
} RawConfig;


/* --- the schema --- */

static const cyaml_strval_t WRITERS[] = {{"same_transaction", WRITERS_SAME_TRANSACTION},
										 {"separate_transaction", WRITERS_SEPARATE_TRANSACTION},
										 {"outbox", WRITERS_OUTBOX}};

#define OPTIONAL (CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL)
#define TEXT(key, structure, member)                                                                                   \
	CYAML_FIELD_STRING_PTR(key, CYAML_FLAG_POINTER, structure, member, 1, CYAML_UNLIMITED)
#define OPTIONAL_TEXT(key, structure, member)                                                                          \
	CYAML_FIELD_STRING_PTR(key, OPTIONAL, structure, member, 1, CYAML_UNLIMITED)
#define COLUMNS(key, structure, member)                                                                                \
	CYAML_FIELD_SEQUENCE(key, CYAML_FLAG_POINTER, structure, member, &NAME, 1, COUNTER_KEY_MAX)

static const cyaml_schema_value_t NAME = {CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char *, 1, CYAML_UNLIMITED)};

static const cyaml_schema_field_t PLACE_FIELDS[] = {TEXT("table", CounterPlace, table),
													TEXT("column", CounterPlace, column), CYAML_FIELD_END};

static const cyaml_schema_field_t PROCESSED_FIELDS[] = {TEXT("table", CounterPlace, table),
														TEXT("seq", CounterPlace, column), CYAML_FIELD_END};

static const cyaml_schema_field_t PARENT_FIELDS[] = {TEXT("table", CounterParentSpec, table),
													 COLUMNS("key", CounterParentSpec, key),
													 OPTIONAL_TEXT("where", CounterParentSpec, where), CYAML_FIELD_END};

static const cyaml_schema_field_t OUTBOX_FIELDS[] = {
	TEXT("table", CounterOutboxSpec, table),
	COLUMNS("key", CounterOutboxSpec, key),
	TEXT("seq", CounterOutboxSpec, seq),
	TEXT("delta", CounterOutboxSpec, delta),
	CYAML_FIELD_MAPPING_PTR("processed", OPTIONAL, CounterOutboxSpec, processed, PROCESSED_FIELDS),
	OPTIONAL_TEXT("base_seq", CounterOutboxSpec, base_seq),
	CYAML_FIELD_MAPPING_PTR("last", OPTIONAL, CounterOutboxSpec, last, PLACE_FIELDS),
	CYAML_FIELD_MAPPING_PTR("watermark", OPTIONAL, CounterOutboxSpec, watermark, PLACE_FIELDS),
	CYAML_FIELD_END};

static const cyaml_schema_field_t COUNTER_FIELDS[] = {
	TEXT("name", CounterSpec, name),
	TEXT("target", CounterSpec, target),
	COLUMNS("key", CounterSpec, key),
	TEXT("column", CounterSpec, column),
	OPTIONAL_TEXT("source", CounterSpec, source),
	CYAML_FIELD_SEQUENCE("source_key", OPTIONAL, CounterSpec, source_key, &NAME, 1, COUNTER_KEY_MAX),
	OPTIONAL_TEXT("where", CounterSpec, where),
	OPTIONAL_TEXT("measure", CounterSpec, measure),
	OPTIONAL_TEXT("truth", CounterSpec, truth),
	OPTIONAL_TEXT("target_where", CounterSpec, target_where),
	CYAML_FIELD_MAPPING_PTR("parent", OPTIONAL, CounterSpec, parent, PARENT_FIELDS),
	CYAML_FIELD_ENUM("writers", CYAML_FLAG_STRICT | CYAML_FLAG_OPTIONAL, CounterSpec, writers, WRITERS,
					 (uint32_t) LENGTH_OF(WRITERS)),
	CYAML_FIELD_MAPPING_PTR("outbox", OPTIONAL, CounterSpec, outbox, OUTBOX_FIELDS),
	CYAML_FIELD_END};

static const cyaml_schema_value_t COUNTER = {CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, CounterSpec, COUNTER_FIELDS)};

static const cyaml_schema_field_t FILE_FIELDS[] = {
	CYAML_FIELD_SEQUENCE("counters", CYAML_FLAG_POINTER, RawConfig, counters, &COUNTER, 1, CYAML_UNLIMITED),
	CYAML_FIELD_END};

static const cyaml_schema_value_t FILE_SCHEMA = {CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, RawConfig, FILE_FIELDS)};


/* --- names --- */

const char *
counter_writers_name(CounterWriters writers)
{
	for (size_t i = 0; i < LENGTH_OF(WRITERS); i++)
	{
		if (WRITERS[i].val == (int64_t) writers)
		{
			return WRITERS[i].str;
		}
	}
	return "unsaid";
}


/* --- what a schema does not know --- */

typedef struct
{
	YamlFile *file;
	const yaml_node_t *node; /* the counter's mapping */
	const CounterSpec *spec;
} Entry;

/* The node of a key's value, or where it would be: the counter itself. */
static const yaml_node_t *
place_of(const Entry *entry, const char *key)
{
	const yaml_node_t *value = yaml_file_value(entry->file, entry->node, key);

	return value != NULL ? value : entry->node;
}

static bool
check_count(const Entry *entry, const char *in, const char *key, unsigned count)
{
	const yaml_node_t *outer = in != NULL ? place_of(entry, in) : entry->node;
	const yaml_node_t *node = yaml_file_value(entry->file, outer, key);

	return count == entry->spec->key_count ||
		   yaml_file_refuse(entry->file, node != NULL ? node : outer, "%s%s%s has %u columns, and the key has %u",
							in != NULL ? in : "", in != NULL ? "." : "", key, count, entry->spec->key_count);
}

/* Source or truth, and what belongs to each. */
static bool
check_origin(const Entry *entry)
{
	const CounterSpec *spec = entry->spec;
	const struct
	{
		const char *key;
		bool given;
	} parts[] = {{"source", spec->source != NULL},
				 {"source_key", spec->source_key != NULL},
				 {"where", spec->where != NULL},
				 {"measure", spec->measure != NULL}};

	for (size_t i = 0; spec->truth != NULL && i < LENGTH_OF(parts); i++)
	{
		if (parts[i].given)
		{
			return yaml_file_refuse(entry->file, place_of(entry, parts[i].key),
									"truth says all there is to say: no %s beside it", parts[i].key);
		}
	}
	if (spec->truth != NULL)
	{
		return true;
	}
	if (spec->source == NULL)
	{
		return yaml_file_refuse(entry->file, entry->node, "a counter has either a source or truth");
	}
	if (spec->source_key == NULL)
	{
		return yaml_file_refuse(entry->file, place_of(entry, "source"), "the key \"source_key\" is missing");
	}
	return check_count(entry, NULL, "source_key", spec->source_key_count);
}

static bool
check_outbox(const Entry *entry)
{
	const CounterOutboxSpec *outbox = entry->spec->outbox;

	if (entry->spec->writers == WRITERS_OUTBOX && outbox == NULL)
	{
		return yaml_file_refuse(entry->file, place_of(entry, "writers"), "writers: outbox, and no outbox is described");
	}
	if (outbox == NULL)
	{
		return true;
	}
	if (entry->spec->writers != WRITERS_OUTBOX)
	{
		return yaml_file_refuse(entry->file, place_of(entry, "outbox"), "an outbox is for writers: outbox");
	}
	if (outbox->processed == NULL && outbox->watermark == NULL)
	{
		return yaml_file_refuse(entry->file, place_of(entry, "outbox"),
								"without processed or watermark nothing says which events took effect");
	}
	return check_count(entry, "outbox", "key", outbox->key_count);
}

static bool
check_names(const Entry *entry, const CounterSpec *first)
{
	for (const char *at = entry->spec->name; *at != '\0'; at++)
	{
		if ((unsigned char) *at < ' ' || *at == 0x7f)
		{
			return yaml_file_refuse(entry->file, place_of(entry, "name"),
									"a name is one line without control characters");
		}
	}
	for (const CounterSpec *other = first; other < entry->spec; other++)
	{
		if (strcmp(other->name, entry->spec->name) == 0)
		{
			return yaml_file_refuse(entry->file, place_of(entry, "name"), "two counters have the name \"%s\"",
									entry->spec->name);
		}
	}
	for (unsigned i = 0; i < entry->spec->key_count; i++)
	{
		for (unsigned j = 0; j < i; j++)
		{
			if (strcmp(entry->spec->key[i], entry->spec->key[j]) == 0)
			{
				return yaml_file_refuse(entry->file, place_of(entry, "key"), "\"%s\" a second time",
										entry->spec->key[i]);
			}
		}
		if (strcmp(entry->spec->key[i], entry->spec->column) == 0)
		{
			return yaml_file_refuse(entry->file, place_of(entry, "column"), "\"%s\" is a column of the key",
									entry->spec->column);
		}
	}
	return true;
}

static bool
check_sense(YamlFile *file, const RawConfig *raw)
{
	const yaml_node_t *list = yaml_file_value(file, yaml_file_root(file), "counters");

	for (unsigned i = 0; i < raw->counters_count; i++)
	{
		Entry entry = {.file = file, .node = yaml_file_element(file, list, i), .spec = &raw->counters[i]};

		if (!check_names(&entry, raw->counters) || !check_origin(&entry) || !check_outbox(&entry) ||
			(entry.spec->parent != NULL && !check_count(&entry, "parent", "key", entry.spec->parent->key_count)))
		{
			return false;
		}
	}
	return true;
}


/* --- the whole --- */

CounterConfig *
counter_config_read(const char *path)
{
	YamlFile *file = yaml_file_open(path);
	const RawConfig *raw = file != NULL ? yaml_file_load(file, &FILE_SCHEMA) : NULL;
	CounterConfig *config;

	if (raw == NULL || !check_sense(file, raw))
	{
		yaml_file_close(file);
		return NULL;
	}
	config = memory_get(sizeof(*config));
	*config = (CounterConfig){.file = file, .counters = raw->counters, .count = raw->counters_count};
	return config;
}

void
counter_config_free(CounterConfig *config)
{
	if (config != NULL)
	{
		yaml_file_close(config->file);
		free(config);
	}
}
