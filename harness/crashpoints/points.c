#include "points.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* --- one record --- */

/* The messages of one direction of one connection, in order. */
typedef struct
{
	const ProxyMessage **messages;
	size_t count;
	size_t next;
} Lane;

static Lane
lane_of(const ProxyMessage *record, size_t count, int connection, Direction direction)
{
	Lane lane = {.messages = memory_get(sizeof(ProxyMessage *) * (count + 1))};

	for (size_t i = 0; i < count; i++)
	{
		if (record[i].connection == connection && record[i].direction == direction)
		{
			lane.messages[lane.count++] = &record[i];
		}
	}
	return lane;
}

static bool
same_kind(const CrashPoint *a, const CrashPoint *b)
{
	return a->message.connection == b->message.connection && a->message.direction == b->message.direction &&
		   a->message.type == b->message.type && (a->tag_varies || strcmp(a->message.tag, b->message.tag) == 0);
}

/* Only DataRow, CopyData and ParameterStatus come in runs, which have one tag, "": their numbers count all before. */
static int64_t
ordinal_of(const Lane *lane, const ProxyMessage *message, int64_t nth)
{
	int64_t ordinal = nth - message->first + 1;

	for (size_t i = 0; i < lane->count && lane->messages[i] != message; i++)
	{
		const ProxyMessage *before = lane->messages[i];

		if (before->type == message->type && strcmp(before->tag, message->tag) == 0)
		{
			ordinal += before->last - before->first + 1;
		}
	}
	return ordinal;
}

static void
add_point(CrashPoints *points, const Lane *lane, const ProxyMessage *message, int64_t nth)
{
	CrashPoint *point;

	points->points = memory_grow(points->points, sizeof(CrashPoint) * ((size_t) points->count + 1));
	point = &points->points[points->count++];
	*point = (CrashPoint){.message = *message, .ordinal = ordinal_of(lane, message, nth)};
	point->message.first = nth;
	point->message.last = nth;
}

/* One message, or the first, one inside and the last of a run. */
static void
add_run(CrashPoints *points, const Lane *lane, const ProxyMessage *message)
{
	int64_t length = message->last - message->first + 1;

	add_point(points, lane, message, message->first);
	if (length > 2)
	{
		add_point(points, lane, message, message->first + length / 2);
	}
	if (length > 1)
	{
		add_point(points, lane, message, message->last);
	}
}

/* After these the client waits for an answer. CopyDone and CopyFail end what CopyInResponse has begun. */
static bool
client_gives_turn(char type)
{
	return type == PROXY_STARTUP || strchr("QSFpcf", type) != NULL;
}

/* After these the server waits: ReadyForQuery, CopyInResponse, CopyBothResponse. */
static bool
server_gives_turn(char type)
{
	return strchr("ZGW", type) != NULL;
}

/* Up to the first ReadyForQuery, what a server says is a point only where it decides something. */
static bool
counts_in_startup(const Lane *lane, const ProxyMessage *message)
{
	if (message->type != 'R')
	{
		return message->type == 'Z' || message->type == 'E';
	}
	for (size_t i = 0; lane->messages[i] != message; i++)
	{
		if (lane->messages[i]->type == 'R')
		{
			return false;
		}
	}
	return true;
}

/*
 * Client and server take turns. Which of two messages passed first is not the same from run to run when both are under
 * way, so the turns are read off each direction alone.
 */
static void
derive_connection(const ProxyMessage *record, size_t count, int connection, CrashPoints *points)
{
	Lane client = lane_of(record, count, connection, FROM_CLIENT);
	Lane server = lane_of(record, count, connection, FROM_SERVER);
	bool starting = true;

	while (client.next < client.count || server.next < server.count)
	{
		bool turn = false;

		while (!turn && client.next < client.count)
		{
			const ProxyMessage *message = client.messages[client.next++];

			add_run(points, &client, message);
			turn = client_gives_turn(message->type);
		}
		turn = false;
		while (!turn && server.next < server.count)
		{
			const ProxyMessage *message = server.messages[server.next++];

			if (!starting || counts_in_startup(&server, message))
			{
				add_run(points, &server, message);
			}
			turn = server_gives_turn(message->type);
			starting = starting && message->type != 'Z';
		}
	}
	free(client.messages);
	free(server.messages);
}

