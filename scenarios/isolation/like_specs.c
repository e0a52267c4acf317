#include "like_specs.h"

#include <stdlib.h>

#include "32/recovery_lab.h"

enum
{
	ITEMS = 2
};

const char *
like_prepared(Scene *scene)
{
	static char name[64];
	Session *lab = like_lab(scene, ITEMS);
	SqlResult *rows = NULL;

	require(scene, session_execute_file(lab, scene_sql(scene, "isolation/like_judged.sql")));
	require(scene, session_query(lab, &rows, "SELECT current_database()", NO_ARGS));
	snprintf(name, sizeof(name), "%s", sql_text(rows, 0, 0));
	sql_free(rows);
	scene_close_session(scene, lab);
	return name;
}

/* Nobody stays connected. */
static void
load_once(Scene *scene, const char *path)
{
	Session *lab = scene_session(scene, "lab");

	load_variant(scene, lab, path);
	scene_close_session(scene, lab);
}

SpecReport *
judge_twin(Scene *scene, const char *file, const char *prepared, const char *twin, const char *sql)
{
	char *wrong = string_format("like/mutants/%s/%s", twin, sql);
	char *right = string_format("like/%s", sql);
	SpecReport *report;

	note(scene, "loaded: %s", wrong);
	load_once(scene, wrong);
	report = judge_spec(scene, file, prepared);
	load_once(scene, right);
	free(wrong);
	free(right);
	return report;
}
