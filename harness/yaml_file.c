#include "yaml_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIELDS_MAX 50 /* of one mapping */

struct YamlFile
{
	char *path;
	Text content;
	yaml_document_t tree;
	cyaml_config_t config;
	const cyaml_schema_value_t *schema; /* of what is loaded, NULL: nothing is */
	cyaml_data_t *data;
	Text complaint; /* of libcyaml: the first line it says */
	int line;       /* and where, 0: it has not said */
	int column;
};


/* --- where things stand --- */

/* Marks count from 0. */
static bool refuse_at(const YamlFile *file, yaml_mark_t mark, const char *format, ...) PRINTF_LIKE(3, 4);

static bool
refuse_at(const YamlFile *file, yaml_mark_t mark, const char *format, ...)
{
	Text text = {0};
	va_list args;

	va_start(args, format);
	text_append_va(&text, format, args);
	va_end(args);
	report_error("%s:%zu:%zu: %s", file->path, mark.line + 1, mark.column + 1, text_get(&text));
	text_free(&text);
	return false;
}

bool
yaml_file_refuse(const YamlFile *file, const yaml_node_t *node, const char *format, ...)
{
	Text text = {0};
	va_list args;

	va_start(args, format);
	text_append_va(&text, format, args);
	va_end(args);
	(void) refuse_at(file, node->start_mark, "%s", text_get(&text));
	text_free(&text);
	return false;
}

static bool
is_scalar(const yaml_node_t *node, const char *value)
{
	return node != NULL && node->type == YAML_SCALAR_NODE && node->data.scalar.length == strlen(value) &&
		   memcmp(node->data.scalar.value, value, node->data.scalar.length) == 0;
}

const yaml_node_t *
yaml_file_root(YamlFile *file)
{
	return yaml_document_get_root_node(&file->tree);
}

const yaml_node_t *
yaml_file_value(YamlFile *file, const yaml_node_t *mapping, const char *key)
{
	if (mapping == NULL || mapping->type != YAML_MAPPING_NODE)
	{
		return NULL;
	}
	for (const yaml_node_pair_t *pair = mapping->data.mapping.pairs.start; pair < mapping->data.mapping.pairs.top;
		 pair++)
	{
		if (is_scalar(yaml_document_get_node(&file->tree, pair->key), key))
		{
			return yaml_document_get_node(&file->tree, pair->value);
		}
	}
	return NULL;
}

const yaml_node_t *
yaml_file_element(YamlFile *file, const yaml_node_t *sequence, size_t index)
{
	const yaml_node_item_t *items;

	if (sequence == NULL || sequence->type != YAML_SEQUENCE_NODE)
	{
		return NULL;
	}
	items = sequence->data.sequence.items.start;
	return index < (size_t) (sequence->data.sequence.items.top - items)
			   ? yaml_document_get_node(&file->tree, items[index])
			   : NULL;
}

const yaml_node_t *
yaml_file_key(YamlFile *file, const char *key, int nth)
{
	for (const yaml_node_t *node = file->tree.nodes.start; node < file->tree.nodes.top; node++)
	{
		if (node->type != YAML_MAPPING_NODE)
		{
			continue;
		}
		for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start; pair < node->data.mapping.pairs.top; pair++)
		{
			const yaml_node_t *candidate = yaml_document_get_node(&file->tree, pair->key);

			if (is_scalar(candidate, key) && --nth == 0)
			{
				return candidate;
			}
		}
	}
	return NULL;
}


/* --- opening --- */

/* One pass over the text; nodes remember where they stand. false: reported. */
static bool
tree_load(YamlFile *file)
{
	yaml_parser_t parser;
	yaml_document_t second;
	const yaml_node_t *root;
	bool done = false;

	if (yaml_parser_initialize(&parser) == 0)
	{
		report_error("%s: libyaml has no memory", file->path);
		return false;
	}
	yaml_parser_set_input_string(&parser, (const unsigned char *) text_get(&file->content), file->content.length);
	if (yaml_parser_load(&parser, &file->tree) == 0)
	{
		(void) refuse_at(file, parser.problem_mark, "%s", parser.problem != NULL ? parser.problem : "no YAML");
		yaml_parser_delete(&parser);
		return false;
	}
	root = yaml_document_get_root_node(&file->tree);
	if (root == NULL || root->type != YAML_MAPPING_NODE)
	{
		(void) refuse_at(file, root != NULL ? root->start_mark : (yaml_mark_t){0}, "not a mapping of keys to values");
	}
	else if (yaml_parser_load(&parser, &second) == 0)
	{
		(void) refuse_at(file, parser.problem_mark, "%s", parser.problem != NULL ? parser.problem : "no YAML");
	}
	else
	{
		root = yaml_document_get_root_node(&second);
		done = root == NULL || yaml_file_refuse(file, root, "a second document; one file is one");
		yaml_document_delete(&second);
	}
	if (!done)
	{
		yaml_document_delete(&file->tree);
	}
	yaml_parser_delete(&parser);
	return done;
}

