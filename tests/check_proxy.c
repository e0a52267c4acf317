/*
 * The proxy between raw sockets: a client and a server that say exactly what a test wants, and read what arrives. Its
 * descriptors are watched by the proxy itself, so that one thread plays all three. Then the real server, which
 * COUNTERPROOF_TEST_CONNINFO names, with sessions in a thread of their own.
 */
#include "proxy.h"
#include "session.h"
#include "suite.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WAIT_MS 20000
#define NOTHING_MS 30 /* what should not come has this long to come */
#define PORT 5432

static char directory[] = "/tmp/check-proxy-XXXXXX";
static char upstream[64];
static int listener = -1; /* of the server that a test plays */
static Proxy *proxy;


/* --- sockets --- */

static Deadline
soon(void)
{
	return deadline_in_ms(WAIT_MS);
}

static int
listen_unix(const char *path, int backlog)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(bind(fd, (struct sockaddr *) &address, sizeof(address)), 0);
	ck_assert_int_eq(listen(fd, backlog), 0);
	return fd;
}

static int
connect_unix(const char *folder)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/.s.PGSQL.%d", folder, PORT);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(connect(fd, (struct sockaddr *) &address, sizeof(address)), 0);
	return fd;
}

static int
connect_tcp(int port)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t) port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(connect(fd, (struct sockaddr *) &address, sizeof(address)), 0);
	return fd;
}

static void
open_proxy(bool tcp)
{
	ProxyConfig config = {.upstream = upstream, .directory = tcp ? NULL : directory, .port = PORT};

	proxy = proxy_open(&config);
	ck_assert_ptr_nonnull(proxy);
}

static void
setup(void)
{
	ck_assert_ptr_nonnull(mkdtemp(directory));
	snprintf(upstream, sizeof(upstream), "%s/server", directory);
	listener = listen_unix(upstream, 64);
	open_proxy(false);
}

static void
teardown(void)
{
	proxy_free(proxy);
	close(listener);
	unlink(upstream);
	ck_assert_int_eq(rmdir(directory), 0); /* so the proxy's socket is gone, too */
}

static void
say(int fd, const Text *bytes)
{
	ck_assert_int_eq(send(fd, bytes->data, bytes->length, MSG_NOSIGNAL), (ssize_t) bytes->length);
}

/* Let the proxy work until the descriptor has something. */
static void
serve_until_readable(int fd)
{
	int which = -1;

	ck_assert_int_eq(proxy_serve(proxy, &fd, 1, soon(), &which), PROXY_WATCHED);
	ck_assert_int_eq(which, 0);
}

static void
serve_until_held(void)
{
	ck_assert_int_eq(proxy_serve(proxy, NULL, 0, soon(), NULL), PROXY_AT_POINT);
	ck_assert_ptr_nonnull(proxy_held(proxy));
}

static void
expect(int fd, const char *bytes, size_t length)
{
	char got[4096];

	for (size_t have = 0; have < length;)
	{
		size_t wanted = length - have < sizeof(got) ? length - have : sizeof(got);
		ssize_t more;

		serve_until_readable(fd);
		more = recv(fd, got, wanted, 0);
		ck_assert_int_gt(more, 0);
		ck_assert_mem_eq(got, bytes + have, (size_t) more);
		have += (size_t) more;
	}
}

static void
expect_text(int fd, const Text *bytes)
{
	expect(fd, bytes->data, bytes->length);
}

static void
expect_nothing(int fd)
{
	int which;

	ck_assert_int_eq(proxy_serve(proxy, &fd, 1, deadline_in_ms(NOTHING_MS), &which), PROXY_TIMEOUT);
}

/* Reset counts as an end: the kernel tells it so where something was left unread. */
static void
expect_end(int fd)
{
	char byte;
	ssize_t got;

	serve_until_readable(fd);
	got = recv(fd, &byte, 1, 0);
	ck_assert_msg(got == 0 || (got < 0 && errno == ECONNRESET), "got %d bytes instead of the end", (int) got);
}

static int
accept_server(void)
{
	int fd;

	serve_until_readable(listener);
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	return fd;
}


/* --- messages --- */

static void
append_number(Text *text, uint32_t number)
{
	unsigned char bytes[4] = {(unsigned char) (number >> 24), (unsigned char) (number >> 16),
							  (unsigned char) (number >> 8), (unsigned char) number};

	text_append_bytes(text, (const char *) bytes, sizeof(bytes));
}

static void
append_message(Text *text, char type, const char *body, size_t length)
{
	text_append_bytes(text, &type, 1);
	append_number(text, (uint32_t) length + 4);
	text_append_bytes(text, body, length);
}

/* A body with its terminating zero. */
#define MESSAGE(text, type, body) append_message(text, type, body, sizeof(body))
#define BARE_MESSAGE(text, type) append_message(text, type, "", 0)

static void
append_request(Text *text, uint32_t code)
{
	append_number(text, 8);
	append_number(text, code);
}

static void
append_startup(Text *text)
{
	static const char names[] = "user\0somebody\0database\0somewhere\0";

	append_number(text, 8 + sizeof(names));
	append_number(text, 196608);
	text_append_bytes(text, names, sizeof(names));
}

static void
append_cancel(Text *text)
{
	append_number(text, 16);
	append_number(text, 80877102);
	append_number(text, 4242);
	append_number(text, 1);
}

/* What a client says in a session, and a server; the tables below say it again in the proxy's words. */
static void
append_client_talk(Text *text)
{
	append_startup(text);
	MESSAGE(text, 'p', "secret");
	MESSAGE(text, 'Q', "  BEGIN \n\t WORK ; ");
	MESSAGE(text, 'P', "statement\0INSERT INTO t VALUES ($1, 'caf\xc3\xa9')");
	MESSAGE(text, 'B', "portal\0statement\0\0\0\0\0\0\0");
	BARE_MESSAGE(text, 'S');
	MESSAGE(text, 'd', "1\n");
	MESSAGE(text, 'd', "2\n");
	MESSAGE(text, 'd', "3\n");
	BARE_MESSAGE(text, 'c');
	BARE_MESSAGE(text, 'X');
}

static const ProxyMessage client_talk[] = {
	{1, FROM_CLIENT, PROXY_STARTUP, 1, 1, ""},
	{1, FROM_CLIENT, 'p', 2, 2, ""},
	{1, FROM_CLIENT, 'Q', 3, 3, "BEGIN WORK ;"},
	{1, FROM_CLIENT, 'P', 4, 4, "INSERT INTO t VALUES ($1, 'caf?\?')"},
	{1, FROM_CLIENT, 'B', 5, 5, ""},
	{1, FROM_CLIENT, 'S', 6, 6, ""},
	{1, FROM_CLIENT, 'd', 7, 9, ""},
	{1, FROM_CLIENT, 'c', 10, 10, ""},
	{1, FROM_CLIENT, 'X', 11, 11, ""},
};

#define CLIENT_MESSAGES 11

static void
append_server_talk(Text *text)
{
	append_message(text, 'R', "\0\0\0\0", 4);
	MESSAGE(text, 'S', "server_version\0 16.14");
	MESSAGE(text, 'S', "TimeZone\0UTC");
	append_message(text, 'K', "\0\0\x10\x92\0\0\0\1", 8);
	append_message(text, 'Z', "I", 1);
	MESSAGE(text, 'T', "\0\1n");
	MESSAGE(text, 'D',
			"\0\1\0\0\0\1"
			"1");
	MESSAGE(text, 'D',
			"\0\1\0\0\0\1"
			"2");
	MESSAGE(text, 'C', "SELECT 2");
	MESSAGE(text, 'N', "SNOTICE\0C00000\0Mhello\0");
	MESSAGE(text, 'E', "SERROR\0VERROR\0C23505\0Mduplicate key\0");
	append_message(text, 'Z', "E", 1);
}

static const ProxyMessage server_talk[] = {
	{1, FROM_SERVER, 'R', 1, 1, "0"},        {1, FROM_SERVER, 'S', 2, 3, ""},
	{1, FROM_SERVER, 'K', 4, 4, ""},         {1, FROM_SERVER, 'Z', 5, 5, "I"},
	{1, FROM_SERVER, 'T', 6, 6, ""},         {1, FROM_SERVER, 'D', 7, 8, ""},
	{1, FROM_SERVER, 'C', 9, 9, "SELECT 2"}, {1, FROM_SERVER, 'N', 10, 10, "00000"},
	{1, FROM_SERVER, 'E', 11, 11, "23505"},  {1, FROM_SERVER, 'Z', 12, 12, "E"},
};

