#include "spool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SPOOL_NULL (-1)

struct Spool
{
	FILE *file; /* has no name */
	int64_t count;
	Text texts; /* of the row that was read last */
};

Spool *
spool_open(void)
{
	FILE *file = tmpfile();
	Spool *spool;

	if (file == NULL)
	{
		report_error("no temporary file for what differs: %s", strerror(errno));
		return NULL;
	}
	spool = memory_get(sizeof(*spool));
	spool->file = file;
	return spool;
}

void
spool_close(Spool *spool)
{
	if (spool != NULL)
	{
		(void) fclose(spool->file);
		text_free(&spool->texts);
		free(spool);
	}
}

int64_t
spool_count(const Spool *spool)
{
	return spool->count;
}

static bool
write_text(FILE *file, const char *text)
{
	int64_t length = text != NULL ? (int64_t) strlen(text) : SPOOL_NULL;

	return fwrite(&length, sizeof(length), 1, file) == 1 &&
		   (length <= 0 || fwrite(text, (size_t) length, 1, file) == 1);
}

bool
spool_add(Spool *spool, const Counter *counter, const CounterDrift *drift)
{
	const char *const texts[] = {drift->stored, drift->actual, drift->pending, drift->diff};
	bool done = fwrite(&drift->class, sizeof(drift->class), 1, spool->file) == 1 &&
				fwrite(&drift->rows, sizeof(drift->rows), 1, spool->file) == 1;

	for (int i = 0; done && i < counter->key_count; i++)
	{
		done = write_text(spool->file, drift->key[i]);
	}
	for (size_t i = 0; done && i < LENGTH_OF(texts); i++)
	{
		done = write_text(spool->file, texts[i]);
	}
	if (!done)
	{
		report_error("cannot keep what differs in a temporary file: %s", strerror(errno));
		return false;
	}
	spool->count++;
	return true;
}

bool
spool_rewind(Spool *spool)
{
	if (fflush(spool->file) != 0)
	{
		report_error("cannot keep what differs in a temporary file: %s", strerror(errno));
		return false;
	}
	rewind(spool->file);
	return true;
}

/* Appends it with its zero; *offset is where, SPOOL_NULL for NULL. */
static bool
read_text(Spool *spool, int64_t *offset)
{
	int64_t length;
	char buffer[512];

	if (fread(&length, sizeof(length), 1, spool->file) != 1)
	{
		return false;
	}
	*offset = length == SPOOL_NULL ? SPOOL_NULL : (int64_t) spool->texts.length;
	while (length > 0)
	{
		size_t part = length < (int64_t) sizeof(buffer) ? (size_t) length : sizeof(buffer);

		if (fread(buffer, part, 1, spool->file) != 1)
		{
			return false;
		}
		text_append_bytes(&spool->texts, buffer, part);
		length -= (int64_t) part;
	}
	text_append_bytes(&spool->texts, "", 1);
	return true;
}

static const char *
text_at(const Spool *spool, int64_t offset)
{
	return offset == SPOOL_NULL ? NULL : spool->texts.data + offset;
}

bool
spool_next(Spool *spool, const Counter *counter, CounterDrift *drift)
{
	int64_t offsets[COUNTER_KEY_MAX + 4];
	int keys = counter->key_count;
	bool done;

	if (fread(&drift->class, sizeof(drift->class), 1, spool->file) != 1)
	{
		return false; /* the end */
	}
	text_clear(&spool->texts);
	done = fread(&drift->rows, sizeof(drift->rows), 1, spool->file) == 1;
	for (int i = 0; done && i < keys + 4; i++)
	{
		done = read_text(spool, &offsets[i]);
	}
	if (!done)
	{
		report_error("cannot read what differs from its temporary file: %s", strerror(errno));
		return false;
	}
	for (int i = 0; i < keys; i++)
	{
		drift->key[i] = text_at(spool, offsets[i]);
	}
	drift->stored = text_at(spool, offsets[keys]);
	drift->actual = text_at(spool, offsets[keys + 1]);
	drift->pending = text_at(spool, offsets[keys + 2]);
	drift->diff = text_at(spool, offsets[keys + 3]);
	return true;
}
