/* Loading the schema and functions of the default design, adding items, and reporting. */
#include "design.h"
#include "like_private.h"

bool
like_create(Session *session, const char *sql_folder)
{
	return like_design_create(session, like_design_find(NULL), sql_folder);
}

bool
like_add_item(Session *session, int64_t item, const char *label)
{
	return session_query(session, NULL, "SELECT like_add_item($1, $2)", ARGS(arg_int(item), arg_text(label)));
}

void
like_report(const Session *session, SqlStatus status, const char *what)
{
	const SqlError *error = session_error(session);

	report_error("%s: %s %s%s%s: %s", what, sql_status_name(status), error->sqlstate,
				 error->warning[0] == '\0' ? "" : " after warning ", error->warning, error->message);
}
