/*
 * What passed, in order: messages by name. A run of messages that come by the million is one entry, and the number of
 * entries is bounded, so that the record of any program fits into RECORD_MOST entries.
 */
#ifndef COUNTERPROOF_PROXY_RECORD_H
#define COUNTERPROOF_PROXY_RECORD_H

#include "../proxy.h"
#include "frame.h"

#define RECORD_MOST (1 << 18) /* entries of 96 bytes: 24 MiB */

typedef struct
{
	ProxyMessage *entries;
	size_t count;
	size_t capacity;
	int64_t left_off; /* messages that found it full */
} Record;

/* Fill type and tag from what the preview holds. */
extern void message_name(ProxyMessage *message, const FrameParser *parser);

/* `last` remembers the last entry of one direction of one connection: its number from 1, 0 before there is one. */
extern void record_add(Record *record, const ProxyMessage *message, size_t *last);
extern void record_clear(Record *record); /* gives the memory back */

#endif