/* A text would silently end there. */
static bool
check_zeros(const YamlFile *file)
{
	for (const yaml_node_t *node = file->tree.nodes.start; node < file->tree.nodes.top; node++)
	{
		if (node->type == YAML_SCALAR_NODE && memchr(node->data.scalar.value, 0, node->data.scalar.length) != NULL)
		{
			return yaml_file_refuse(file, node, "a text with a zero byte");
		}
	}
	return true;
}

YamlFile *
yaml_file_open(const char *path)
{
	YamlFile *file = memory_get(sizeof(*file));

	file->path = string_copy(path);
	if (!file_read(path, &file->content) || !tree_load(file))
	{
		text_free(&file->content);
		free(file->path);
		free(file);
		return NULL;
	}
	if (!check_zeros(file))
	{
		yaml_file_close(file);
		return NULL;
	}
	return file;
}

void
yaml_file_close(YamlFile *file)
{
	if (file == NULL)
	{
		return;
	}
	if (file->schema != NULL)
	{
		(void) cyaml_free(&file->config, file->schema, file->data, 0);
	}
	yaml_document_delete(&file->tree);
	text_free(&file->complaint);
	text_free(&file->content);
	free(file->path);
	free(file);
}


/* --- what the schema knows --- */

/* The schema of an element, where there are elements, else the schema itself. */
static const cyaml_schema_value_t *
schema_inside(const cyaml_schema_value_t *schema)
{
	while (schema->type == CYAML_SEQUENCE || schema->type == CYAML_SEQUENCE_FIXED)
	{
		schema = schema->sequence.entry;
	}
	return schema;
}

/* The first key, in the order of the file, that its mapping does not know or has a second time, and what that mapping knows. */
static const yaml_node_t *
wrong_key(YamlFile *file, const yaml_node_t *node, const cyaml_schema_value_t *schema,
		  const cyaml_schema_field_t **fields)
{
	const yaml_node_t *wrong = NULL, *element;

	if (schema->type == CYAML_SEQUENCE || schema->type == CYAML_SEQUENCE_FIXED)
	{
		for (size_t i = 0; wrong == NULL && (element = yaml_file_element(file, node, i)) != NULL; i++)
		{
			wrong = wrong_key(file, element, schema->sequence.entry, fields);
		}
		return wrong;
	}
	if (schema->type != CYAML_MAPPING || node->type != YAML_MAPPING_NODE)
	{
		return NULL;
	}
	for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
		 wrong == NULL && pair < node->data.mapping.pairs.top; pair++)
	{
		const yaml_node_t *key = yaml_document_get_node(&file->tree, pair->key);
		const yaml_node_t *value = yaml_document_get_node(&file->tree, pair->value);
		const cyaml_schema_field_t *field = schema->mapping.fields;

		while (field->key != NULL && !is_scalar(key, field->key))
		{
			field++;
		}
		if (field->key == NULL || yaml_file_value(file, node, field->key) != value)
		{
			*fields = schema->mapping.fields;
			return key;
		}
		wrong = wrong_key(file, value, &field->value, fields);
	}
	return wrong;
}

static const char *
nearest_key(const char *word, const cyaml_schema_field_t *fields)
{
	const char *keys[FIELDS_MAX + 1] = {NULL};

	for (int i = 0; i < FIELDS_MAX && fields[i].key != NULL; i++)
	{
		keys[i] = fields[i].key;
	}
	return string_nearest(word, keys);
}

/* What a key may have, wherever it is; NULL: no words. */
static const cyaml_schema_value_t *
schema_words(const cyaml_schema_value_t *schema, const char *key, size_t length)
{
	schema = schema_inside(schema);
	if (schema->type != CYAML_MAPPING)
	{
		return NULL;
	}
	for (const cyaml_schema_field_t *field = schema->mapping.fields; field->key != NULL; field++)
	{
		const cyaml_schema_value_t *inside = schema_inside(&field->value);
		const cyaml_schema_value_t *found =
			inside->type == CYAML_ENUM && strlen(field->key) == length && memcmp(field->key, key, length) == 0
				? inside
				: schema_words(inside, key, length);

		if (found != NULL)
		{
			return found;
		}
	}
	return NULL;
}


/* --- libcyaml --- */

/* libcyaml's log. It says what is wrong in one line, then where, from the inside out. */
static void hear(cyaml_log_t level, void *context, const char *format, va_list args) PRINTF_LIKE(3, 0);

static void
hear(cyaml_log_t level, void *context, const char *format, va_list args)
{
	YamlFile *file = context;
	Text line = {0};
	const char *where;

	(void) level;
	text_append_va(&line, format, args);
	where = strstr(text_get(&line), "(line: ");
	if (where != NULL && file->line == 0)
	{
		(void) sscanf(where, "(line: %d, column: %d)", &file->line, &file->column);
	}
	else if (where == NULL && file->complaint.length == 0 && strstr(text_get(&line), "Backtrace:") == NULL)
	{
		const char *said = text_get(&line);

		said += strncmp(said, "Load: ", 6) == 0 ? 6 : 0;
		text_append(&file->complaint, "%.*s", (int) strcspn(said, "\n"), said);
	}
	text_free(&line);
}