#define SERVER_MESSAGES 12

/* Where message n, from 1, begins in what was appended; with n one too high, where the last ends. */
static size_t
offset_of(const Text *text, int64_t n, bool startup)
{
	size_t offset = 0;

	for (int64_t i = 1; i < n; i++)
	{
		const unsigned char *at = (const unsigned char *) text->data + offset + (startup && i == 1 ? 0 : 1);

		offset += (size_t) (at[0] << 24 | at[1] << 16 | at[2] << 8 | at[3]) + (startup && i == 1 ? 0 : 1);
	}
	return offset;
}

static void
check_record(Direction direction, const ProxyMessage *wanted, size_t count)
{
	size_t recorded;
	const ProxyMessage *record = proxy_record(proxy, &recorded);
	size_t seen = 0;

	for (size_t i = 0; i < recorded; i++)
	{
		if (record[i].direction == direction)
		{
			ck_assert_uint_lt(seen, count);
			ck_assert_int_eq(record[i].connection, wanted[seen].connection);
			ck_assert_int_eq(record[i].type, wanted[seen].type);
			ck_assert_int_eq(record[i].first, wanted[seen].first);
			ck_assert_int_eq(record[i].last, wanted[seen].last);
			ck_assert_str_eq(record[i].tag, wanted[seen].tag);
			seen++;
		}
	}
	ck_assert_uint_eq(seen, count);
}

/* A client and the server's end of its connection, after the startup packet. */
typedef struct
{
	int client;
	int server;
} Pair;

static Pair
open_pair(void)
{
	Text startup = {0};
	Pair pair = {.client = connect_unix(directory)};

	append_startup(&startup);
	say(pair.client, &startup);
	pair.server = accept_server();
	expect_text(pair.server, &startup);
	text_free(&startup);
	return pair;
}

static void
close_pair(Pair pair)
{
	close(pair.client);
	close(pair.server);
}

/* A query goes through, and an answer comes back. */
static void
check_pair_talks(Pair pair)
{
	Text query = {0};
	Text answer = {0};

	MESSAGE(&query, 'Q', "SELECT 1");
	MESSAGE(&answer, 'C', "SELECT 1");
	say(pair.client, &query);
	expect_text(pair.server, &query);
	say(pair.server, &answer);
	expect_text(pair.client, &answer);
	text_free(&query);
	text_free(&answer);
}


/* --- what passes, and its record --- */

START_TEST(messages_pass_and_are_named)
{
	Text client = {0};
	Text server = {0};
	Pair pair = {.client = connect_unix(directory)};

	append_client_talk(&client);
	append_server_talk(&server);
	say(pair.client, &client);
	pair.server = accept_server();
	expect_text(pair.server, &client);
	say(pair.server, &server);
	expect_text(pair.client, &server);
	check_record(FROM_CLIENT, client_talk, LENGTH_OF(client_talk));
	check_record(FROM_SERVER, server_talk, LENGTH_OF(server_talk));
	ck_assert_int_eq(proxy_connections(proxy), 1);
	ck_assert_int_eq(proxy_backend_pid(proxy, 1), 4242);
	ck_assert_int_eq(proxy_backend_pid(proxy, 2), 0);
	ck_assert_int_eq(proxy_backend_pid(proxy, 0), 0);
	close_pair(pair);
	text_free(&client);
	text_free(&server);
}
END_TEST

/* Pieces of 1, 2, 3 .. bytes; each is forwarded before the next is sent. */
START_TEST(pieces_of_any_size_are_the_same_messages)
{
	size_t piece = (size_t) _i + 1;
	Text client = {0};
	Text server = {0};
	Pair pair = {.client = connect_unix(directory)};

	append_client_talk(&client);
	append_server_talk(&server);
	pair.server = accept_server();
	for (size_t at = 0; at < client.length; at += piece)
	{
		Text part = {.data = client.data + at, .length = client.length - at < piece ? client.length - at : piece};

		say(pair.client, &part);
		ck_assert_int_eq(proxy_serve(proxy, NULL, 0, deadline_in_ms(0), NULL), PROXY_TIMEOUT);
	}
	expect_text(pair.server, &client);
	for (size_t at = 0; at < server.length; at += piece)
	{
		Text part = {.data = server.data + at, .length = server.length - at < piece ? server.length - at : piece};

		say(pair.server, &part);
		ck_assert_int_eq(proxy_serve(proxy, NULL, 0, deadline_in_ms(0), NULL), PROXY_TIMEOUT);
	}
	expect_text(pair.client, &server);
	check_record(FROM_CLIENT, client_talk, LENGTH_OF(client_talk));
	check_record(FROM_SERVER, server_talk, LENGTH_OF(server_talk));
	close_pair(pair);
	text_free(&client);
	text_free(&server);
}
END_TEST

static void
check_described(Direction direction, char type, const char *tag, const char *wanted)
{
	ProxyMessage message = {.direction = direction, .type = type};
	Text text = {0};

	snprintf(message.tag, sizeof(message.tag), "%s", tag);
	proxy_message_describe(&message, &text);
	ck_assert_str_eq(text_get(&text), wanted);
	text_free(&text);
}

START_TEST(messages_are_described_in_the_manuals_words)
{
	check_described(FROM_CLIENT, 'Q', "COMMIT", "Query COMMIT");
	check_described(FROM_SERVER, 'C', "COMMIT", "CommandComplete COMMIT");
	check_described(FROM_CLIENT, PROXY_STARTUP, "", "startup packet");
	check_described(FROM_CLIENT, 'S', "", "Sync");
	check_described(FROM_SERVER, 'S', "", "ParameterStatus");
	check_described(FROM_SERVER, 'q', "", "message of type q");
}
END_TEST

/* A run goes on where another direction or connection comes between, not where another kind of message does. */
START_TEST(runs_are_one_entry)
{
	static const ProxyMessage wanted[] = {
		{1, FROM_SERVER, 'D', 1, 2, ""},
		{2, FROM_SERVER, 'D', 1, 1, ""},
		{1, FROM_SERVER, 'N', 3, 3, "01000"},
		{1, FROM_SERVER, 'D', 4, 4, ""},
	};
	Pair one = open_pair();
	Pair two = open_pair();
	Text row = {0};
	Text warning = {0};

	MESSAGE(&row, 'D', "\0\0");
	MESSAGE(&warning, 'N', "SWARNING\0C01000\0");
	say(one.server, &row);
	expect_text(one.client, &row);
	say(two.server, &row);
	expect_text(two.client, &row);
	say(one.server, &row);
	expect_text(one.client, &row);
	say(one.server, &warning);
	expect_text(one.client, &warning);
	say(one.server, &row);
	expect_text(one.client, &row);
	check_record(FROM_SERVER, wanted, LENGTH_OF(wanted));
	close_pair(one);
	close_pair(two);
	text_free(&row);
	text_free(&warning);
}
END_TEST

#define RECORD_MOST (1 << 18)

START_TEST(the_record_is_bounded)
{
	Pair pair = open_pair();
	Text syncs = {0};
	size_t count;
	int64_t sent = 1;

	for (int i = 0; i < 1000; i++)
	{
		BARE_MESSAGE(&syncs, 'S');
	}
	for (; sent <= RECORD_MOST + 5000; sent += 1000)
	{
		say(pair.client, &syncs);
		expect_text(pair.server, &syncs);
	}
	(void) proxy_record(proxy, &count);
	ck_assert_uint_eq(count, RECORD_MOST);
	ck_assert_int_eq(proxy_record_left_off(proxy), sent - RECORD_MOST);
	proxy_forget(proxy);
	ck_assert_int_eq(proxy_record_left_off(proxy), 0);
	close_pair(pair);
	text_free(&syncs);
}
END_TEST


/* --- holding --- */

/* Message n of the client's talk is held: what stands before it has arrived, and the server's talk goes on. */
START_TEST(any_message_of_a_client_can_be_held)
{
	int64_t nth = _i + 1;
	Text client = {0};
	Text server = {0};
	Pair pair = {.client = connect_unix(directory)};
	size_t before;

	append_client_talk(&client);
	MESSAGE(&server, 'C', "SELECT 1");
	before = offset_of(&client, nth, true);
	proxy_arm(proxy, 1, FROM_CLIENT, nth);
	say(pair.client, &client);
	serve_until_held();
	ck_assert_int_eq(proxy_held(proxy)->first, nth);
	ck_assert_int_eq(proxy_held(proxy)->last, nth);
	ck_assert_int_eq(proxy_held(proxy)->direction, FROM_CLIENT);
	pair.server = accept_server();
	expect(pair.server, client.data, before);
	expect_nothing(pair.server);
	say(pair.server, &server);
	expect_text(pair.client, &server);
	proxy_release(proxy);
	ck_assert_ptr_null(proxy_held(proxy));
	expect(pair.server, client.data + before, client.length - before);
	expect_nothing(pair.server);
	check_record(FROM_CLIENT, client_talk, LENGTH_OF(client_talk));
	close_pair(pair);
	text_free(&client);
	text_free(&server);
}
END_TEST

