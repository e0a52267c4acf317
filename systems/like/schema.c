/* Loading the schema and functions, and adding items. */
#include "like_private.h"

#include <stdlib.h>

static const char *const SQL_FILES[] = {
	"schema.sql",
	"write.sql",
	"pull.sql",
	"consume.sql",
	"rebuild_snapshot.sql",
	"rebuild_install.sql",
	"audit_write_side.sql",
	"audit_read_side.sql",
	"read_count.sql",
};

bool
like_create(Session *session, const char *sql_folder)
{
	for (size_t i = 0; i < LENGTH_OF(SQL_FILES); i++)
	{
		char *path = string_format("%s/%s", sql_folder, SQL_FILES[i]);
		bool ok = session_execute_file(session, path);

		free(path);
		if (!ok)
		{
			return false;
		}
	}
	return true;
}

bool
like_add_item(Session *session, int64_t item, const char *label)
{
	/* One statement, so that no transaction ever shows an item without its count row. */
	return session_query(session, NULL,
						 "WITH added AS (INSERT INTO item (item_id, label) VALUES ($1, $2) RETURNING item_id) "
						 "INSERT INTO like_count (item_id, n, base_seq) SELECT item_id, 0, 0 FROM added",
						 ARGS(arg_int(item), arg_text(label)));
}

void
like_report(const Session *session, SqlStatus status, const char *what)
{
	const SqlError *error = session_error(session);

	report_error("%s: %s %s%s%s: %s", what, sql_status_name(status), error->sqlstate,
				 error->warning[0] == '\0' ? "" : " after warning ", error->warning, error->message);
}
