/*
 * The sockets. A connection has two flows, one a direction; a flow reads from one side into its lane and writes what
 * the lane lets pass to the other side. A round looks at what came, writes what it can, and reads once from every
 * socket that has something; so no connection starves another, and a flow whose lane is full reads nothing more.
 *
 * How a side's end travels. A server that ended, and all of it was forwarded: the connection is closed. A client that
 * ended: the server's side is shut for writing, which its backend takes for the end as it would take a close; once a
 * write shows that the client takes nothing any more, the server's side is closed.
 */
#include "../proxy.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "lane.h"
#include "record.h"

#define WATCHED_MOST 8
#define LOOK_MS 50       /* a signal that comes just before poll(2) does not end it: an interrupt is looked for */
#define REDIAL_MS 1      /* a unix socket whose queue is full says so at once, and never that it has room again */
#define DRAIN_ROUNDS 128 /* of LANE_BYTES each: more than the kernel's buffers hold between a client and us */

typedef struct
{
	Lane lane;
	int from;
	int to;
	size_t recorded; /* for record_add() */
	bool ended;      /* nothing more comes */
	bool sink;       /* who it goes to is gone: what comes is dropped */
	bool finished;   /* ended, and all was written */
} Flow;

typedef struct
{
	int number;   /* 0 before its startup packet, and for ever when it only cancels */
	bool dialing; /* the server's queue of connections was full */
	bool cut;
	Flow client;
	Flow server;
} Connection;

/* What is armed: the message whose number is nth, or the nth of its kind. */
typedef struct
{
	int connection; /* 0: nothing is armed */
	Direction direction;
	int64_t nth;
	bool by_kind;
	char type;
	bool any_tag;
	char tag[sizeof(((ProxyMessage *) NULL)->tag)];
	int64_t seen; /* of its kind */
} Point;

struct Proxy
{
	struct sockaddr_un upstream;
	char *path; /* of our own socket, NULL with TCP */
	char *host;
	int port;
	int listener;
	Connection **connections;
	size_t count;
	size_t capacity;
	struct pollfd *fds;
	int *backends; /* by number, also of connections that are closed */
	int numbered;
	Record record;
	Point armed;
	bool arrived; /* the held message was not told yet */
	bool holding;
	ProxyMessage held;
	bool failed; /* reported; proxy_serve() has to tell */
};


/* --- connections --- */

static void
close_fd(int fd)
{
	if (fd >= 0)
	{
		close(fd);
	}
}

static void
connection_free(Connection *connection)
{
	close_fd(connection->client.from);
	close_fd(connection->server.from);
	free(connection);
}

/* Connect to the server, or find its queue full and try again later. false: there is no server. */
static bool
connection_dial(Connection *connection, const struct sockaddr_un *upstream)
{
	int answer = connect(connection->server.from, (const struct sockaddr *) upstream, sizeof(*upstream));

	connection->dialing = answer != 0 && (errno == EAGAIN || errno == EINTR);
	if (answer != 0 && !connection->dialing)
	{
		report_debug("cannot connect to %s: %s", upstream->sun_path, strerror(errno));
	}
	return answer == 0 || connection->dialing;
}

/* Takes over the client's socket. */
static void
connection_add(Proxy *proxy, int client, int server)
{
	Connection *connection = memory_get(sizeof(Connection));

	lane_begin(&connection->client.lane, FRAME_STARTUP);
	lane_begin(&connection->server.lane, FRAME_TYPED);
	connection->client.from = connection->server.to = client;
	connection->server.from = connection->client.to = server;
	connection->cut = !connection_dial(connection, &proxy->upstream);
	if (proxy->count == proxy->capacity)
	{
		proxy->capacity = proxy->capacity * 2 + 8;
		proxy->connections = memory_grow(proxy->connections, proxy->capacity * sizeof(Connection *));
		proxy->fds = memory_grow(proxy->fds, (1 + WATCHED_MOST + 2 * proxy->capacity) * sizeof(struct pollfd));
	}
	proxy->connections[proxy->count++] = connection;
}

