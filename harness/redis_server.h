/*
 * A Redis of the lab's own: an append-only file, a unix socket, no TCP, in a directory of its own that is the caller's.
 *
 * It runs as whoever calls, and ends by SIGKILL alone, through fault_kill() where that is the point: it keeps nothing in
 * order for its end. A server object belongs to the thread that created it.
 */
#ifndef COUNTERPROOF_REDIS_SERVER_H
#define COUNTERPROOF_REDIS_SERVER_H

#include "base.h"
#include "proc.h"

typedef struct RedisServer RedisServer;

/* Why there can be none on this machine; NULL: there can. */
extern const char *redis_server_missing(void);

/* Its private directory below `scratch`, known to the reaper. NULL: reported. */
extern RedisServer *redis_server_create(const char *scratch) MUST_CHECK;

/* Start, or start again after its end, and wait until it has read its data and answers; `fsync` is appendfsync. false: reported. */
extern bool redis_server_start(RedisServer *server, const char *fsync, Deadline deadline) MUST_CHECK;

extern Process *redis_server_process(const RedisServer *server); /* NULL: it was not started */
extern const char *redis_server_socket(const RedisServer *server);

/*
 * Its disk hangs, as far as fsync by everysec goes: the thread that does so is stopped until the server ends. What the server
 * takes from then on stays in its own memory for up to two seconds, and is acknowledged all the same. false: reported.
 */
extern bool redis_server_hold_sync(RedisServer *server) MUST_CHECK;

/* How often it has waited for those two seconds and then written all the same, by its log. false: reported. */
extern bool redis_server_unsynced_writes(const RedisServer *server, int64_t *count) MUST_CHECK;

/* Its data are gone, as with its disk. After its end. false: reported. */
extern bool redis_server_lose_data(RedisServer *server) MUST_CHECK;

/* End it and remove the directory. NULL allowed. false: reported. */
extern bool redis_server_free(RedisServer *server);

/*
 * One that outlives the caller, for programs of crash points: in this folder, which is made where it is not there, with its
 * socket `socket` in it, unless one answers there already. Any number may ask for it at once. false: reported.
 */
extern bool redis_server_stay(const char *folder, Deadline deadline) MUST_CHECK;

#endif
