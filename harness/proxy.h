/*
 * A proxy between programs and a PostgreSQL server that knows where messages begin and end, and can hold one back.
 *
 * It knows framing only: type byte and length, and the startup codes. SSL and GSS requests are answered with no, cancel
 * requests are forwarded and neither numbered nor recorded. Queries, pipelines and COPY pass through unread; of a
 * message it looks at the first bytes, to be able to name it. Memory is bounded per connection whatever passes.
 *
 * The server takes the proxy for its client: it sees this process's account, and keys and passwords pass unchanged.
 *
 * One thread owns it: everything happens inside proxy_serve(). Sources: the manual's chapter 55 (55.2, 55.7, 55.8).
 */
#ifndef COUNTERPROOF_PROXY_H
#define COUNTERPROOF_PROXY_H

#include <sys/types.h>

#include "base.h"

typedef struct Proxy Proxy;

typedef enum
{
	FROM_CLIENT = 1,
	FROM_SERVER
} Direction;

/* A message, or a run of messages of one kind that are a point three times at most: ParameterStatus, DataRow, CopyData. */
typedef struct
{
	int connection; /* from 1 in the order in which their startup packets came since proxy_forget() */
	Direction direction;
	char type;           /* the type byte; PROXY_STARTUP for a startup packet */
	int64_t first, last; /* which messages of this direction of this connection, counted from 1 */
	char tag[64];        /* what names it: first words of a Query or Parse, tag of a CommandComplete, SQLSTATE of an
	                         error, state of a ReadyForQuery; printable, "" when there is nothing */
} ProxyMessage;

#define PROXY_STARTUP '\1'

typedef struct
{
	const char *upstream;  /* path of the server's unix socket: <dir>/.s.PGSQL.<port> */
	const char *directory; /* private, exists: the proxy's own unix socket goes there; NULL for loopback TCP */
	int port;              /* of the unix socket's name; with TCP the system chooses */
} ProxyConfig;

/* Listen. NULL: reported. */
extern Proxy *proxy_open(const ProxyConfig *config) MUST_CHECK;
extern void proxy_free(Proxy *proxy); /* closes all connections; NULL allowed */

extern const char *proxy_host(const Proxy *proxy); /* for PGHOST: the directory, or 127.0.0.1 */
extern int proxy_port(const Proxy *proxy);         /* for PGPORT */

/* Close all connections, also those not accepted yet, forget the record and what is armed; numbering starts again. */
extern void proxy_forget(Proxy *proxy);

/*
 * Hold back that message of that direction of that connection when it comes: all before it is forwarded, neither it nor
 * what follows in its direction. One at a time. A long message has come when its first 256 bytes have; nothing of it is
 * forwarded before.
 */
extern void proxy_arm(Proxy *proxy, int connection, Direction direction, int64_t nth);

/*
 * The same for the ordinal-th message, from 1, of that type and tag in that direction of that connection; `tag` NULL: any.
 */
extern void proxy_arm_kind(Proxy *proxy, int connection, Direction direction, char type, const char *tag,
						   int64_t ordinal);

typedef enum
{
	PROXY_UNSET = 0,
	PROXY_AT_POINT, /* the armed message has arrived and is held; told once */
	PROXY_WATCHED,  /* one of the watched descriptors is readable; *which says which */
	PROXY_TIMEOUT,  /* the deadline passed, or an interrupt came */
	PROXY_FAILED    /* reported */
} ProxyEvent;

/*
 * Forward until something happens that concerns the caller. `watched` are descriptors such as pidfds, at most 8; what
 * is readable at the sockets is forwarded, as far as the other side takes it, before a watched descriptor is told of.
 * While a message is held the other direction and the other connections go on. A server that is down or goes away, and
 * bytes that are not the protocol, end their connection and are no failure.
 */
extern ProxyEvent proxy_serve(Proxy *proxy, const int *watched, int count, Deadline deadline, int *which) MUST_CHECK;

extern const ProxyMessage *proxy_held(const Proxy *proxy); /* NULL when none is held */
extern void proxy_release(Proxy *proxy);                   /* forward what is held, in proxy_serve(), and go on */
extern void proxy_cut(Proxy *proxy, int connection);       /* close both sides; what was not forwarded is lost */
extern void proxy_cut_all(Proxy *proxy);                   /* every connection, also those not accepted yet */

/* What passed since proxy_forget(), in order of its arrival here; runs are one entry. Valid until the next proxy call. */
extern const ProxyMessage *proxy_record(const Proxy *proxy, size_t *count);

/* The record ends at 2^18 entries; so many messages found it full, and passed all the same. */
extern int64_t proxy_record_left_off(const Proxy *proxy);

/* The backend of a connection by its BackendKeyData, 0 before that or when there is none. */
extern int proxy_backend_pid(const Proxy *proxy, int connection);
extern int proxy_connections(const Proxy *proxy); /* numbered since proxy_forget(); cancel requests never are */

/* "Query COMMIT", "CommandComplete COMMIT", "startup packet": the message's kind in the manual's words, and its tag. */
extern void proxy_message_describe(const ProxyMessage *message, Text *text);

#endif