/* The next of those who wait at the listener; -1: nobody, or reported. */
static int
accept_next(Proxy *proxy)
{
	int client;

	do
	{
		client = accept4(proxy->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	} while (client < 0 && (errno == EINTR || errno == ECONNABORTED));
	if (client < 0 && errno != EAGAIN)
	{
		report_error("cannot accept a connection at %s: %s", proxy->host, strerror(errno));
		proxy->failed = true;
	}
	return client;
}

static void
accept_all(Proxy *proxy)
{
	int on = 1;
	int client;

	while ((client = accept_next(proxy)) >= 0)
	{
		int server = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

		if (server < 0)
		{
			report_error("cannot make a socket: %s", strerror(errno));
			proxy->failed = true;
			close(client);
			return;
		}
		if (proxy->path == NULL)
		{
			(void) setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		}
		connection_add(proxy, client, server);
	}
}

/* Close those who wait at the listener. */
static void
refuse_all(Proxy *proxy)
{
	int client;

	while ((client = accept_next(proxy)) >= 0)
	{
		close(client);
	}
}

/* Close and forget the connections that are over. */
static void
sweep(Proxy *proxy)
{
	size_t kept = 0;

	for (size_t i = 0; i < proxy->count; i++)
	{
		if (proxy->connections[i]->cut)
		{
			connection_free(proxy->connections[i]);
		}
		else
		{
			proxy->connections[kept++] = proxy->connections[i];
		}
	}
	proxy->count = kept;
}


/* --- messages --- */

static void
take_number(Proxy *proxy, Connection *connection)
{
	proxy->backends = memory_grow(proxy->backends, (size_t) (proxy->numbered + 1) * sizeof(int));
	proxy->backends[proxy->numbered++] = 0;
	connection->number = proxy->numbered;
}

/* SSL and GSS are answered with no, which is a byte without a frame, and are never forwarded. */
static void
answer_no(Connection *connection)
{
	lane_drop(&connection->client.lane);
	if (!lane_put(&connection->server.lane, 'N'))
	{
		connection->cut = true; /* the server spoke first, and is in the middle of a message */
	}
}

static void
note_backend(Proxy *proxy, const Connection *connection, const FrameParser *parser)
{
	size_t length;
	const unsigned char *body = frame_body(parser, &length);

	if (length >= 4)
	{
		proxy->backends[connection->number - 1] = (int) frame_number(body);
	}
}

static bool
is_of_kind(const Point *point, const ProxyMessage *message)
{
	return point->connection == message->connection && point->direction == message->direction &&
		   (!point->by_kind ||
			(point->type == message->type && (point->any_tag || strcmp(point->tag, message->tag) == 0)));
}

/* Asked once for each message, because it counts those of a kind. */
static bool
reaches(Point *point, const ProxyMessage *message)
{
	if (!is_of_kind(point, message))
	{
		return false;
	}
	return (point->by_kind ? ++point->seen : message->first) == point->nth;
}

static void
hold(Proxy *proxy, Flow *flow, const ProxyMessage *message)
{
	lane_hold(&flow->lane);
	proxy->held = *message;
	proxy->holding = true;
	proxy->arrived = true;
}

/* A message of a numbered connection: on record, and on its way unless it is the one that is waited for. */
static void
take_message(Proxy *proxy, Connection *connection, Flow *flow)
{
	const FrameParser *parser = &flow->lane.parser;
	ProxyMessage message = {.connection = connection->number,
							.direction = flow == &connection->client ? FROM_CLIENT : FROM_SERVER,
							.first = flow->lane.count + 1,
							.last = flow->lane.count + 1};

	message_name(&message, parser);
	record_add(&proxy->record, &message, &flow->recorded);
	if (message.direction == FROM_SERVER && message.type == 'K')
	{
		note_backend(proxy, connection, parser);
	}
	if (reaches(&proxy->armed, &message))
	{
		hold(proxy, flow, &message);
	}
	else
	{
		lane_pass(&flow->lane);
	}
}

static void
look_at(Proxy *proxy, Connection *connection, Flow *flow)
{
	LaneEvent event;

	while (!connection->cut && (event = lane_scan(&flow->lane)) != LANE_QUIET)
	{
		FrameKind kind = flow->lane.parser.kind;

		if (event == LANE_BROKEN)
		{
			report_debug("connection %d: what comes from the %s is not the protocol", connection->number,
						 flow == &connection->client ? "client" : "server");
			flow->ended = true;
			return;
		}
		if (kind == FRAME_SSL || kind == FRAME_GSS)
		{
			answer_no(connection);
			continue;
		}
		if (kind == FRAME_HELLO)
		{
			take_number(proxy, connection);
		}
		if (connection->number > 0)
		{
			take_message(proxy, connection, flow);
		}
		else
		{
			lane_pass(&flow->lane); /* a cancel request, or a server that speaks first */
		}
	}
}


/* --- flows --- */

static void
flow_read(Flow *flow)
{
	size_t size;
	unsigned char *room = lane_room(&flow->lane, &size);
	ssize_t got = recv(flow->from, room, size, 0);

	if (got > 0)
	{
		lane_filled(&flow->lane, (size_t) got);
	}
	else if (got == 0 || (errno != EAGAIN && errno != EINTR))
	{
		flow->ended = true;
	}
}

static void
flow_write(Flow *flow)
{
	size_t length;
	const unsigned char *bytes = lane_ready(&flow->lane, &length);

	while (length > 0 && !flow->sink)
	{
		ssize_t sent = send(flow->to, bytes, length, MSG_NOSIGNAL);

		if (sent > 0)
		{
			lane_written(&flow->lane, (size_t) sent);
			bytes = lane_ready(&flow->lane, &length);
		}
		else if (errno == EAGAIN)
		{
			return;
		}
		else if (errno != EINTR)
		{
			flow->sink = true;
			lane_discard(&flow->lane);
		}
	}
}

/* Look at what came, write what may go, and see whether that was the end of it. */
static void
flow_advance(Proxy *proxy, Connection *connection, Flow *flow)
{
	if (flow->sink)
	{
		lane_discard(&flow->lane);
	}
	look_at(proxy, connection, flow);
	if (flow->ended)
	{
		lane_end(&flow->lane);
	}
	flow_write(flow);
	if (flow->ended && !flow->finished && lane_is_empty(&flow->lane))
	{
		flow->finished = true;
		(void) shutdown(flow->to, SHUT_WR);
	}
}

static bool
is_over(const Connection *connection)
{
	return connection->server.finished ||
		   (connection->client.finished && (connection->server.sink || connection->client.lane.parser.broken));
}

static void
advance_all(Proxy *proxy)
{
	for (size_t i = 0; i < proxy->count; i++)
	{
		Connection *connection = proxy->connections[i];

		if (connection->dialing && !connection_dial(connection, &proxy->upstream))
		{
			connection->cut = true;
		}
		if (!connection->dialing && !connection->cut)
		{
			flow_advance(proxy, connection, &connection->client);
			flow_advance(proxy, connection, &connection->server);
			connection->cut = connection->cut || is_over(connection);
		}
	}
	sweep(proxy);
}


/* --- rounds --- */

/* A socket of which nothing is wanted is left out, because poll(2) would tell of its end again and again. */
static struct pollfd
want(const Connection *connection, Flow *reading, const Flow *writing)
{
	struct pollfd wanted = {.fd = reading->from};
	size_t length;

	if (!reading->ended && lane_has_room(&reading->lane))
	{
		wanted.events |= POLLIN;
	}
	(void) lane_ready(&writing->lane, &length);
	if (length > 0)
	{
		wanted.events |= POLLOUT;
	}
	if (wanted.events == 0 || connection->dialing)
	{
		wanted.fd = -1;
	}
	return wanted;
}

/* The listener first, then what the caller watches, then two for each connection. */
static nfds_t
want_all(Proxy *proxy, const int *watched, int count)
{
	nfds_t wanted = 0;

	proxy->fds[wanted++] = (struct pollfd){.fd = proxy->listener, .events = POLLIN};
	for (int i = 0; i < count; i++)
	{
		proxy->fds[wanted++] = (struct pollfd){.fd = watched[i], .events = POLLIN};
	}
	for (size_t i = 0; i < proxy->count; i++)
	{
		Connection *connection = proxy->connections[i];

		proxy->fds[wanted++] = want(connection, &connection->client, &connection->server);
		proxy->fds[wanted++] = want(connection, &connection->server, &connection->client);
	}
	return wanted;
}

static bool
anyone_dials(const Proxy *proxy)
{
	for (size_t i = 0; i < proxy->count; i++)
	{
		if (proxy->connections[i]->dialing)
		{
			return true;
		}
	}
	return false;
}

static int
least(int a, int b)
{
	return a < b ? a : b;
}

/* How long a round may wait; not at all once a watched descriptor was seen and only the rest is fetched. */
static int
patience_ms(const Proxy *proxy, Deadline deadline, bool fetching)
{
	return fetching ? 0 : least(deadline_left_ms(deadline), anyone_dials(proxy) ? REDIAL_MS : LOOK_MS);
}

/* Read once from each socket that has something. false: none had. */
static bool
read_all(Proxy *proxy, const struct pollfd *listener, const struct pollfd *sockets)
{
	size_t count = proxy->count; /* those accepted now are not in `sockets` */
	bool any = listener->revents != 0;

	for (size_t i = 0; i < 2 * count; i++)
	{
		Connection *connection = proxy->connections[i / 2];

		any = any || sockets[i].revents != 0;
		if (sockets[i].revents != 0 && (sockets[i].events & POLLIN) != 0)
		{
			flow_read(i % 2 == 0 ? &connection->client : &connection->server);
		}
	}
	if (listener->revents != 0)
	{
		accept_all(proxy); /* last: it may move proxy->fds */
	}
	return any;
}

/* The first of the watched that is readable, -1: none. */
static int
find_readable(Proxy *proxy, const int *watched, int count)
{
	for (int i = 0; i < count; i++)
	{
		if ((proxy->fds[1 + i].revents & POLLNVAL) != 0)
		{
			report_error("descriptor %d, which the proxy shall watch, is not open", watched[i]);
			proxy->failed = true;
		}
		else if (proxy->fds[1 + i].revents != 0)
		{
			return i;
		}
	}
	return -1;
}

/* Wait, read once from what is readable, write what may go. Answers whether any socket had something. */
static bool
one_round(Proxy *proxy, const int *watched, int count, int timeout_ms, int *found)
{
	nfds_t wanted = want_all(proxy, watched, count);
	bool any;

	if (poll(proxy->fds, wanted, timeout_ms) < 0)
	{
		if (errno != EINTR)
		{
			report_error("cannot wait for %d descriptors: %s", (int) wanted, strerror(errno));
			proxy->failed = true;
		}
		return true; /* nothing is known of them */
	}
	if (*found < 0)
	{
		*found = find_readable(proxy, watched, count);
	}
	any = read_all(proxy, &proxy->fds[0], &proxy->fds[1 + count]);
	advance_all(proxy);
	return any;
}

ProxyEvent
proxy_serve(Proxy *proxy, const int *watched, int count, Deadline deadline, int *which)
{
	bool last = false;
	bool quiet = false;
	int found = -1;

	if (count > WATCHED_MOST)
	{
		report_error("the proxy watches %d descriptors at most, not %d", WATCHED_MOST, count);
		return PROXY_FAILED;
	}
	advance_all(proxy); /* what was released meanwhile */
	for (int draining = 0;; draining += found >= 0)
	{
		bool fetching = found >= 0;

		if (proxy->failed)
		{
			proxy->failed = false;
			return PROXY_FAILED;
		}
		if (proxy->arrived)
		{
			proxy->arrived = false;
			return PROXY_AT_POINT;
		}
		if (fetching && (quiet || draining > DRAIN_ROUNDS))
		{
			*which = found;
			return PROXY_WATCHED;
		}
		if (!fetching && last)
		{
			return PROXY_TIMEOUT;
		}
		last = deadline_passed(deadline) || interrupt_presses();
		quiet = !one_round(proxy, watched, count, last ? 0 : patience_ms(proxy, deadline, fetching), &found);
		quiet = quiet && fetching; /* nothing had come when the watched descriptor had been seen before */
	}
}


/* --- verbs --- */

static bool
set_address(struct sockaddr_un *address, const char *path)
{
	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof(address->sun_path))
	{
		report_error("the path of a socket is too long: %s", path);
		return false;
	}
	memcpy(address->sun_path, path, strlen(path));
	return true;
}

