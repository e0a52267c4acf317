/*
 * scale/relay-crash  Redis is killed, and has lost the end of the stream, or all of it
 *
 * Claim      Nothing is lost with Redis: what its file does not have is published again from the outbox, as far as it is above
 *            the watermark, and what comes twice is absorbed.
 * Method     Redis with appendfsync everysec, whose sync hangs: the thread that calls fsync is stopped, as it is by a disk that
 *            does not answer. What is published then is acknowledged and lies in Redis' own memory (it waits up to two
 *            seconds before it writes without). kill -9, start, and compare the stream with what was published. Again, with
 *            the lost events consumed before. Then all data are removed, and the same is done under appendfsync always.
 * Expect     everysec: exactly the events published meanwhile are gone, they are named, and published again, those at or
 *            below the watermark excepted. always: none is gone. In the end the five invariants.
 * Not shown  Power loss: what the kernel had is still there (L3); it would take under everysec what was written since the last
 *            fsync, and recovery is the same. A kill alone, while the disk answers, takes nothing that was acknowledged.
 */
#include "relay_lab.h"

#include <stdlib.h>

static Redis *
look_into(RelayLab *lab)
{
	Redis *redis = redis_open(redis_server_socket(lab->redis));

	require(lab->scene, redis != NULL);
	return redis;
}

static void
kill_redis(RelayLab *lab, const char *when)
{
	Fault *fault = scene_fault(lab->scene, "kill -9 redis-server %s", when);

	require(lab->scene, fault_kill(fault, scene_history(lab->scene), redis_server_process(lab->redis),
								   scene_deadline(lab->scene, RELAY_WAIT_MS)));
	CHECK_EQ(lab->scene, fault->fired, 1, "Redis killed by signal 9, %s", when);
}

/* Before any check: where the system does not let the lab do so, the case is not for it. */
static void
require_holding(RelayLab *lab)
{
	bool held;

	relay_lab_start(lab, "everysec");
	notice_expect_errors(true);
	held = redis_server_hold_sync(lab->redis);
	notice_expect_errors(false);
	if (!held)
	{
		scene_skip(lab->scene, "this system does not let a thread of another process be stopped (ptrace)");
	}
	require(lab->scene, process_kill(redis_server_process(lab->redis), 9, scene_deadline(lab->scene, RELAY_WAIT_MS)));
	require(lab->scene, redis_server_lose_data(lab->redis));
}


/* --- a sync that hangs --- */

static ProbeAnswer
probe_sync_hangs(void *context, Text *seen)
{
	int64_t waiting = 0, buffered = 0;

	if (!redis_info(context, "aof_pending_bio_fsync", &waiting) || !redis_info(context, "aof_buffer_length", &buffered))
	{
		return PROBE_FAILED;
	}
	text_append(seen, "%lld fsyncs that wait, %lld bytes that are not written", (long long) waiting,
				(long long) buffered);
	return waiting > 0 && buffered == 0 ? PROBE_DONE : PROBE_AGAIN;
}

/* From its return on, all before is written, an fsync waits, and what comes is not written for a second at least. */
static void
hang_sync(RelayLab *lab)
{
	Redis *redis;
	bool done;

	require(lab->scene, redis_server_hold_sync(lab->redis));
	redis = look_into(lab);
	done = redis_execute(redis, "INCR lab") &&
		   wait_until("an fsync to wait", scene_deadline(lab->scene, RELAY_WAIT_MS), probe_sync_hangs, redis);
	redis_close(redis);
	require(lab->scene, done);
}

/* A batch more is published, by a relay that is held right after, and Redis is killed. */
static void
publish_and_kill(RelayLab *lab, const char *paused, const char *when)
{
	Process *relay;
	int64_t before, after;

	write_likes(lab, RELAY_BATCH);
	require(lab->scene, redis_server_unsynced_writes(lab->redis, &before));
	relay = start_relay(lab, "relay.after_publish:1");
	(void) check_printed(lab, relay, paused, when);
	kill_redis(lab, when);
	require(lab->scene, redis_server_unsynced_writes(lab->redis, &after));
	if (after > before)
	{
		scene_unknown(lab->scene, "%s: the machine took two seconds, and Redis wrote without waiting", when);
	}
	scene_free_process(lab->scene, relay);
}

/* Those of first..last that the stream has no more. */
static void
check_gone(RelayLab *lab, int64_t first, int64_t last, const char *expected, const char *when)
{
	Redis *redis = look_into(lab);
	int64_t *there = NULL, *gone = memory_get((size_t) (last - first + 1) * sizeof(*gone));
	size_t there_count = 0, gone_count = 0, at = 0;
	bool done = redis_stream_numbers(redis, RELAY_STREAM, &there, &there_count);
	char *ranges;

	for (int64_t event = first; event <= last; event++)
	{
		while (at < there_count && there[at] < event)
		{
			at++;
		}
		if (at == there_count || there[at] != event)
		{
			gone[gone_count++] = event;
		}
	}
	ranges = ranges_of(gone, gone_count);
	note(lab->scene, "%s: acknowledged by Redis and gone: %zu (%s)", when, gone_count, ranges);
	check_text(lab->scene, ranges, expected, "%s: published events that are gone", when);
	redis_close(redis);
	free(there);
	free(gone);
	free(ranges);
	require(lab->scene, done);
}


