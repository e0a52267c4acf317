/*
 * Standbys: the base backup, which the packaged binaries have no program for, and promotion.
 */
#include "cluster_private.h"

#include <inttypes.h>
#include <stdlib.h>

#include "../session.h"

/* What a copy must not have, or has no use for: manual 26.3.4. */
#define LEFT_OUT                                                                                                       \
	"--exclude='./pg_wal/*' --exclude='./pg_replslot/*' --exclude='./postmaster.*' --exclude='./pg_dynshmem/*' "       \
	"--exclude='./pg_notify/*' --exclude='./pg_serial/*' --exclude='./pg_snapshots/*' --exclude='./pg_stat_tmp/*' "    \
	"--exclude='./pg_subtrans/*' --exclude='pg_internal.init*' --exclude='pgsql_tmp*'"

/*
 * Files change and go while they are copied: tar says so and ends with 1, cp would fail. What is torn is mended by the WAL from
 * where the backup began.
 */
static bool
copy_data(const Cluster *primary, const Cluster *standby)
{
	static const char script[] = "umask 077; tar -C \"$1\" -cf \"$2.tar\" " LEFT_OUT " . || test $? -eq 1 && "
								 "mkdir \"$2\" && tar -C \"$2\" -xf \"$2.tar\" && rm \"$2.tar\"";
	const char *argv[] = {"/bin/sh", "-c", script, "sh", primary->data, standby->data, NULL};

	return kit_run("copy the data of a running server", argv, kit_account(standby->kit), standby->directory, COPY_MS);
}

/* `label` comes from the server, byte by byte. */
static bool
make_standby(Cluster *primary, const Cluster *standby, const char *label)
{
	static const char script[] = "umask 077; printf '%s' \"$2\" > \"$1/backup_label\" && : > \"$1/standby.signal\" && "
								 "printf '%s' \"$3\" >> \"$1/postgresql.conf\"";
	Text settings = {0}, source = {0};
	bool done;

	text_append(&source, "%s application_name='", cluster_conninfo(primary, "replication"));
	cluster_append_quoted(&source, standby->name);
	text_append(&source, "'");
	cluster_append_settings(&settings, standby->directory, NULL);
	text_append(&settings, "primary_conninfo = '");
	cluster_append_quoted(&settings, text_get(&source));
	text_append(&settings, "'\n");
	{
		const char *argv[] = {"/bin/sh", "-c", script, "sh", standby->data, label, text_get(&settings), NULL};

		done = kit_run("make a standby of a copy", argv, kit_account(standby->kit), standby->directory, COPY_MS);
	}
	text_free(&settings);
	text_free(&source);
	return done;
}

/* Both ends of a backup must come from one session. */
static bool
back_up(Cluster *primary, const Cluster *standby)
{
	Session *session = session_open(cluster_conninfo(primary, "postgres"), "counterproof backup");
	SqlResult *stop = NULL;
	bool done =
		session != NULL &&
		session_query(session, NULL, "SELECT pg_backup_start($1, fast => true)", ARGS(arg_text(standby->name))) &&
		copy_data(primary, standby) &&
		session_query(session, &stop, "SELECT labelfile FROM pg_backup_stop(wait_for_archive => false)", NO_ARGS) &&
		make_standby(primary, standby, sql_text(stop, 0, 0));

	sql_free(stop);
	session_close(session);
	return done;
}

Cluster *
cluster_create_standby(Cluster *primary, const char *name)
{
	Cluster *standby = cluster_verify_running(primary) ? cluster_make(primary->kit, name) : NULL;

	if (standby == NULL)
	{
		return NULL;
	}
	standby->standby = true;
	if (!back_up(primary, standby))
	{
		(void) cluster_free(standby);
		return NULL;
	}
	return standby;
}

bool
cluster_promote(Cluster *standby, Deadline deadline)
{
	Session *session = session_open(cluster_conninfo(standby, "postgres"), "counterproof promote");
	SqlResult *result = NULL;
	bool done = session != NULL && session_query(session, &result, "SELECT pg_promote(true, $1)",
												 ARGS(arg_int(deadline_left_ms(deadline) / 1000 + 1)));

	if (done && !sql_bool(result, 0, 0))
	{
		report_error("server %s was not promoted in time", standby->name);
		done = false;
	}
	sql_free(result);
	session_close(session);
	return done && cluster_verify_running(standby);
}

bool
cluster_stand_alone(const Cluster *cluster)
{
	char *mark = string_format("%s/standby.signal", cluster->data);
	const char *argv[] = {"/bin/rm", "-f", mark, NULL};
	bool done = !cluster->standby ||
				kit_run("make a server of a standby", argv, kit_account(cluster->kit), cluster->directory, COPY_MS);

	free(mark);
	return done;
}
