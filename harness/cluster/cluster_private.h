/* What the files of the cluster module share. */
#ifndef COUNTERPROOF_CLUSTER_PRIVATE_H
#define COUNTERPROOF_CLUSTER_PRIVATE_H

#include <sys/stat.h>

#include "../cluster.h"

#define PRIVATE_NAME "cp-XXXXXX"
#define COPY_MS 60000

struct Cluster
{
	const ServerKit *kit;
	char *name;
	char *directory;
	char *data;
	char *log;
	Text conninfo;
	Process *postmaster;
	ClusterState state;
	bool ended_badly; /* its postmaster had died when it was to stop, or did so only by force */
	bool standby;     /* it was made as one */
	int slot;         /* with the reaper */
	bool keep;
};

/* One that has its directory, and no data in it yet. NULL: reported. */
extern Cluster *cluster_make(const ServerKit *kit, const char *name) MUST_CHECK;

/* What differs from initdb's file, for postgresql.conf. */
extern void cluster_append_settings(Text *text, const char *directory, const char *more);

/* Inside single quotes, where an apostrophe and a backslash stand behind a backslash, in postgresql.conf as in conninfo. */
extern void cluster_append_quoted(Text *text, const char *value);

/* No server runs alone on the data of a standby: then it is none any more. false: reported. */
extern bool cluster_stand_alone(const Cluster *cluster) MUST_CHECK;

/* The account that server programs run as, NULL: the caller's own. */
extern const Account *kit_account(const ServerKit *kit);

/* Run a program to a good end. false: reported with `purpose` and what the program said last. */
extern bool kit_run(const char *purpose, const char *const *argv, const Account *account, const char *directory,
					int64_t ms) MUST_CHECK;

/* For a message of one line: what a program said last. Cuts the newlines off the end. */
extern const char *kit_last_line(Text *output);

/* What others can change, or put there, must not become a server of ours. false: reported. */
extern bool kit_check_trusted(const char *what, const char *path, const struct stat *status) MUST_CHECK;

/* A directory owned by the account, 0700, known to the reaper. The path is the caller's. NULL: reported. */
extern char *private_directory_make(const ServerKit *kit, int *slot) MUST_CHECK;

/* Frees the path. false: reported. */
extern bool private_directory_remove(char *path, int slot) MUST_CHECK;

/* Find the initdb'd directory of this build in the cache, or make it. false: reported. */
extern bool cluster_template_ensure(const ServerKit *kit, char *path, size_t size) MUST_CHECK;

#endif