static bool
listen_at(Proxy *proxy, const struct sockaddr *address, socklen_t size)
{
	proxy->listener = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (proxy->listener < 0 || bind(proxy->listener, address, size) != 0 || listen(proxy->listener, SOMAXCONN) != 0)
	{
		report_error("cannot listen at %s, port %d: %s", proxy->host, proxy->port, strerror(errno));
		return false;
	}
	return true;
}

/* The directory guards the socket, as it does the server's own: the programs may run under another account. */
static bool
listen_unix(Proxy *proxy, const ProxyConfig *config)
{
	struct sockaddr_un address;
	char *path = string_format("%s/.s.PGSQL.%d", config->directory, config->port);
	bool named = set_address(&address, path);

	free(path);
	proxy->host = string_copy(config->directory);
	proxy->port = config->port;
	if (!named || !listen_at(proxy, (struct sockaddr *) &address, sizeof(address)))
	{
		return false;
	}
	proxy->path = string_copy(address.sun_path);
	if (chmod(proxy->path, 0777) != 0)
	{
		report_error("cannot open %s to others: %s", proxy->path, strerror(errno));
		return false;
	}
	return true;
}

static bool
listen_tcp(Proxy *proxy)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(address);

	proxy->host = string_copy("127.0.0.1");
	if (!listen_at(proxy, (struct sockaddr *) &address, sizeof(address)))
	{
		return false;
	}
	if (getsockname(proxy->listener, (struct sockaddr *) &address, &size) != 0)
	{
		report_error("cannot find the port of a socket: %s", strerror(errno));
		return false;
	}
	proxy->port = ntohs(address.sin_port);
	return true;
}