void
crash_points_derive(const ProxyMessage *record, size_t count, CrashPoints *points)
{
	for (size_t i = 0; i < count; i++)
	{
		points->connections = record[i].connection > points->connections ? record[i].connection : points->connections;
	}
	for (int connection = 1; connection <= points->connections; connection++)
	{
		derive_connection(record, count, connection, points);
	}
}


/* --- several --- */

static bool
same_place(const ProxyMessage *a, const ProxyMessage *b)
{
	return a->connection == b->connection && a->direction == b->direction && a->type == b->type && a->first == b->first;
}

/* A text in a query that differs from run to run, a time say, is no other message. */
void
crash_points_compare(CrashPoints *points, const CrashPoints *other)
{
	points->unstable = points->unstable || points->count != other->count;
	for (int i = 0; i < points->count && !points->unstable; i++)
	{
		points->unstable = !same_place(&points->points[i].message, &other->points[i].message);
	}
	for (int i = 0; i < points->count && points->unstable; i++)
	{
		points->points[i].tag_varies = false; /* ordinals are counted by tags */
	}
	for (int i = 0; i < points->count && !points->unstable; i++)
	{
		if (strcmp(points->points[i].message.tag, other->points[i].message.tag) != 0)
		{
			points->points[i].tag_varies = true;
		}
	}
}

/* Whether one ends a turn and the other begins the next. */
static bool
turn_between(const CrashPoint *before, const CrashPoint *after)
{
	return before->message.connection != after->message.connection ||
		   before->message.direction != after->message.direction;
}

void
crash_points_keep_ends(CrashPoints *points)
{
	int kept = 0;
	bool begins = true;

	for (int i = 0; i < points->count; i++)
	{
		bool ends = i + 1 == points->count || turn_between(&points->points[i], &points->points[i + 1]);

		if (begins || ends)
		{
			points->points[kept++] = points->points[i];
		}
		begins = ends;
	}
	points->count = kept;
}

bool
crash_point_is(const CrashPoint *point, const ProxyMessage *message)
{
	CrashPoint candidate = {.message = *message};

	return same_kind(point, &candidate);
}

static const char *
ordinal_suffix(int64_t number)
{
	int64_t tens = number % 100;

	if (tens >= 11 && tens <= 13)
	{
		return "th";
	}
	return number % 10 == 1 ? "st" : number % 10 == 2 ? "nd" : number % 10 == 3 ? "rd" : "th";
}

static bool
comes_in_runs(const ProxyMessage *message)
{
	return message->type == 'd' || (message->direction == FROM_SERVER && strchr("DS", message->type) != NULL);
}

void
crash_point_describe(const CrashPoints *points, const CrashPoint *point, Text *text)
{
	ProxyMessage message = point->message;

	if (point->tag_varies)
	{
		message.tag[0] = '\0';
	}
	if (points->connections > 1)
	{
		text_append(text, "connection %d ", message.connection);
	}
	if (points->unstable)
	{
		text_append(text, "%" PRId64 "%s ", point->ordinal, ordinal_suffix(point->ordinal));
	}
	text_append(text, "%s ", message.direction == FROM_CLIENT ? "client" : "server");
	proxy_message_describe(&message, text);
	if (!points->unstable && comes_in_runs(&message))
	{
		text_append(text, " %" PRId64, point->ordinal);
	}
}

void
crash_points_free(CrashPoints *points)
{
	free(points->points);
	*points = (CrashPoints){0};
}
