#include "told.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define TEXT_MAX 32768 /* of each text; rows and last words are for people */

typedef struct
{
	Told told;
	TrialVerdict verdict;
	int64_t waited_ms;
	int64_t duration_ns;
	size_t lengths[3];
} Head;

static size_t
fitting(const Text *text)
{
	return text->length < TEXT_MAX ? text->length : TEXT_MAX;
}

bool
told_send(int fd, const Told *told, const TrialOutcome *outcome)
{
	static const TrialOutcome nothing;
	const TrialOutcome *said = outcome != NULL ? outcome : &nothing;
	Head head;
	struct iovec parts[4];
	struct msghdr message = {.msg_iov = parts, .msg_iovlen = LENGTH_OF(parts)};
	const Text *texts[3] = {&said->reason, &said->failures, &said->notes};
	ssize_t sent;

	memset(&head, 0, sizeof(head)); /* padding, too: it is sent */
	head.told = *told;
	head.verdict = said->verdict;
	head.waited_ms = said->waited_ms;
	head.duration_ns = said->duration_ns;
	parts[0] = (struct iovec){&head, sizeof(head)};
	for (int i = 0; i < 3; i++)
	{
		head.lengths[i] = fitting(texts[i]);
		parts[i + 1] = (struct iovec){texts[i]->data, head.lengths[i]};
	}
	do
	{
		sent = sendmsg(fd, &message, MSG_NOSIGNAL);
	} while (sent < 0 && errno == EINTR && !interrupt_seen());
	return sent > 0;
}

bool
told_receive(int fd, Told *told, TrialOutcome *outcome)
{
	char *bytes = memory_get(sizeof(Head) + 3 * TEXT_MAX);
	const char *at = bytes + sizeof(Head);
	Text *texts[3] = {&outcome->reason, &outcome->failures, &outcome->notes};
	Head head;
	ssize_t got;

	do
	{
		got = recv(fd, bytes, sizeof(Head) + 3 * TEXT_MAX, 0);
	} while (got < 0 && errno == EINTR && !interrupt_seen());
	if (got < (ssize_t) sizeof(Head))
	{
		free(bytes);
		return false;
	}
	memcpy(&head, bytes, sizeof(head));
	*told = head.told;
	*outcome = (TrialOutcome){.verdict = head.verdict, .waited_ms = head.waited_ms, .duration_ns = head.duration_ns};
	for (int i = 0; i < 3; i++)
	{
		text_append_bytes(texts[i], at, head.lengths[i]);
		at += head.lengths[i];
	}
	free(bytes);
	return true;
}