/* --- the case --- */

static void
tail_lost(RelayLab *lab)
{
	step(lab->scene, "everysec: 40 events are published; the sync hangs, 20 more are, and Redis is killed");
	relay_lab_start(lab, "everysec");
	write_likes(lab, 2 * RELAY_BATCH);
	run_relay(lab, "PUBLISHED 40 again=0 trimmed=0 last=40", "what the relay says");
	hang_sync(lab);
	publish_and_kill(lab, "PAUSED relay.after_publish seq=41..60", "everysec, the sync hanging");
	relay_lab_start(lab, "everysec");
	check_gone(lab, 1, 60, "41..60", "everysec, the sync hanging");
	run_relay(lab, "PUBLISHED 20 again=0 trimmed=0 last=60", "what the relay says after the loss");
	check_stream(lab, "1..60", "published again");
	run_consumer(lab, "one", "DRAINED applied=60 covered=0 dup=0 watermark=60 claimed=0", "what the consumer says");
	check_all_arrived(lab, "after a lost tail");
}

static void
consumed_tail_lost(RelayLab *lab)
{
	Process *relay;

	step(lab->scene, "the same, and what is lost has been consumed before");
	hang_sync(lab);
	write_likes(lab, RELAY_BATCH);
	relay = start_relay(lab, "relay.after_publish:1");
	(void) check_printed(lab, relay, "PAUSED relay.after_publish seq=61..80", "where the relay stopped");
	run_consumer(lab, "two", "DRAINED applied=20 covered=0 dup=0 watermark=80 claimed=0", "what the next one says");
	kill_redis(lab, "with a consumed tail");
	scene_free_process(lab->scene, relay);
	relay_lab_start(lab, "everysec");
	write_likes(lab, RELAY_BATCH);
	run_relay(lab, "PUBLISHED 20 again=0 trimmed=60 last=100", "what the relay says above the watermark");
	check_stream(lab, "81..100", "above the watermark");
	run_consumer(lab, "three", "DRAINED applied=20 covered=0 dup=0 watermark=100 claimed=0", "what the third one says");
	check_all_arrived(lab, "after a lost tail that was consumed");
}

static void
all_lost(RelayLab *lab)
{
	step(lab->scene, "20 events are published, and Redis loses all its data with its disk");
	write_likes(lab, RELAY_BATCH);
	run_relay(lab, "PUBLISHED 20 again=0 trimmed=20 last=120", "what the relay says before that");
	kill_redis(lab, "with its disk");
	require(lab->scene, redis_server_lose_data(lab->redis));
	relay_lab_start(lab, "always");
	check_gone(lab, 101, 120, "101..120", "its disk lost");
	run_relay(lab, "PUBLISHED 20 again=0 trimmed=0 last=120", "what the relay says on an empty Redis");
	run_consumer(lab, "four", "DRAINED applied=20 covered=0 dup=0 watermark=120 claimed=0", "what the fourth one says");
	check_all_arrived(lab, "after the loss of all");
}

static void
always(RelayLab *lab)
{
	step(lab->scene,
		 "always: the thread that syncs every second is stopped, 20 events are published, and Redis is killed");
	require(lab->scene, redis_server_hold_sync(lab->redis));
	publish_and_kill(lab, "PAUSED relay.after_publish seq=121..140", "always");
	relay_lab_start(lab, "always");
	check_gone(lab, 121, 140, "none", "always");
	run_relay(lab, "PUBLISHED 0 again=0 trimmed=20 last=140", "what the relay says when nothing is lost");
	run_consumer(lab, "five", "DRAINED applied=20 covered=0 dup=0 watermark=140 claimed=0", "what the fifth one says");
	check_all_arrived(lab, "in the end");
}

static void
run(Scene *scene)
{
	RelayLab lab = relay_lab(scene);

	require_holding(&lab);
	tail_lost(&lab);
	consumed_tail_lost(&lab);
	all_lost(&lab);
	always(&lab);
}

const Scenario scenario_scale_relay_crash = {
	.suite = "scale",
	.id = "scale/relay-crash",
	.title = "Redis is killed, and has lost the end of the stream, or all of it",
	.claim = "what Redis lost is published again from the outbox; nothing is lost, what comes twice is absorbed",
	.kind = "several processes, fixed interleaving, kill -9",
	.guarantee = "each event takes effect once, whatever Redis keeps",
	.observed = "the stream before and after, gone events by number, what the programs print, both audits",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 60000,
	.run = run,
};