START_TEST(any_message_of_a_server_can_be_held)
{
	int64_t nth = _i + 1;
	Text client = {0};
	Text server = {0};
	Pair pair = open_pair();
	size_t before;

	MESSAGE(&client, 'Q', "SELECT 1");
	append_server_talk(&server);
	before = offset_of(&server, nth, false);
	proxy_arm(proxy, 1, FROM_SERVER, nth);
	say(pair.server, &server);
	serve_until_held();
	ck_assert_int_eq(proxy_held(proxy)->first, nth);
	ck_assert_int_eq(proxy_held(proxy)->direction, FROM_SERVER);
	expect(pair.client, server.data, before);
	expect_nothing(pair.client);
	say(pair.client, &client);
	expect_text(pair.server, &client);
	proxy_release(proxy);
	expect(pair.client, server.data + before, server.length - before);
	expect_nothing(pair.client);
	check_record(FROM_SERVER, server_talk, LENGTH_OF(server_talk));
	close_pair(pair);
	text_free(&client);
	text_free(&server);
}
END_TEST

/* A message that comes in single bytes is held whole, though nobody knew at its first byte which it would be. */
START_TEST(half_a_message_is_not_forwarded)
{
	Pair pair = open_pair();
	Text query = {0};

	MESSAGE(&query, 'Q', "COMMIT");
	proxy_arm(proxy, 1, FROM_CLIENT, 2);
	for (size_t i = 0; i < query.length; i++)
	{
		Text byte = {.data = query.data + i, .length = 1};

		ck_assert_ptr_null(proxy_held(proxy));
		say(pair.client, &byte);
		if (i + 1 < query.length)
		{
			ck_assert_int_eq(proxy_serve(proxy, NULL, 0, deadline_in_ms(0), NULL), PROXY_TIMEOUT);
		}
	}
	serve_until_held();
	ck_assert_str_eq(proxy_held(proxy)->tag, "COMMIT");
	expect_nothing(pair.server);
	proxy_release(proxy);
	expect_text(pair.server, &query);
	close_pair(pair);
	text_free(&query);
}
END_TEST

START_TEST(a_point_is_told_once_and_armed_once)
{
	Pair pair = open_pair();
	Text queries = {0};

	proxy_arm(proxy, 1, FROM_CLIENT, 3);
	MESSAGE(&queries, 'Q', "first");
	MESSAGE(&queries, 'Q', "second");
	MESSAGE(&queries, 'Q', "third");
	say(pair.client, &queries);
	serve_until_held();
	ck_assert_str_eq(proxy_held(proxy)->tag, "second");
	ck_assert_int_eq(proxy_serve(proxy, NULL, 0, deadline_in_ms(NOTHING_MS), NULL), PROXY_TIMEOUT);
	proxy_arm(proxy, 1, FROM_CLIENT, 4);
	proxy_release(proxy);
	serve_until_held();
	ck_assert_str_eq(proxy_held(proxy)->tag, "third");
	proxy_release(proxy);
	expect_text(pair.server, &queries);
	close_pair(pair);
	text_free(&queries);
}
END_TEST

/* By kind, whatever else comes between, and also when some of the kind passed before it was armed. */
START_TEST(the_nth_of_a_kind_can_be_held)
{
	Pair pair = open_pair();
	Text one = {0};
	Text two = {0};
	Text rows = {0};

	MESSAGE(&one, 'Q', "COMMIT");
	MESSAGE(&one, 'Q', "SELECT 1");
	say(pair.client, &one);
	expect_text(pair.server, &one);
	proxy_arm_kind(proxy, 1, FROM_CLIENT, 'Q', "COMMIT", 3);
	MESSAGE(&two, 'Q', "COMMIT");
	MESSAGE(&two, 'P', "\0COMMIT");
	MESSAGE(&two, 'Q', "COMMIT AND CHAIN");
	MESSAGE(&two, 'Q', "COMMIT");
	say(pair.client, &two);
	serve_until_held();
	ck_assert_int_eq(proxy_held(proxy)->first, 7);
	ck_assert_int_eq(proxy_held(proxy)->last, 7);
	ck_assert_str_eq(proxy_held(proxy)->tag, "COMMIT");
	proxy_arm_kind(proxy, 1, FROM_SERVER, 'D', NULL, 2);
	proxy_release(proxy);
	expect_text(pair.server, &two);
	MESSAGE(&rows, 'D', "1");
	MESSAGE(&rows, 'C', "SELECT 1");
	MESSAGE(&rows, 'D', "2");
	say(pair.server, &rows);
	serve_until_held();
	ck_assert_int_eq(proxy_held(proxy)->first, 3);
	close_pair(pair);
	text_free(&one);
	text_free(&two);
	text_free(&rows);
}
END_TEST

START_TEST(other_connections_go_on_while_one_is_held)
{
	Pair one = open_pair();
	Pair two = open_pair();
	Text query = {0};

	MESSAGE(&query, 'Q', "COMMIT");
	proxy_arm(proxy, 1, FROM_CLIENT, 2);
	say(two.client, &query);
	expect_text(two.server, &query);
	say(one.client, &query);
	serve_until_held();
	check_pair_talks(two);
	expect_nothing(one.server);
	close_pair(one);
	close_pair(two);
	text_free(&query);
}
END_TEST


/* --- cutting and forgetting --- */

static void
hold_query(Pair pair)
{
	Text query = {0};

	MESSAGE(&query, 'Q', "COMMIT");
	proxy_arm(proxy, 1, FROM_CLIENT, 2);
	say(pair.client, &query);
	serve_until_held();
	text_free(&query);
}

static void
hold_answer(Pair pair)
{
	Text answer = {0};

	MESSAGE(&answer, 'C', "COMMIT");
	proxy_arm(proxy, 1, FROM_SERVER, 1);
	say(pair.server, &answer);
	serve_until_held();
	text_free(&answer);
}

START_TEST(a_cut_closes_both_sides)
{
	Pair one = open_pair();
	Pair two = open_pair();

	proxy_cut(proxy, 1);
	expect_end(one.client);
	expect_end(one.server);
	check_pair_talks(two);
	proxy_cut(proxy, 1);
	proxy_cut(proxy, 7);
	proxy_cut_all(proxy);
	expect_end(two.client);
	expect_end(two.server);
	close_pair(one);
	close_pair(two);
}
END_TEST

START_TEST(what_is_held_is_lost_in_a_cut)
{
	Pair pair = open_pair();

	if (_i == 0)
	{
		hold_query(pair);
	}
	else
	{
		hold_answer(pair);
	}
	proxy_cut(proxy, 1);
	ck_assert_ptr_null(proxy_held(proxy));
	expect_end(pair.client);
	expect_end(pair.server);
	close_pair(pair);
}
END_TEST

START_TEST(forgetting_begins_anew)
{
	Pair pair = open_pair();
	int waiting;
	size_t count;

	hold_query(pair);
	proxy_arm(proxy, 1, FROM_CLIENT, 2);
	waiting = connect_unix(directory);
	proxy_forget(proxy);
	ck_assert_ptr_null(proxy_held(proxy));
	ck_assert_int_eq(proxy_connections(proxy), 0);
	ck_assert_int_eq(proxy_backend_pid(proxy, 1), 0);
	(void) proxy_record(proxy, &count);
	ck_assert_uint_eq(count, 0);
	expect_end(pair.client);
	expect_end(pair.server);
	expect_end(waiting);
	close_pair(pair);
	close(waiting);
	pair = open_pair();
	check_pair_talks(pair); /* its query would be the armed one */
	ck_assert_int_eq(proxy_connections(proxy), 1);
	close_pair(pair);
}
END_TEST


/* --- startup --- */

