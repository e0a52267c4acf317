#include <stdatomic.h>

#include "way_lab.h"

enum
{
	WRITERS = 4,
	REQUESTS = 120, /* of each writer */
	USERS = 40,
	NEW_USER = 1000, /* likes nothing yet */
	LATER_MS = 10000
};

Session *
way_lab(Scene *scene, const Way *way)
{
	Session *lab = like_lab(scene, WAY_ITEMS);

	require(scene, session_execute_file(lab, scene_sql(scene, way->file)));
	load_twin_file(scene, lab, way->file);
	return lab;
}

void
set_by(Scene *scene, Session *session, const Way *way, int64_t user, int64_t item, bool want)
{
	require(scene, session_query(session, NULL, way->set, ARGS(arg_int(user), arg_int(item), arg_bool(want))));
}

int64_t
items_off(Scene *scene, Session *session, const Way *way)
{
	return number_of(scene, session, way->off, NO_ARGS);
}


/* --- writers and a sampler at once --- */

typedef struct
{
	const Way *way;
	uint64_t seed;
	Session *writers[WRITERS], *sampler;
	atomic_int writing;
	int64_t samples, off;
} Storm;

static bool
write_some(Storm *storm, int worker)
{
	Rng rng = rng_stream(storm->seed, (uint64_t) worker);
	bool done = true;

	for (int i = 0; i < REQUESTS && done; i++)
	{
		int64_t user = 1 + (int64_t) rng_below(&rng, USERS);
		int64_t item = 1 + (int64_t) rng_below(&rng, WAY_ITEMS);

		done = session_query(storm->writers[worker], NULL, storm->way->set,
							 ARGS(arg_int(user), arg_int(item), arg_bool(rng_below(&rng, 2) == 1)));
	}
	atomic_fetch_sub(&storm->writing, 1);
	return done;
}

static bool
storm_worker(int worker, void *context)
{
	Storm *storm = context;
	bool done = true;

	if (worker < WRITERS)
	{
		return write_some(storm, worker);
	}
	while (done && (storm->samples < WAY_SAMPLES_LEAST || atomic_load(&storm->writing) > 0))
	{
		int64_t off;

		done = session_query_int(storm->sampler, &off, storm->way->off, NO_ARGS);
		storm->samples++;
		storm->off += off > 0;
	}
	return done;
}

/* *samples of which *off found an item whose count was not that of its facts. */
void
run_way_storm(Scene *scene, const Way *way, int64_t *samples, int64_t *off)
{
	static Storm storm; /* outlives a case that ends early */

	storm = (Storm){.way = way, .seed = scene_seed(scene), .sampler = scene_session(scene, "sampler")};
	atomic_store(&storm.writing, WRITERS);
	for (int i = 0; i < WRITERS; i++)
	{
		storm.writers[i] = scene_session(scene, "writer");
	}
	step(scene, "%d writers send %d requests each while a sampler looks", WRITERS, REQUESTS);
	run_workers(scene, "writers and sampler", WRITERS + 1, storm_worker, &storm);
	*samples = storm.samples;
	*off = storm.off;
	note(scene, "values vary by run: samples=%lld, with an item that was off=%lld", (long long) storm.samples,
		 (long long) storm.off);
}


/* --- who waits --- */

void
check_second(Scene *scene, Session *lab, const Way *way, int64_t item, bool waits, const char *what)
{
	Session *first = scene_session(scene, "first"), *second = scene_session(scene, "second");

	require(scene, session_begin(first, READ_COMMITTED));
	set_by(scene, first, way, NEW_USER, 1, true);
	require(scene, session_execute(second, "SELECT"));
	require(scene, session_send(second, way->set, ARGS(arg_int(NEW_USER + 1), arg_int(item), arg_bool(true))));
	if (waits)
	{
		check_waits(scene, lab, second, "%s waits in pg_locks", what);
		commit(scene, first);
		CHECK_EQ(scene, session_await(second, NULL, scene_deadline(scene, LATER_MS)), SQL_OK, "%s, after the commit",
				 what);
	}
	else
	{
		CHECK_EQ(scene, session_await(second, NULL, scene_deadline(scene, LATER_MS)), SQL_OK,
				 "%s ends while the first is open", what);
		commit(scene, first);
	}
	scene_close_session(scene, first);
	scene_close_session(scene, second);
}
