/*
 * scale/relay  the outbox is published to a Redis stream, and consumed from it, by programs that are killed
 *
 * Claim      Through a real transport each event takes effect once: a relay that is killed, or runs twice, leaves neither a hole
 *            nor a double in the stream; what a killed consumer was given is claimed by another; what is trimmed has taken effect.
 * Method     like-relay and like-stream-consumer as processes of their own and a Redis with an append-only file, in fixed
 *            orders: the relay is stopped before and after a publication and killed; a consumer in its transaction, another
 *            between its commit and its XACK, and a third one claims (XAUTOCLAIM). Two relays plan the same batch. All
 *            of Redis is emptied (FLUSHALL) between a relay's plan and its publication. Batches of 20.
 * Expect     The stream holds each event above the watermark once and in order after each of these; entries of the
 *            first killed consumer are applied, those of the second are dup; nothing stays pending; drained, with the
 *            five invariants.
 * Not shown  Redis killed: scale/relay-crash. Replicated or clustered Redis, other groups of consumers at the same stream
 *            (L39).
 */
#include "relay_lab.h"

#define NEVER_MS "60000"

static void
relay_killed(RelayLab *lab)
{
	Process *relay;

	step(lab->scene, "60 events; the relay is killed before it publishes its second batch");
	write_likes(lab, 3 * RELAY_BATCH);
	relay = start_relay(lab, "relay.before_publish:2");
	kill_at(lab, relay, "like-relay", "PAUSED relay.before_publish seq=21..40", "where the relay stopped");
	check_stream(lab, "1..20", "killed before its publication");

	step(lab->scene, "started again, and killed after it has published that batch");
	relay = start_relay(lab, "relay.after_publish:1");
	kill_at(lab, relay, "like-relay", "PAUSED relay.after_publish seq=21..40", "where the second one stopped");
	check_stream(lab, "1..40", "killed after its publication");

	step(lab->scene, "started a third time");
	run_relay(lab, "PUBLISHED 20 again=0 trimmed=0 last=60", "what the third one says");
	check_stream(lab, "1..60", "all published");
}

static void
consumers_killed(RelayLab *lab)
{
	Process *consumer;

	step(lab->scene, "a consumer is killed in the transaction of its first batch");
	consumer = start_consumer(lab, "one", NEVER_MS, "consumer.before_commit:1");
	kill_at(lab, consumer, "like-stream-consumer", "PAUSED consumer.before_commit batch=1 seq=1..20",
			"where the consumer stopped");
	CHECK_EQ(lab->scene, entries_pending(lab), 20, "killed before its commit: entries pending");
	check_audits_clean(lab->scene, lab->lab, "killed before its commit");

	step(lab->scene, "another one after the commit of its first batch, before it acknowledges");
	consumer = start_consumer(lab, "two", NEVER_MS, "consumer.after_commit:1");
	kill_at(lab, consumer, "like-stream-consumer", "PAUSED consumer.after_commit batch=1 seq=21..40",
			"where the second consumer stopped");
	CHECK_EQ(lab->scene, entries_pending(lab), 40, "killed before it acknowledged: entries pending");
	check_audits_clean(lab->scene, lab->lab, "killed before it acknowledged");

	step(lab->scene, "a third one takes what is new, and claims what the dead were given");
	run_consumer(lab, "three", "DRAINED applied=40 covered=0 dup=20 watermark=60 claimed=40",
				 "what the third one says");
	CHECK_EQ(lab->scene, entries_pending(lab), 0, "claimed and acknowledged: entries pending");
	check_all_arrived(lab, "after the claims");
}

static void
trimmed(RelayLab *lab)
{
	Process *consumer;

	step(lab->scene, "40 events more; a consumer is killed after it has acknowledged the first 20");
	write_likes(lab, 2 * RELAY_BATCH);
	run_relay(lab, "PUBLISHED 40 again=0 trimmed=60 last=100", "what the relay says, having trimmed");
	check_stream(lab, "61..100", "trimmed at the watermark");
	consumer = start_consumer(lab, "four", NEVER_MS, "consumer.after_ack:1");
	kill_at(lab, consumer, "like-stream-consumer", "PAUSED consumer.after_ack batch=1 events=20",
			"where the fourth consumer stopped");
	run_relay(lab, "PUBLISHED 0 again=0 trimmed=20 last=100", "what the relay says with nothing to publish");
	check_stream(lab, "81..100", "trimmed at the watermark again");
	run_consumer(lab, "five", "DRAINED applied=20 covered=0 dup=0 watermark=100 claimed=0", "what the fifth one says");
	check_all_arrived(lab, "after trimming");
}

static void
two_relays(RelayLab *lab)
{
	Process *relay;

	step(lab->scene, "a relay has planned a batch when another one publishes it");
	write_likes(lab, RELAY_BATCH);
	relay = start_relay(lab, "relay.before_publish:1");
	(void) check_printed(lab, relay, "PAUSED relay.before_publish seq=101..120",
						 "where the first of two relays stopped");
	run_relay(lab, "PUBLISHED 20 again=0 trimmed=20 last=120", "what the second of two relays says");
	let_go(lab, relay, "PUBLISHED 0 again=1 trimmed=0 last=120", "what the first of two relays says");
	check_stream(lab, "101..120", "two relays");
}

static void
flush(RelayLab *lab)
{
	Redis *redis = redis_open(redis_server_socket(lab->redis));
	bool done = redis != NULL && redis_execute(redis, "FLUSHALL");

	redis_close(redis);
	require(lab->scene, done);
}

static void
emptied(RelayLab *lab)
{
	Process *relay;

	step(lab->scene,
		 "a relay has planned a batch when all of Redis is emptied, 20 events before it still to be consumed");
	write_likes(lab, RELAY_BATCH);
	relay = start_relay(lab, "relay.before_publish:1");
	(void) check_printed(lab, relay, "PAUSED relay.before_publish seq=121..140",
						 "where the relay stopped before the loss");
	flush(lab);
	let_go(lab, relay, "PUBLISHED 40 again=1 trimmed=0 last=140", "what the relay says after the loss");
	check_stream(lab, "101..140", "emptied and published again");
	run_consumer(lab, "six", "DRAINED applied=40 covered=0 dup=0 watermark=140 claimed=0", "what the sixth one says");
	check_all_arrived(lab, "in the end");
}

static void
run(Scene *scene)
{
	RelayLab lab = relay_lab(scene);

	relay_lab_start(&lab, "everysec");
	relay_killed(&lab);
	consumers_killed(&lab);
	trimmed(&lab);
	two_relays(&lab);
	emptied(&lab);
}

const Scenario scenario_scale_relay = {
	.suite = "scale",
	.id = "scale/relay",
	.title = "the outbox is published to a Redis stream and consumed from it by programs that are killed",
	.claim =
		"no hole and no double in the stream; what a dead consumer was given is claimed; trimmed is what took effect",
	.kind = "several processes, fixed interleaving, kill -9",
	.guarantee = "each event takes effect once through relay, stream and group",
	.observed = "the stream, entries pending, what the programs print, both audits",
	.needs = NEEDS_DATABASE,
	.deadline_ms = 60000,
	.run = run,
};