/* Copies the word behind `what` of the complaint. */
static bool
complaint_names(const YamlFile *file, const char *what, char *word, size_t size)
{
	const char *complaint = text_get(&file->complaint);

	if (strncmp(complaint, what, strlen(what)) != 0)
	{
		return false;
	}
	snprintf(word, size, "%s", complaint + strlen(what));
	return true;
}

static bool
stands_at(const yaml_node_t *node, yaml_mark_t mark)
{
	return node != NULL && node->start_mark.line == mark.line && node->start_mark.column == mark.column;
}

/* The key whose value, or an element of whose value, stands there. */
static const yaml_node_t *
key_of(YamlFile *file, yaml_mark_t mark)
{
	for (const yaml_node_t *node = file->tree.nodes.start; node < file->tree.nodes.top; node++)
	{
		if (node->type != YAML_MAPPING_NODE)
		{
			continue;
		}
		for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start; pair < node->data.mapping.pairs.top; pair++)
		{
			const yaml_node_t *value = yaml_document_get_node(&file->tree, pair->value);
			bool found = stands_at(value, mark);
			const yaml_node_t *element;

			for (size_t i = 0; !found && (element = yaml_file_element(file, value, i)) != NULL; i++)
			{
				found = stands_at(element, mark);
			}
			if (found)
			{
				return yaml_document_get_node(&file->tree, pair->key);
			}
		}
	}
	return NULL;
}

/* What could stand at this place, where one of a few words is meant. */
static void
append_words(Text *text, YamlFile *file, yaml_mark_t mark)
{
	const yaml_node_t *key = key_of(file, mark);
	const cyaml_schema_value_t *words =
		key == NULL || key->type != YAML_SCALAR_NODE
			? NULL
			: schema_words(file->schema, (const char *) key->data.scalar.value, key->data.scalar.length);

	for (uint32_t i = 0; words != NULL && i < words->enumeration.count; i++)
	{
		text_append(text, "%s%s", i > 0 ? ", " : "", words->enumeration.strings[i].str);
	}
}

static bool
refuse_word(YamlFile *file, yaml_mark_t mark, const char *word)
{
	Text words = {0};

	append_words(&words, file, mark);
	(void) refuse_at(file, mark, "\"%s\" is none of: %s", word, text_get(&words));
	text_free(&words);
	return false;
}

/* libcyaml stands at the last thing that was right when a key is wrong; the tree knows where the key is. */
static bool
refuse_complaint(YamlFile *file, cyaml_err_t error)
{
	yaml_mark_t mark = {.line = file->line > 0 ? (size_t) file->line - 1 : 0,
						.column = file->column > 0 ? (size_t) file->column - 1 : 0};
	const cyaml_schema_field_t *fields = NULL;
	const yaml_node_t *key = wrong_key(file, yaml_document_get_root_node(&file->tree), file->schema, &fields);
	char word[80];

	if (key != NULL && complaint_names(file, "Unexpected key: ", word, sizeof(word)))
	{
		return refuse_at(file, key->start_mark, "unknown key \"%s\"; the nearest is \"%s\"", word,
						 nearest_key(word, fields));
	}
	if (key != NULL && complaint_names(file, "Mapping field already seen: ", word, sizeof(word)))
	{
		return refuse_at(file, key->start_mark, "\"%s\" a second time", word);
	}
	if (complaint_names(file, "Missing required mapping field: ", word, sizeof(word)))
	{
		return refuse_at(file, mark, "the key \"%s\" is missing", word);
	}
	if (complaint_names(file, "STRING length < 1: ", word, sizeof(word)))
	{
		return refuse_at(file, mark, "there must be something here");
	}
	if (complaint_names(file, "Invalid ENUM value: ", word, sizeof(word)))
	{
		return refuse_word(file, mark, word);
	}
	return refuse_at(file, mark, "%s", file->complaint.length > 0 ? text_get(&file->complaint) : cyaml_strerror(error));
}

void *
yaml_file_load(YamlFile *file, const cyaml_schema_value_t *schema)
{
	cyaml_err_t error;

	file->config = (cyaml_config_t){.log_fn = hear,
									.log_ctx = file,
									.log_level = CYAML_LOG_ERROR,
									.mem_fn = cyaml_mem,
									.flags = CYAML_CFG_NO_ALIAS};
	file->schema = schema;
	error = cyaml_load_data((const uint8_t *) text_get(&file->content), file->content.length, &file->config, schema,
							&file->data, NULL);
	if (error != CYAML_OK || file->data == NULL)
	{
		(void) refuse_complaint(file, error);
		return NULL;
	}
	return file->data;
}