START_TEST(a_cancel_request_is_forwarded_and_not_numbered)
{
	Text cancel = {0};
	Text query = {0};
	int client = connect_unix(directory);
	int server;
	size_t count;
	Pair pair;

	append_cancel(&cancel);
	MESSAGE(&query, 'Q', "SELECT 1");
	proxy_arm(proxy, 1, FROM_CLIENT, 1);
	say(client, &cancel);
	server = accept_server();
	expect_text(server, &cancel);
	(void) proxy_record(proxy, &count);
	ck_assert_uint_eq(count, 0);
	ck_assert_int_eq(proxy_connections(proxy), 0);
	close(server);
	expect_end(client);
	close(client);
	proxy_arm(proxy, 1, FROM_CLIENT, 2);
	pair = open_pair();
	ck_assert_int_eq(proxy_connections(proxy), 1);
	say(pair.client, &query);
	serve_until_held();
	close_pair(pair);
	text_free(&cancel);
	text_free(&query);
}
END_TEST

START_TEST(encryption_is_declined)
{
	static const uint32_t codes[2][2] = {{80877103, 80877104}, {80877104, 80877103}};
	Text startup = {0};
	Pair pair = {.client = connect_unix(directory)};

	append_startup(&startup);
	for (int i = 0; i < 2; i++)
	{
		Text request = {0};

		append_request(&request, codes[_i][i]);
		say(pair.client, &request);
		expect(pair.client, "N", 1);
		text_free(&request);
	}
	proxy_arm(proxy, 1, FROM_CLIENT, 1);
	say(pair.client, &startup);
	serve_until_held();
	pair.server = accept_server();
	expect_nothing(pair.server);
	proxy_release(proxy);
	expect_text(pair.server, &startup);
	check_pair_talks(pair);
	close_pair(pair);
	text_free(&startup);
}
END_TEST

START_TEST(requests_may_come_in_one_piece)
{
	Text all = {0};
	Text startup = {0};
	Pair pair = {.client = connect_unix(directory)};

	append_startup(&startup);
	append_request(&all, 80877104);
	append_request(&all, 80877103);
	append_startup(&all);
	say(pair.client, &all);
	pair.server = accept_server();
	expect_text(pair.server, &startup);
	expect(pair.client, "NN", 2);
	close_pair(pair);
	text_free(&all);
	text_free(&startup);
}
END_TEST

/* The answer has no frame: there is no place for it within a message of a server that spoke first. */
START_TEST(an_answer_does_not_split_a_message)
{
	Text half = {.data = (char[]){"E\0\0"}, .length = 3};
	Text request = {0};
	Pair pair = {.client = connect_unix(directory)};

	append_request(&request, 80877103);
	pair.server = accept_server();
	say(pair.server, &half);
	ck_assert_int_eq(proxy_serve(proxy, NULL, 0, deadline_in_ms(NOTHING_MS), NULL), PROXY_TIMEOUT);
	say(pair.client, &request);
	expect_end(pair.client);
	expect_end(pair.server);
	close_pair(pair);
	text_free(&request);
}
END_TEST

START_TEST(tcp_on_request)
{
	Text startup = {0};
	Pair pair;

	proxy_free(proxy);
	open_proxy(true);
	ck_assert_str_eq(proxy_host(proxy), "127.0.0.1");
	ck_assert_int_gt(proxy_port(proxy), 0);
	append_startup(&startup);
	pair.client = connect_tcp(proxy_port(proxy));
	say(pair.client, &startup);
	pair.server = accept_server();
	expect_text(pair.server, &startup);
	check_pair_talks(pair);
	close(pair.client);
	expect_end(pair.server);
	close(pair.server);
	text_free(&startup);
}
END_TEST

/* The programs may run under another account; the directory guards the socket. */
START_TEST(the_socket_is_open_to_all)
{
	char path[64];
	struct stat status;

	snprintf(path, sizeof(path), "%s/.s.PGSQL.%d", directory, PORT);
	ck_assert_int_eq(stat(path, &status), 0);
	ck_assert(S_ISSOCK(status.st_mode));
	ck_assert_uint_eq(status.st_mode & 0777, 0777);
}
END_TEST

START_TEST(two_proxies_do_not_share_a_name)
{
	ProxyConfig config = {.upstream = upstream, .directory = directory, .port = PORT};
	char far[200];

	notice_set_level(0);
	ck_assert_ptr_null(proxy_open(&config)); /* and leaves the other's socket alone */
	memset(far, 'x', sizeof(far) - 1);
	far[sizeof(far) - 1] = '\0';
	config.directory = far;
	ck_assert_ptr_null(proxy_open(&config));
	close_pair(open_pair());
}
END_TEST


/* --- what is not the protocol --- */

typedef struct
{
	const char *what;
	const char *bytes;
	size_t length;
} Nonsense;

#define NONSENSE(what, bytes)                                                                                          \
	{                                                                                                                  \
		what, bytes, sizeof(bytes) - 1                                                                                 \
	}

static const Nonsense before_startup[] = {
	NONSENSE("length 0", "\0\0\0\0\0\3\0\0"),
	NONSENSE("length 3", "\0\0\0\3\0\3\0\0"),
	NONSENSE("length 7", "\0\0\0\7\0\3\0\0"),
	NONSENSE("length 10005", "\0\0\x27\x15\0\3\0\0"),
	NONSENSE("negative length", "\xff\xff\xff\xff\0\3\0\0"),
	NONSENSE("protocol 2", "\0\0\0\x10\0\2\0\0"),
	NONSENSE("a web browser", "GET / HTTP/1.1\r\n\r\n"),
	NONSENSE("an SSL request with more", "\0\0\0\x9\x04\xd2\x16\x2f\0"),
	NONSENSE("two SSL requests", "\0\0\0\x8\x04\xd2\x16\x2f\0\0\0\x8\x04\xd2\x16\x2f"),
	NONSENSE("a short cancel request", "\0\0\0\xc\x04\xd2\x16\x2e\0\0\0\1"),
};

static const Nonsense after_startup[] = {
	NONSENSE("length 0", "Q\0\0\0\0"),
	NONSENSE("length 1", "Q\0\0\0\1"),
	NONSENSE("length 2", "Q\0\0\0\2"),
	NONSENSE("length 3", "Q\0\0\0\3"),
	NONSENSE("negative length", "Q\xff\xff\xff\xff"),
	NONSENSE("smallest length", "Q\x80\0\0\0"),
	NONSENSE("a gigabyte", "d\x3f\xff\xff\xff"),
	NONSENSE("no type", "\0\0\0\0\x4"),
	NONSENSE("no letter", "\n\0\0\0\x4"),
};

static void
say_nonsense(int fd, const Nonsense *nonsense)
{
	Text bytes = {0};

	text_append_bytes(&bytes, nonsense->bytes, nonsense->length);
	say(fd, &bytes);
	text_free(&bytes);
}

/* Not a byte of it reaches the server, and no number is used up. */
START_TEST(nonsense_before_startup_ends_the_connection)
{
	int client = connect_unix(directory);
	int server;

	say_nonsense(client, &before_startup[_i]);
	server = accept_server();
	expect_end(server);
	if (strstr(before_startup[_i].what, "two") != NULL)
	{
		expect(client, "N", 1);
	}
	expect_end(client);
	ck_assert_int_eq(proxy_connections(proxy), 0);
	close(client);
	close(server);
	close_pair(open_pair());
}
END_TEST

START_TEST(nonsense_from_a_client_ends_the_connection)
{
	Pair pair = open_pair();
	Pair other = open_pair();
	Text query = {0};

	MESSAGE(&query, 'Q', "SELECT 1");
	text_append_bytes(&query, after_startup[_i].bytes, after_startup[_i].length);
	say(pair.client, &query);
	expect(pair.server, query.data, query.length - after_startup[_i].length);
	expect_end(pair.server);
	expect_end(pair.client);
	check_pair_talks(other);
	close_pair(pair);
	close_pair(other);
	text_free(&query);
}
END_TEST

START_TEST(nonsense_from_a_server_ends_the_connection)
{
	Pair pair = open_pair();
	Text answer = {0};

	MESSAGE(&answer, 'C', "SELECT 1");
	text_append_bytes(&answer, after_startup[_i].bytes, after_startup[_i].length);
	say(pair.server, &answer);
	expect(pair.client, answer.data, answer.length - after_startup[_i].length);
	expect_end(pair.client);
	expect_end(pair.server);
	close_pair(pair);
	text_free(&answer);
}
END_TEST

START_TEST(nothing_may_follow_a_cancel_request)
{
	Text cancel = {0};
	int client = connect_unix(directory);
	int server;

	append_cancel(&cancel);
	MESSAGE(&cancel, 'Q', "SELECT 1");
	say(client, &cancel);
	server = accept_server();
	expect(server, cancel.data, 16);
	expect_end(server);
	close(client);
	close(server);
	text_free(&cancel);
}
END_TEST