Proxy *
proxy_open(const ProxyConfig *config)
{
	Proxy *proxy = memory_get(sizeof(Proxy));

	proxy->listener = -1;
	proxy->fds = memory_get((1 + WATCHED_MOST) * sizeof(struct pollfd));
	if (!set_address(&proxy->upstream, config->upstream) ||
		!(config->directory != NULL ? listen_unix(proxy, config) : listen_tcp(proxy)))
	{
		proxy_free(proxy);
		return NULL;
	}
	return proxy;
}

void
proxy_free(Proxy *proxy)
{
	if (proxy == NULL)
	{
		return;
	}
	for (size_t i = 0; i < proxy->count; i++)
	{
		connection_free(proxy->connections[i]);
	}
	close_fd(proxy->listener);
	if (proxy->path != NULL)
	{
		unlink(proxy->path);
	}
	record_clear(&proxy->record);
	free(proxy->connections);
	free(proxy->fds);
	free(proxy->backends);
	free(proxy->path);
	free(proxy->host);
	free(proxy);
}

const char *
proxy_host(const Proxy *proxy)
{
	return proxy->host;
}

int
proxy_port(const Proxy *proxy)
{
	return proxy->port;
}

void
proxy_forget(Proxy *proxy)
{
	proxy_cut_all(proxy);
	record_clear(&proxy->record);
	proxy->numbered = 0;
	proxy->armed = (Point){0};
}

