/* Names are the manual's (55.7, 55.8). A type byte means one thing from a client and another from a server. */
#include "record.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_ENTRIES 64

typedef struct
{
	char type;
	const char *name;
} TypeName;

static const TypeName client_names[] = {
	{PROXY_STARTUP, "startup packet"},
	{'Q', "Query"},
	{'P', "Parse"},
	{'B', "Bind"},
	{'D', "Describe"},
	{'E', "Execute"},
	{'C', "Close"},
	{'H', "Flush"},
	{'S', "Sync"},
	{'F', "FunctionCall"},
	{'d', "CopyData"},
	{'c', "CopyDone"},
	{'f', "CopyFail"},
	{'p', "password message"},
	{'X', "Terminate"},
};

static const TypeName server_names[] = {
	{'R', "Authentication"},  {'S', "ParameterStatus"},      {'K', "BackendKeyData"},
	{'Z', "ReadyForQuery"},   {'T', "RowDescription"},       {'D', "DataRow"},
	{'C', "CommandComplete"}, {'I', "EmptyQueryResponse"},   {'E', "ErrorResponse"},
	{'N', "NoticeResponse"},  {'A', "NotificationResponse"}, {'1', "ParseComplete"},
	{'2', "BindComplete"},    {'3', "CloseComplete"},        {'t', "ParameterDescription"},
	{'n', "NoData"},          {'s', "PortalSuspended"},      {'G', "CopyInResponse"},
	{'H', "CopyOutResponse"}, {'W', "CopyBothResponse"},     {'d', "CopyData"},
	{'c', "CopyDone"},        {'V', "FunctionCallResponse"}, {'v', "NegotiateProtocolVersion"},
};


/* --- names --- */

static const char *
find_name(const TypeName *names, size_t count, char type)
{
	for (size_t i = 0; i < count; i++)
	{
		if (names[i].type == type)
		{
			return names[i].name;
		}
	}
	return NULL;
}

void
proxy_message_describe(const ProxyMessage *message, Text *text)
{
	const char *name = message->direction == FROM_CLIENT
						   ? find_name(client_names, LENGTH_OF(client_names), message->type)
						   : find_name(server_names, LENGTH_OF(server_names), message->type);

	if (name != NULL)
	{
		text_append(text, "%s", name);
	}
	else
	{
		text_append(text, "message of type %c", message->type);
	}
	if (message->tag[0] != '\0')
	{
		text_append(text, " %s", message->tag);
	}
}


/* --- tags --- */

static bool
is_blank(unsigned char byte)
{
	return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

/* Words up to a zero byte, each blank between them one space, and what is not printable ASCII a question mark. */
static void
tag_words(ProxyMessage *message, const unsigned char *bytes, size_t length)
{
	size_t used = 0;
	bool blank = false;

	for (size_t i = 0; i < length && bytes[i] != '\0' && used + 2 < sizeof(message->tag); i++)
	{
		if (is_blank(bytes[i]))
		{
			blank = used > 0;
			continue;
		}
		if (blank)
		{
			message->tag[used++] = ' ';
			blank = false;
		}
		message->tag[used++] = bytes[i] > ' ' && bytes[i] < 0x7f ? (char) bytes[i] : '?';
	}
	message->tag[used] = '\0';
}

/* The bytes behind the first string, NULL when its end is not in the preview. */
static const unsigned char *
behind_string(const unsigned char *bytes, size_t *length)
{
	const unsigned char *end = memchr(bytes, '\0', *length);

	if (end == NULL)
	{
		return NULL;
	}
	*length -= (size_t) (end + 1 - bytes);
	return end + 1;
}

/* The field C of an error or a notice: fields are a letter and a string each. */
static void
tag_sqlstate(ProxyMessage *message, const unsigned char *bytes, size_t length)
{
	while (bytes != NULL && length > 0 && bytes[0] != '\0')
	{
		if (bytes[0] == 'C')
		{
			tag_words(message, bytes + 1, length - 1);
			return;
		}
		bytes = behind_string(bytes, &length);
	}
}

static void
tag_authentication(ProxyMessage *message, const unsigned char *bytes, size_t length)
{
	Text text = {0};

	if (length >= 4)
	{
		text_append(&text, "%u", (unsigned) frame_number(bytes));
		tag_words(message, (const unsigned char *) text_get(&text), text.length);
	}
	text_free(&text);
}

static void
tag_client(ProxyMessage *message, const unsigned char *bytes, size_t length)
{
	if (message->type == 'P')
	{
		bytes = behind_string(bytes, &length); /* the statement's name */
	}
	if (bytes != NULL && (message->type == 'P' || message->type == 'Q'))
	{
		tag_words(message, bytes, length);
	}
}

static void
tag_server(ProxyMessage *message, const unsigned char *bytes, size_t length)
{
	switch (message->type)
	{
		case 'C':
			tag_words(message, bytes, length);
			break;
		case 'E':
		case 'N':
			tag_sqlstate(message, bytes, length);
			break;
		case 'R':
			tag_authentication(message, bytes, length);
			break;
		case 'Z':
			tag_words(message, bytes, length > 1 ? 1 : length);
			break;
		default:
			break;
	}
}

void
message_name(ProxyMessage *message, const FrameParser *parser)
{
	size_t length;
	const unsigned char *body = frame_body(parser, &length);

	message->tag[0] = '\0';
	if (parser->kind != FRAME_MESSAGE)
	{
		message->type = PROXY_STARTUP;
		return;
	}
	message->type = frame_type(parser);
	if (message->direction == FROM_CLIENT)
	{
		tag_client(message, body, length);
	}
	else
	{
		tag_server(message, body, length);
	}
}


/* --- the record --- */

static bool
comes_in_runs(const ProxyMessage *message)
{
	return message->type == 'd' ||
		   (message->direction == FROM_SERVER && (message->type == 'D' || message->type == 'S'));
}

void
record_add(Record *record, const ProxyMessage *message, size_t *last)
{
	if (*last > 0 && record->entries[*last - 1].type == message->type && comes_in_runs(message))
	{
		record->entries[*last - 1].last = message->last;
		return;
	}
	if (record->count == RECORD_MOST)
	{
		*last = 0; /* what ran on would run over a gap */
		record->left_off++;
		return;
	}
	if (record->count == record->capacity)
	{
		record->capacity = record->capacity > 0 ? record->capacity * 2 : FIRST_ENTRIES;
		record->entries = memory_grow(record->entries, record->capacity * sizeof(ProxyMessage));
	}
	record->entries[record->count++] = *message;
	*last = record->count;
}

void
record_clear(Record *record)
{
	free(record->entries);
	*record = (Record){0};
}
