/*
 * A PostgreSQL server as an object: the only user of initdb, pg_ctl and postgres.
 *
 * One initdb per machine and version is cached and then copied. Data and socket lie in a short private directory,
 * mode 0700, owned by the server's account (as root: COUNTERPROOF_USER, default nobody; else the caller), entered with
 * the reaper before anything starts. No TCP. Settings that decide truth stay at PostgreSQL's defaults.
 * Each verb asserts the state it needs, acts, then verifies. A cluster belongs to the process that created it.
 */
#ifndef COUNTERPROOF_CLUSTER_H
#define COUNTERPROOF_CLUSTER_H

#include "base.h"
#include "proc.h"

typedef struct Cluster Cluster;

/* The superuser, and the port that is part of the socket's name: nothing listens on TCP. */
#define CLUSTER_USER "counterproof"
#define CLUSTER_PORT 5432

/* Which binaries, whose account, where. Filled by server_kit_find(); lives as long as its clusters. */
typedef struct
{
	char bindir[512];
	int major;
	char version[64];  /* "16.14", from postgres --version */
	char cache[512];   /* holds the initdb'd template; ownership and mode checked */
	char scratch[512]; /* where private directories are made: TMPDIR or /tmp */
	bool in_memory;    /* that is a memory file system; see server_kit_prefer_memory() */
	bool drops;        /* root: server processes run as `account` */
	Account account;   /* its name lies in account_name: a kit is not copied */
	char account_name[64];
	const char *settings; /* further lines for postgresql.conf of every server, NULL: none; borrowed */
} ServerKit;

/*
 * Check the binaries in `bindir` (must be `major`) and decide account and directories. false: reported, one line.
 * COUNTERPROOF_USER and COUNTERPROOF_CACHE are honoured.
 */
extern bool server_kit_find(ServerKit *kit, const char *bindir, int major) MUST_CHECK;

/*
 * For servers on which many databases are made and thrown away: their directories go to the memory file system, when
 * TMPDIR names no other place and there is room for so many bytes twice over. What an immediate stop leaves is the same there
 * as on a disk; syncing costs nothing.
 */
extern void server_kit_prefer_memory(ServerKit *kit, int64_t bytes);

typedef enum
{
	CLUSTER_UNSET = 0,
	CLUSTER_STOPPED,
	CLUSTER_RUNNING,
	CLUSTER_CRASHED
} ClusterState;

/*
 * Create (a copy of the cached initdb; initdb first if there is none). NULL: reported, or interrupted. `name` is for
 * messages only.
 */
extern Cluster *cluster_create(const ServerKit *kit, const char *name) MUST_CHECK;

/*
 * A standby of a running server: its data, copied between pg_backup_start() and pg_backup_stop(), without the WAL, which
 * it streams from there on as `name`. Not started. It is to be while the primary still has that WAL, so soon. What ALTER
 * SYSTEM had set by then holds for it, too. NULL: reported.
 */
extern Cluster *cluster_create_standby(Cluster *primary, const char *name) MUST_CHECK;

/* pg_promote(): it ends recovery and takes writes, on a timeline of its own. The old primary is not asked. false: reported. */
extern bool cluster_promote(Cluster *standby, Deadline deadline) MUST_CHECK;

/* Append one line to postgresql.conf; before start. */
extern bool cluster_configure(Cluster *cluster, const char *line) MUST_CHECK;

/*
 * Start and wait until it accepts connections; a server that dies shows its log's last lines. Its version is compared.
 * false: reported, or interrupted; it is stopped again.
 */
extern bool cluster_start(Cluster *cluster, Deadline deadline) MUST_CHECK;

/*
 * `pg_ctl restart -m immediate`: aborts every server process, then crash recovery. Waits for connections. The new
 * postmaster is an orphan of pg_ctl: this process becomes a child subreaper to inherit it.
 */
extern bool cluster_restart_immediate(Cluster *cluster, Deadline deadline) MUST_CHECK;

/*
 * SIGQUIT to the postmaster, which aborts every server process, and wait until it has gone; cluster_start() then
 * recovers. Costs a few milliseconds, no program is started. false: reported, it is CLUSTER_CRASHED.
 */
extern bool cluster_stop_immediate(Cluster *cluster) MUST_CHECK;

/* Check that the postmaster lives, is the one started, and accepts connections. false: reported, it is CLUSTER_CRASHED. */
extern bool cluster_verify_running(Cluster *cluster) MUST_CHECK;

extern ClusterState cluster_state(const Cluster *cluster);
extern pid_t cluster_postmaster(const Cluster *cluster);
extern const char *cluster_directory(const Cluster *cluster); /* the private directory */
extern const char *cluster_log(const Cluster *cluster);       /* path of server.log */

extern const char *cluster_name(const Cluster *cluster);

/* Copy server.log, before it goes with the server. A failure is reported, and spoils nothing. */
extern void cluster_save_log(const Cluster *cluster, const char *path);

/* Conninfo for a database of this cluster (host, port, user, dbname); valid until the next call on this cluster. */
extern const char *cluster_conninfo(Cluster *cluster, const char *database);

/*
 * Leave it running and its directory in place when freed (--keep). Appends to `ending` the command that ends it and
 * removes what is left.
 */
extern void cluster_keep(Cluster *cluster, Text *ending);

/*
 * Stop at once (SIGQUIT), confirm, and remove the directory. One that crashed is first run once alone, which clears away
 * the shared memory that a killed postmaster leaves; where that fails, the memory may be left, but the directory is
 * removed. No interrupt keeps it from waiting. NULL allowed. false: reported.
 */
extern bool cluster_free(Cluster *cluster);

#endif