/* The longest message there is begins to pass; nobody waits for its end. */
START_TEST(the_longest_message_passes)
{
	Pair pair = open_pair();
	Text begin = {0};

	text_append_bytes(&begin, "d\x3f\xff\xff\xfe", 5);
	for (int i = 0; i < 300; i++)
	{
		text_append(&begin, "x");
	}
	say(pair.client, &begin);
	expect_text(pair.server, &begin);
	close_pair(pair);
	text_free(&begin);
}
END_TEST


/* --- ends --- */

START_TEST(a_server_that_is_down_is_no_failure)
{
	int client;

	close(listener);
	client = connect_unix(directory);
	expect_end(client);
	close(client);
	unlink(upstream);
	client = connect_unix(directory);
	expect_end(client);
	close(client);
	listener = listen_unix(upstream, 64);
	close_pair(open_pair());
}
END_TEST

START_TEST(what_a_server_said_last_still_arrives)
{
	Pair pair = open_pair();
	Text last = {0};

	MESSAGE(&last, 'E', "SFATAL\0C57P01\0");
	text_append_bytes(&last, "Z", 1); /* and half a message, as it is */
	say(pair.server, &last);
	close(pair.server);
	expect_text(pair.client, &last);
	expect_end(pair.client);
	close(pair.client);
	text_free(&last);
}
END_TEST

/* A server that goes away while a message waits for it: the client sees its end, as it would without a proxy. */
START_TEST(a_server_may_go_while_its_message_is_held)
{
	Pair pair = open_pair();

	hold_query(pair);
	close(pair.server);
	expect_end(pair.client);
	ck_assert_ptr_nonnull(proxy_held(proxy));
	proxy_release(proxy);
	ck_assert_ptr_null(proxy_held(proxy));
	close(pair.client);
	close_pair(open_pair());
}
END_TEST

START_TEST(a_client_may_go_while_its_message_is_held)
{
	Pair pair = open_pair();
	Text query = {0};

	MESSAGE(&query, 'Q', "COMMIT");
	hold_query(pair);
	close(pair.client);
	expect_nothing(pair.server);
	if (_i == 0)
	{
		proxy_release(proxy);
		expect_text(pair.server, &query);
	}
	else
	{
		proxy_cut(proxy, 1);
	}
	expect_end(pair.server);
	close(pair.server);
	text_free(&query);
}
END_TEST

START_TEST(a_client_may_go_while_its_answer_is_held)
{
	Pair pair = open_pair();

	hold_answer(pair);
	close(pair.client);
	expect_end(pair.server);
	ck_assert_ptr_nonnull(proxy_held(proxy));
	proxy_release(proxy);
	close(pair.server);
	close_pair(open_pair());
}
END_TEST

/* What goes to a client that has gone is dropped, also while the connection waits for what the client had said. */
START_TEST(a_client_that_has_gone_stops_no_server)
{
	Pair pair = open_pair();
	Text rows = {0};
	Text query = {0};

	for (int i = 0; i < 1000; i++)
	{
		MESSAGE(&rows, 'D', "\0\1\0\0\0\4abcd");
	}
	MESSAGE(&query, 'Q', "COMMIT");
	hold_query(pair);
	close(pair.client);
	for (int i = 0; i < 100; i++)
	{
		ck_assert_int_eq(send(pair.server, rows.data, rows.length, MSG_NOSIGNAL | MSG_DONTWAIT), (ssize_t) rows.length);
		ck_assert_int_eq(proxy_serve(proxy, NULL, 0, deadline_in_ms(0), NULL), PROXY_TIMEOUT);
	}
	proxy_release(proxy);
	expect_text(pair.server, &query);
	expect_end(pair.server);
	close(pair.server);
	text_free(&query);
	text_free(&rows);
}
END_TEST

/* poll(2) tells of an end again and again; a held message must not make the proxy spin meanwhile. */
START_TEST(an_end_is_looked_at_once)
{
	Pair pair = open_pair();
	clock_t before;

	hold_query(pair);
	close(pair.client);
	before = clock();
	ck_assert_int_eq(proxy_serve(proxy, NULL, 0, deadline_in_ms(500), NULL), PROXY_TIMEOUT);
	ck_assert_int_lt((clock() - before) * 1000 / CLOCKS_PER_SEC, 100);
	close(pair.server);
}
END_TEST

START_TEST(a_client_may_close_half)
{
	Pair pair = open_pair();
	Text answer = {0};

	MESSAGE(&answer, 'C', "COPY 3");
	ck_assert_int_eq(shutdown(pair.client, SHUT_WR), 0);
	expect_end(pair.server);
	say(pair.server, &answer);
	expect_text(pair.client, &answer);
	close(pair.server);
	expect_end(pair.client);
	close(pair.client);
	text_free(&answer);
}
END_TEST

/* A server that streams to a client that has gone finds its socket closed, and is not read to its end. */
START_TEST(a_server_learns_that_its_client_has_gone)
{
	Pair pair = open_pair();
	Text rows = {0};
	ssize_t sent = 0;

	for (int i = 0; i < 1000; i++)
	{
		MESSAGE(&rows, 'D', "\0\1\0\0\0\4abcd");
	}
	ck_assert_int_eq(fcntl(pair.server, F_SETFL, O_NONBLOCK), 0);
	close(pair.client);
	for (int i = 0; sent >= 0 || errno == EAGAIN; i++)
	{
		ck_assert_int_lt(i, 100);
		sent = send(pair.server, rows.data, rows.length, MSG_NOSIGNAL);
		ck_assert_int_eq(proxy_serve(proxy, NULL, 0, deadline_in_ms(1), NULL), PROXY_TIMEOUT);
	}
	close(pair.server);
	text_free(&rows);
}
END_TEST


/* --- pressure --- */

/* A server that does not read stops its client, and nobody else. Then everything arrives. */
START_TEST(a_slow_reader_stops_its_writer)
{
	Pair pair = open_pair();
	Pair other = open_pair();
	Text data = {0};
	size_t sent = 0;
	size_t got = 0;
	char bytes[65536];

	for (int i = 0; i < 65536; i++)
	{
		char letter = (char) ('a' + i % 23);

		append_message(&data, 'd', &letter, 1);
	}
	ck_assert_int_eq(fcntl(pair.client, F_SETFL, O_NONBLOCK), 0);
	for (int idle = 0; idle < 3;)
	{
		ssize_t more =
			send(pair.client, data.data + sent % data.length, data.length - sent % data.length, MSG_NOSIGNAL);

		idle = more > 0 ? 0 : idle + 1;
		sent += more > 0 ? (size_t) more : 0;
		ck_assert_uint_lt(sent, 4 << 20);
		ck_assert_int_eq(proxy_serve(proxy, NULL, 0, deadline_in_ms(1), NULL), PROXY_TIMEOUT);
	}
	check_pair_talks(other);
	while (got < sent)
	{
		ssize_t more;

		serve_until_readable(pair.server);
		more = recv(pair.server, bytes, sizeof(bytes), 0);
		ck_assert_int_gt(more, 0);
		for (ssize_t i = 0; i < more; i++)
		{
			ck_assert_int_eq(bytes[i], data.data[(got + (size_t) i) % data.length]);
		}
		got += (size_t) more;
	}
	close_pair(pair);
	close_pair(other);
	text_free(&data);
}
END_TEST

