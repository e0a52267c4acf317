/*
 * A YAML file that libcyaml reads by a schema, with complaints that name line and column. Where something stands is asked of
 * libyaml, on which libcyaml rests. libcyaml's own leniences (aliases, several documents, texts that end at a zero byte) are refused.
 */
#ifndef COUNTERPROOF_YAML_FILE_H
#define COUNTERPROOF_YAML_FILE_H

#include <cyaml/cyaml.h>
#include <yaml.h>

#include "base.h"

typedef struct YamlFile YamlFile;

/* NULL: it cannot be read, or is no mapping, reported. */
extern YamlFile *yaml_file_open(const char *path) MUST_CHECK;
extern void yaml_file_close(YamlFile *file); /* what was loaded, too; NULL allowed */

/*
 * By the schema of the outermost mapping, a CYAML_VALUE_MAPPING with CYAML_FLAG_POINTER; schema and what it names must stay
 * until the file is closed, as what is loaded does. NULL: reported, an unknown key with the nearest of the schema's.
 */
extern void *yaml_file_load(YamlFile *file, const cyaml_schema_value_t *schema) MUST_CHECK;

extern const yaml_node_t *yaml_file_root(YamlFile *file);

/* The value of a key of a mapping; NULL: it is not there. */
extern const yaml_node_t *yaml_file_value(YamlFile *file, const yaml_node_t *mapping, const char *key);

/* The element of a sequence, from 0; NULL: there are not so many. */
extern const yaml_node_t *yaml_file_element(YamlFile *file, const yaml_node_t *sequence, size_t index);

/* The nth key of that name in any mapping, in the order of the file, from 1; NULL: there are not so many. */
extern const yaml_node_t *yaml_file_key(YamlFile *file, const char *key, int nth);

/* Says it about the place of a node. Always false. */
extern bool yaml_file_refuse(const YamlFile *file, const yaml_node_t *node, const char *format, ...) PRINTF_LIKE(3, 4);

#endif