void
proxy_arm(Proxy *proxy, int connection, Direction direction, int64_t nth)
{
	proxy->armed = (Point){.connection = connection, .direction = direction, .nth = nth};
}

void
proxy_arm_kind(Proxy *proxy, int connection, Direction direction, char type, const char *tag, int64_t ordinal)
{
	Point point = {.connection = connection,
				   .direction = direction,
				   .nth = ordinal,
				   .by_kind = true,
				   .type = type,
				   .any_tag = tag == NULL};

	snprintf(point.tag, sizeof(point.tag), "%s", tag != NULL ? tag : "");
	for (size_t i = 0; i < proxy->record.count; i++)
	{
		const ProxyMessage *message = &proxy->record.entries[i];

		point.seen += is_of_kind(&point, message) ? message->last - message->first + 1 : 0;
	}
	proxy->armed = point;
}

const ProxyMessage *
proxy_held(const Proxy *proxy)
{
	return proxy->holding ? &proxy->held : NULL;
}

void
proxy_release(Proxy *proxy)
{
	for (size_t i = 0; i < proxy->count; i++)
	{
		Connection *connection = proxy->connections[i];

		if (connection->client.lane.holding)
		{
			lane_pass(&connection->client.lane);
		}
		if (connection->server.lane.holding)
		{
			lane_pass(&connection->server.lane);
		}
	}
	proxy->holding = false;
	proxy->arrived = false;
}

void
proxy_cut(Proxy *proxy, int connection)
{
	for (size_t i = 0; i < proxy->count; i++)
	{
		if (connection > 0 && proxy->connections[i]->number == connection)
		{
			proxy->connections[i]->cut = true;
		}
	}
	sweep(proxy);
	if (proxy->holding && proxy->held.connection == connection)
	{
		proxy->holding = false;
		proxy->arrived = false;
	}
}

void
proxy_cut_all(Proxy *proxy)
{
	refuse_all(proxy);
	for (size_t i = 0; i < proxy->count; i++)
	{
		proxy->connections[i]->cut = true;
	}
	sweep(proxy);
	proxy->holding = false;
	proxy->arrived = false;
}

const ProxyMessage *
proxy_record(const Proxy *proxy, size_t *count)
{
	*count = proxy->record.count;
	return proxy->record.entries;
}

int64_t
proxy_record_left_off(const Proxy *proxy)
{
	return proxy->record.left_off;
}

int
proxy_backend_pid(const Proxy *proxy, int connection)
{
	return connection >= 1 && connection <= proxy->numbered ? proxy->backends[connection - 1] : 0;
}

int
proxy_connections(const Proxy *proxy)
{
	return proxy->numbered;
}