/* What was sent before a program ended is on record and has arrived when its end is told. */
START_TEST(a_watched_end_is_told_last)
{
	Text talk = {0};
	int ended[2];
	int which;
	Pair pair = {.client = connect_unix(directory)};
	size_t arrived = 0;
	char bytes[65536];
	ssize_t more;

	ck_assert_int_eq(pipe(ended), 0);
	append_startup(&talk);
	for (int i = 0; i < 5000; i++)
	{
		MESSAGE(&talk, 'Q', "SELECT 1");
	}
	say(pair.client, &talk);
	close(pair.client);
	close(ended[1]);
	ck_assert_int_eq(proxy_serve(proxy, ended, 1, soon(), &which), PROXY_WATCHED);
	pair.server = accept_server();
	while ((more = recv(pair.server, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
	{
		arrived += (size_t) more;
	}
	ck_assert_uint_eq(arrived, talk.length);
	close(pair.server);
	close(ended[0]);
	text_free(&talk);
}
END_TEST

START_TEST(a_bad_descriptor_is_a_failure)
{
	int which;

	notice_set_level(0);
	ck_assert_int_eq(proxy_serve(proxy, (int[]){999}, 1, soon(), &which), PROXY_FAILED);
	ck_assert_int_eq(proxy_serve(proxy, (int[9]){0}, 9, soon(), &which), PROXY_FAILED);
}
END_TEST

START_TEST(an_interrupt_ends_the_wait)
{
	Pair pair = open_pair();
	Deadline deadline = soon();

	interrupt_catch();
	ck_assert_int_eq(raise(SIGTERM), 0);
	ck_assert_int_eq(proxy_serve(proxy, NULL, 0, deadline, NULL), PROXY_TIMEOUT);
	ck_assert(!deadline_passed(deadline));
	interrupt_defer();
	check_pair_talks(pair);
	interrupt_resume();
	close_pair(pair);
}
END_TEST

#define CROWD 200

/* All at once, at a server whose queue has room for few; each hears its own echo. */
START_TEST(two_hundred_connections_at_once)
{
	Pair crowd[CROWD];
	Text startup = {0};

	close(listener);
	unlink(upstream);
	listener = listen_unix(upstream, 4);
	append_startup(&startup);
	for (int i = 0; i < CROWD; i++)
	{
		crowd[i].client = connect_unix(directory);
		say(crowd[i].client, &startup);
	}
	for (int i = 0; i < CROWD; i++)
	{
		crowd[i].server = accept_server();
		expect_text(crowd[i].server, &startup);
	}
	ck_assert_int_eq(proxy_connections(proxy), CROWD);
	for (int i = 0; i < CROWD; i++)
	{
		Text query = {0};
		char *sql = string_format("SELECT %d", i);

		append_message(&query, 'Q', sql, strlen(sql) + 1);
		say(crowd[i].client, &query);
		free(sql);
		text_free(&query);
	}
	for (int i = 0; i < CROWD; i++)
	{
		char query[64];
		ssize_t got;

		serve_until_readable(crowd[i].server);
		got = recv(crowd[i].server, query, sizeof(query), 0);
		ck_assert_int_gt(got, 0);
		ck_assert_int_eq(send(crowd[i].server, query, (size_t) got, MSG_NOSIGNAL), got);
	}
	for (int i = 0; i < CROWD; i++)
	{
		char *sql = string_format("SELECT %d", i);
		Text echo = {0};

		append_message(&echo, 'Q', sql, strlen(sql) + 1);
		expect_text(crowd[i].client, &echo);
		free(sql);
		text_free(&echo);
	}
	for (int i = 0; i < CROWD; i++)
	{
		close_pair(crowd[i]);
	}
	text_free(&startup);
}
END_TEST


/* --- a gigabyte --- */

#define COPY_ROW_BYTES 8187 /* 8 KiB with type and length */
#define COPY_BLOCK_ROWS 128
#define COPY_BLOCKS 1024
#define COPY_MOST_KIB (32 << 10)

static int64_t
peak_kib(void)
{
	FILE *status = fopen("/proc/self/status", "re");
	char line[256];
	int64_t peak = 0;

	ck_assert_ptr_nonnull(status);
	while (fgets(line, sizeof(line), status) != NULL)
	{
		if (strncmp(line, "VmHWM:", 6) == 0)
		{
			peak = strtoll(line + 6, NULL, 10);
		}
	}
	fclose(status);
	ck_assert_int_gt(peak, 0);
	return peak;
}

/* COPY_BLOCK_ROWS messages, each its own. */
static void
append_block(Text *block)
{
	char row[COPY_ROW_BYTES];

	for (int i = 0; i < COPY_BLOCK_ROWS; i++)
	{
		memset(row, 'A' + i % 57, sizeof(row));
		append_message(block, 'd', row, sizeof(row));
	}
}

/* A child's whole life; no assertions there. */
static int
write_gigabyte(int fd, const Text *block)
{
	for (int i = 0; i < COPY_BLOCKS; i++)
	{
		if (!file_write(fd, block->data, block->length))
		{
			return 1;
		}
	}
	return 0;
}

static int
read_gigabyte(int fd, const Text *block)
{
	static char bytes[1 << 16];
	uint64_t got = 0;
	ssize_t more;

	while ((more = recv(fd, bytes, sizeof(bytes), 0)) > 0)
	{
		for (ssize_t at = 0; at < more;)
		{
			size_t place = got % block->length;
			size_t part = block->length - place < (size_t) (more - at) ? block->length - place : (size_t) (more - at);

			if (memcmp(bytes + at, block->data + place, part) != 0)
			{
				return 1;
			}
			at += (ssize_t) part;
			got += part;
		}
	}
	return more == 0 && got == (uint64_t) block->length * COPY_BLOCKS ? 0 : 2;
}

static pid_t
start_child(int (*work)(int fd, const Text *block), int fd, int other, const Text *block)
{
	pid_t child = fork();

	ck_assert_int_ge(child, 0);
	if (child == 0)
	{
		close(other);
		_exit(work(fd, block));
	}
	return child;
}

static void
check_child(pid_t child)
{
	int status;

	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 0);
}

/* In (0) and out (1): CopyData from the client or from the server. */
START_TEST(a_gigabyte_of_copy_in_bounded_memory)
{
	Direction direction = _i == 0 ? FROM_CLIENT : FROM_SERVER;
	int64_t before = peak_kib();
	int64_t first = _i == 0 ? 2 : 1;
	ProxyMessage run = {1, direction, 'd', first, first - 1 + (int64_t) COPY_BLOCKS * COPY_BLOCK_ROWS, ""};
	ProxyMessage both[] = {{1, FROM_CLIENT, PROXY_STARTUP, 1, 1, ""}, run};
	Text block = {0};
	Pair pair = open_pair();
	pid_t writer;
	pid_t reader;
	int ended[2];
	int which;

	append_block(&block);
	ck_assert_int_eq(pipe(ended), 0); /* its writing end is open in the children alone */
	writer =
		start_child(write_gigabyte, _i == 0 ? pair.client : pair.server, _i == 0 ? pair.server : pair.client, &block);
	reader =
		start_child(read_gigabyte, _i == 0 ? pair.server : pair.client, _i == 0 ? pair.client : pair.server, &block);
	close_pair(pair);
	close(ended[1]);
	ck_assert_int_eq(proxy_serve(proxy, ended, 1, deadline_in_ms(60000), &which), PROXY_WATCHED);
	check_child(writer);
	check_child(reader);
	check_record(direction, _i == 0 ? both : &run, _i == 0 ? 2 : 1);
	ck_assert_int_lt(peak_kib() - before, COPY_MOST_KIB);
	close(ended[0]);
	text_free(&block);
}
END_TEST

/* Another connection that never stops talking does not keep a watched descriptor from being told. */
START_TEST(a_watched_end_is_told_under_load)
{
	Text block = {0};
	Pair pair = open_pair();
	pid_t writer;
	pid_t reader;
	int ended[2];
	int which;
	size_t count;
	const ProxyMessage *record;

	append_block(&block);
	ck_assert_int_eq(pipe(ended), 0);
	close(ended[1]); /* it is readable from now on */
	writer = start_child(write_gigabyte, pair.client, pair.server, &block);
	reader = start_child(read_gigabyte, pair.server, pair.client, &block);
	close_pair(pair);
	do
	{
		ck_assert_int_eq(proxy_serve(proxy, NULL, 0, deadline_in_ms(1), &which), PROXY_TIMEOUT);
		(void) proxy_record(proxy, &count);
	} while (count < 2);
	ck_assert_int_eq(proxy_serve(proxy, ended, 1, soon(), &which), PROXY_WATCHED);
	record = proxy_record(proxy, &count);
	ck_assert_int_lt(record[1].last, COPY_BLOCKS * COPY_BLOCK_ROWS / 2);
	ck_assert_int_eq(kill(writer, SIGKILL), 0);
	ck_assert_int_eq(kill(reader, SIGKILL), 0);
	ck_assert_int_eq(waitpid(writer, NULL, 0), writer);
	ck_assert_int_eq(waitpid(reader, NULL, 0), reader);
	text_free(&block);
}
END_TEST


/* --- the real server --- */

static char *through; /* conninfo of the server by way of the proxy */

static char *
ask(Session *session, const char *sql)
{
	SqlResult *result;
	char *answer;

	ck_assert(session_query(session, &result, sql, NO_ARGS));
	answer = string_copy(sql_text(result, 0, 0));
	sql_free(result);
	return answer;
}

static void
open_real(bool tcp)
{
	const char *conninfo = getenv("COUNTERPROOF_TEST_CONNINFO");
	Session *session = session_open(conninfo, "lab");
	char *path;
	char *user;
	ProxyConfig config = {.directory = tcp ? NULL : directory, .port = PORT};

	ck_assert_ptr_nonnull(session);
	path = ask(session, "SELECT trim('\"' FROM current_setting('unix_socket_directories')) || '/.s.PGSQL.' ||"
						" current_setting('port')");
	user = ask(session, "SELECT current_user");
	session_close(session);
	config.upstream = path;
	proxy = proxy_open(&config);
	ck_assert_ptr_nonnull(proxy);
	through = string_format("host=%s port=%d user=%s dbname=postgres", proxy_host(proxy), proxy_port(proxy), user);
	free(path);
	free(user);
}

static void
setup_real(void)
{
	ck_assert_ptr_nonnull(mkdtemp(directory));
	open_real(false);
}

static void
teardown_real(void)
{
	proxy_free(proxy);
	free(through);
	ck_assert_int_eq(rmdir(directory), 0);
}

/* A program that talks to the server in a thread of its own, while this one serves. */
typedef struct
{
	bool (*talk)(Session *session);
	int ended[2];
	bool done;
} Program;

static void *
run_program(void *context)
{
	Program *program = context;
	Session *session = session_open(through, "through");

	program->done = session != NULL && program->talk(session);
	session_close(session);
	close(program->ended[1]);
	return NULL;
}

static void
start_program(Program *program, pthread_t *thread, bool (*talk)(Session *session))
{
	program->talk = talk;
	ck_assert_int_eq(pipe(program->ended), 0);
	ck_assert_int_eq(pthread_create(thread, NULL, run_program, program), 0);
}

static void
finish_program(Program *program, pthread_t thread)
{
	int which;

	ck_assert_int_eq(proxy_serve(proxy, program->ended, 1, soon(), &which), PROXY_WATCHED);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert(program->done);
	close(program->ended[0]);
}

static void
serve_program(bool (*talk)(Session *session))
{
	Program program = {0};
	pthread_t thread;

	start_program(&program, &thread, talk);
	finish_program(&program, thread);
}

/* The record of connection 1 in one direction, a line for each entry; caller frees. */
static void
append_record(Text *text, Direction direction)
{
	size_t count;
	const ProxyMessage *record = proxy_record(proxy, &count);

	for (size_t i = 0; i < count; i++)
	{
		if (record[i].direction == direction)
		{
			text_append(text, "%s", text->length > 0 ? ", " : "");
			proxy_message_describe(&record[i], text);
		}
	}
}

static void
check_text_of(Direction direction, const char *wanted)
{
	Text text = {0};

	append_record(&text, direction);
	ck_assert_str_eq(text_get(&text), wanted);
	text_free(&text);
}

static bool
talk_simply(Session *session)
{
	return session_execute(session, "CREATE TEMP TABLE t (id int)") &&
		   session_execute(session, "INSERT INTO t SELECT generate_series(1, 3)");
}

#define GREETING "Authentication 0, ParameterStatus, BackendKeyData, ReadyForQuery I"
#define SIMPLE_ANSWER                                                                                                  \
	GREETING ", CommandComplete CREATE TABLE, ReadyForQuery I, CommandComplete INSERT 0 3, ReadyForQuery I"

START_TEST(simple_queries_pass)
{
	serve_program(talk_simply);
	check_text_of(FROM_CLIENT, "startup packet, Query CREATE TEMP TABLE t (id int),"
							   " Query INSERT INTO t SELECT generate_series(1, 3), Terminate");
	check_text_of(FROM_SERVER, SIMPLE_ANSWER);
}
END_TEST

static bool
talk_in_a_pipeline(Session *session)
{
	SqlResult *result = NULL;
	bool ok = session_prepare(session, "one", "SELECT $1::int + 1") &&
			  session_call(session, &result, "one", ARGS(arg_int(41))) == SQL_OK && sql_int(result, 0, 0) == 42;

	sql_free(result);
	return ok;
}

START_TEST(a_pipeline_passes)
{
	serve_program(talk_in_a_pipeline);
	check_text_of(FROM_CLIENT, "startup packet, Parse SELECT $1::int + 1, Sync, Bind, Describe, Execute, Flush, Sync,"
							   " Terminate");
	check_text_of(FROM_SERVER, GREETING ", ParseComplete, ReadyForQuery I, BindComplete, RowDescription, DataRow,"
										" CommandComplete SELECT 1, ReadyForQuery I");
}
END_TEST

static bool
talk_at_length(Session *session)
{
	SqlResult *result = NULL;
	bool ok = session_query(session, &result, "SELECT i, repeat('x', 100) FROM generate_series(1, 20000) i", NO_ARGS) &&
			  sql_rows(result) == 20000;

	sql_free(result);
	return ok;
}

START_TEST(a_long_answer_is_one_run)
{
	size_t count;
	const ProxyMessage *record;
	int64_t longest = 0;

	serve_program(talk_at_length);
	record = proxy_record(proxy, &count);
	for (size_t i = 0; i < count; i++)
	{
		int64_t length = record[i].last - record[i].first + 1;

		longest = record[i].type == 'D' && length > longest ? length : longest;
	}
	ck_assert_int_eq(longest, 20000);
}
END_TEST

/* The COMMIT is forwarded, its answer is not: committed, and never told. */
static bool
talk_until_lost(Session *session)
{
	return session_begin(session, READ_COMMITTED) && session_execute(session, "INSERT INTO proxy_held VALUES (1)") &&
		   session_commit(session) == SQL_UNKNOWN;
}

/* The number of the last message of a kind. */
static int64_t
find_message(Direction direction, const char *wanted)
{
	size_t count;
	const ProxyMessage *record = proxy_record(proxy, &count);
	int64_t found = 0;

	for (size_t i = 0; i < count; i++)
	{
		Text text = {0};

		proxy_message_describe(&record[i], &text);
		found = record[i].direction == direction && strcmp(text_get(&text), wanted) == 0 ? record[i].first : found;
		text_free(&text);
	}
	ck_assert_int_gt(found, 0);
	return found;
}

static bool
talk_and_commit(Session *session)
{
	return session_begin(session, READ_COMMITTED) && session_execute(session, "INSERT INTO proxy_held VALUES (1)") &&
		   session_commit(session) == SQL_OK;
}

/* Cut at the COMMIT (0) it is not done, cut at its answer (1) it is; the client cannot tell. */
START_TEST(a_commit_can_be_cut_on_either_side)
{
	static const char *const wanted[] = {"Query COMMIT", "CommandComplete COMMIT"};
	Direction direction = _i == 0 ? FROM_CLIENT : FROM_SERVER;
	Program program = {0};
	pthread_t thread;
	Session *session = session_open(getenv("COUNTERPROOF_TEST_CONNINFO"), "lab");
	char *count;
	int64_t nth;

	ck_assert_ptr_nonnull(session);
	ck_assert(session_execute(session, "CREATE TABLE proxy_held (id int)"));
	serve_program(talk_and_commit);
	nth = find_message(direction, wanted[_i]);
	proxy_forget(proxy);
	proxy_arm(proxy, 1, direction, nth);
	start_program(&program, &thread, talk_until_lost);
	serve_until_held();
	ck_assert_str_eq(proxy_held(proxy)->tag, "COMMIT");
	ck_assert_int_gt(proxy_backend_pid(proxy, 1), 0);
	proxy_cut(proxy, 1);
	finish_program(&program, thread);
	count = ask(session, "SELECT count(*) FROM proxy_held");
	ck_assert_str_eq(count, _i == 0 ? "1" : "2"); /* the first run's, and this one's */
	ck_assert(session_execute(session, "DROP TABLE proxy_held"));
	session_close(session);
	free(count);
}
END_TEST

/* libpq asks for encryption where it goes over TCP. */
START_TEST(a_session_over_tcp)
{
	proxy_free(proxy);
	free(through);
	open_real(true);
	serve_program(talk_simply);
	check_text_of(FROM_SERVER, SIMPLE_ANSWER);
}
END_TEST

/* Read messages until one of that type has come whole; its body, as far as `size` goes. */
static void
await_message(int fd, char type, unsigned char *body, size_t size)
{
	unsigned char byte;
	Text message = {0};

	for (;;)
	{
		const unsigned char *head;

		serve_until_readable(fd);
		ck_assert_int_eq(recv(fd, &byte, 1, 0), 1);
		text_append_bytes(&message, (const char *) &byte, 1);
		head = (const unsigned char *) message.data;
		if (message.length >= 5 &&
			message.length == 1 + (size_t) (head[1] << 24 | head[2] << 16 | head[3] << 8 | head[4]))
		{
			if (message.data[0] == type)
			{
				memcpy(body, message.data + 5, message.length - 5 < size ? message.length - 5 : size);
				text_free(&message);
				return;
			}
			text_clear(&message);
		}
	}
}

static int
open_raw(void)
{
	int fd = connect_unix(directory);
	const char *user = strstr(through, "user=") + 5;
	Text startup = {0};
	Text names = {0};

	text_append(&names, "user");
	text_append_bytes(&names, "", 1);
	text_append_bytes(&names, user, strcspn(user, " "));
	text_append_bytes(&names, "\0database\0postgres\0", 20);
	append_number(&startup, 8 + (uint32_t) names.length);
	append_number(&startup, 196608);
	text_append_bytes(&startup, names.data, names.length);
	say(fd, &startup);
	text_free(&startup);
	text_free(&names);
	return fd;
}

START_TEST(a_statement_is_cancelled)
{
	int client = open_raw();
	int cancelling;
	unsigned char key[8];
	unsigned char state[1];
	Text query = {0};
	Text cancel = {0};

	await_message(client, 'K', key, sizeof(key));
	await_message(client, 'Z', state, sizeof(state));
	MESSAGE(&query, 'Q', "DO $$ BEGIN RAISE NOTICE 'running'; PERFORM pg_sleep(600); END $$");
	say(client, &query);
	await_message(client, 'N', state, sizeof(state)); /* one that is not running is not cancelled */
	append_number(&cancel, 16);
	append_number(&cancel, 80877102);
	text_append_bytes(&cancel, (const char *) key, sizeof(key));
	cancelling = connect_unix(directory);
	say(cancelling, &cancel);
	expect_end(cancelling);
	await_message(client, 'Z', state, sizeof(state));
	ck_assert_int_eq(find_message(FROM_SERVER, "ErrorResponse 57014") > 0, 1);
	ck_assert_int_eq(proxy_connections(proxy), 1);
	close(cancelling);
	close(client);
	text_free(&query);
	text_free(&cancel);
}
END_TEST

START_TEST(copy_passes_both_ways)
{
	int client = open_raw();
	unsigned char body[16];
	Text talk = {0};

	await_message(client, 'Z', body, 1);
	MESSAGE(&talk, 'Q', "CREATE TEMP TABLE t (id int); COPY t FROM STDIN");
	say(client, &talk);
	await_message(client, 'G', body, 1);
	text_clear(&talk);
	for (int i = 0; i < 1000; i++)
	{
		append_message(&talk, 'd', "17\n", 3);
	}
	BARE_MESSAGE(&talk, 'c');
	MESSAGE(&talk, 'Q', "COPY t TO STDOUT");
	say(client, &talk);
	await_message(client, 'Z', body, 1);
	await_message(client, 'Z', body, 1);
	text_clear(&talk);
	append_record(&talk, FROM_CLIENT);
	ck_assert_str_eq(text_get(&talk), "startup packet, Query CREATE TEMP TABLE t (id int); COPY t FROM STDIN, CopyData,"
									  " CopyDone, Query COPY t TO STDOUT");
	text_clear(&talk);
	append_record(&talk, FROM_SERVER);
	ck_assert_str_eq(text_get(&talk),
					 GREETING ", CommandComplete CREATE TABLE, CopyInResponse, CommandComplete COPY 1000,"
							  " ReadyForQuery I, CopyOutResponse, CopyData, CopyDone,"
							  " CommandComplete COPY 1000, ReadyForQuery I");
	close(client);
	text_free(&talk);
}
END_TEST


static TCase *
add_case(Suite *suite, const char *name, void (*before)(void), void (*after)(void))
{
	TCase *tcase = tcase_create(name);

	tcase_add_checked_fixture(tcase, before, after);
	tcase_set_timeout(tcase, 60);
	suite_add_tcase(suite, tcase);
	return tcase;
}

static void
add_talk(Suite *suite)
{
	TCase *tcase = add_case(suite, "talk", setup, teardown);

	tcase_add_test(tcase, messages_pass_and_are_named);
	tcase_add_loop_test(tcase, pieces_of_any_size_are_the_same_messages, 0, 40);
	tcase_add_test(tcase, messages_are_described_in_the_manuals_words);
	tcase_add_test(tcase, runs_are_one_entry);
	tcase_add_test(tcase, the_record_is_bounded);
	tcase_add_loop_test(tcase, any_message_of_a_client_can_be_held, 0, CLIENT_MESSAGES);
	tcase_add_loop_test(tcase, any_message_of_a_server_can_be_held, 0, SERVER_MESSAGES);
	tcase_add_test(tcase, half_a_message_is_not_forwarded);
	tcase_add_test(tcase, a_point_is_told_once_and_armed_once);
	tcase_add_test(tcase, the_nth_of_a_kind_can_be_held);
	tcase_add_test(tcase, other_connections_go_on_while_one_is_held);
	tcase_add_test(tcase, a_cut_closes_both_sides);
	tcase_add_loop_test(tcase, what_is_held_is_lost_in_a_cut, 0, 2);
	tcase_add_test(tcase, forgetting_begins_anew);
	tcase_add_test(tcase, a_cancel_request_is_forwarded_and_not_numbered);
	tcase_add_loop_test(tcase, encryption_is_declined, 0, 2);
	tcase_add_test(tcase, requests_may_come_in_one_piece);
	tcase_add_test(tcase, an_answer_does_not_split_a_message);
	tcase_add_test(tcase, tcp_on_request);
	tcase_add_test(tcase, the_socket_is_open_to_all);
	tcase_add_test(tcase, two_proxies_do_not_share_a_name);
}

static void
add_trouble(Suite *suite)
{
	TCase *tcase = add_case(suite, "trouble", setup, teardown);

	tcase_add_loop_test(tcase, nonsense_before_startup_ends_the_connection, 0, LENGTH_OF(before_startup));
	tcase_add_loop_test(tcase, nonsense_from_a_client_ends_the_connection, 0, LENGTH_OF(after_startup));
	tcase_add_loop_test(tcase, nonsense_from_a_server_ends_the_connection, 0, LENGTH_OF(after_startup));
	tcase_add_test(tcase, nothing_may_follow_a_cancel_request);
	tcase_add_test(tcase, the_longest_message_passes);
	tcase_add_test(tcase, a_server_that_is_down_is_no_failure);
	tcase_add_test(tcase, what_a_server_said_last_still_arrives);
	tcase_add_test(tcase, a_server_may_go_while_its_message_is_held);
	tcase_add_loop_test(tcase, a_client_may_go_while_its_message_is_held, 0, 2);
	tcase_add_test(tcase, a_client_may_go_while_its_answer_is_held);
	tcase_add_test(tcase, a_client_that_has_gone_stops_no_server);
	tcase_add_test(tcase, an_end_is_looked_at_once);
	tcase_add_test(tcase, a_client_may_close_half);
	tcase_add_test(tcase, a_server_learns_that_its_client_has_gone);
	tcase_add_test(tcase, a_slow_reader_stops_its_writer);
	tcase_add_test(tcase, a_watched_end_is_told_last);
	tcase_add_test(tcase, a_bad_descriptor_is_a_failure);
	tcase_add_test(tcase, an_interrupt_ends_the_wait);
	tcase_add_test(tcase, two_hundred_connections_at_once);
	tcase_add_loop_test(tcase, a_gigabyte_of_copy_in_bounded_memory, 0, 2);
	tcase_add_test(tcase, a_watched_end_is_told_under_load);
}

static void
add_real(Suite *suite)
{
	TCase *tcase = add_case(suite, "server", setup_real, teardown_real);

	tcase_add_test(tcase, simple_queries_pass);
	tcase_add_test(tcase, a_pipeline_passes);
	tcase_add_test(tcase, a_long_answer_is_one_run);
	tcase_add_loop_test(tcase, a_commit_can_be_cut_on_either_side, 0, 2);
	tcase_add_test(tcase, a_session_over_tcp);
	tcase_add_test(tcase, a_statement_is_cancelled);
	tcase_add_test(tcase, copy_passes_both_ways);
}

int
main(void)
{
	Suite *suite = suite_create("proxy");

	streams_hold();
	add_talk(suite);
	add_trouble(suite);
	add_real(suite);
	return suite_run(suite);
}
