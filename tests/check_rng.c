/* The generator: the published values of SplitMix64, independence of streams, no bias, a real shuffle. */
#include "rng.h"

#include <check.h>
#include <stdlib.h>

#include "base.h"
#include "suite.h"

START_TEST(draws_are_those_of_splitmix64)
{
	Rng rng = {.state = 1234567};

	ck_assert_uint_eq(rng_next(&rng), UINT64_C(6457827717110365317));
	ck_assert_uint_eq(rng_next(&rng), UINT64_C(3203168211198807973));
	ck_assert_uint_eq(rng_next(&rng), UINT64_C(9817491932198370423));
}
END_TEST

START_TEST(a_stream_repeats_and_differs_from_the_others)
{
	Rng first = rng_stream(32, 0);
	Rng again = rng_stream(32, 0);
	Rng second = rng_stream(32, 1);
	Rng other_seed = rng_stream(33, 0);

	for (int i = 0; i < 100; i++)
	{
		uint64_t draw = rng_next(&first);

		ck_assert_uint_eq(draw, rng_next(&again));
		ck_assert_uint_ne(draw, rng_next(&second));
		ck_assert_uint_ne(draw, rng_next(&other_seed));
	}
}
END_TEST

/* One stream must not be another one a few draws later, which a seed added to the stream number would give. */
START_TEST(streams_do_not_overlap)
{
	uint64_t draws[16 * 64];
	size_t count = 0;

	for (uint64_t seed = 0; seed < 4; seed++)
	{
		for (uint64_t stream = 0; stream < 4; stream++)
		{
			Rng rng = rng_stream(seed, stream);

			for (int i = 0; i < 64; i++)
			{
				draws[count] = rng_next(&rng);
				for (size_t before = 0; before < count; before++)
				{
					ck_assert_uint_ne(draws[before], draws[count]);
				}
				count++;
			}
		}
	}
	ck_assert_uint_eq(count, LENGTH_OF(draws));
}
END_TEST

START_TEST(numbers_below_a_bound_are_even)
{
	Rng rng = rng_stream(1, 0);
	int hits[6] = {0};
	int low_third = 0;

	for (int i = 0; i < 60000; i++)
	{
		uint64_t draw = rng_below(&rng, 6);

		ck_assert_uint_lt(draw, 6);
		hits[draw]++;
	}
	for (int i = 0; i < 6; i++)
	{
		ck_assert_int_gt(hits[i], 9600); /* 10000, give or take 4 standard deviations */
		ck_assert_int_lt(hits[i], 10400);
	}

	/* A plain modulo by three quarters of 2^64 would put two thirds of the draws into the lowest third. */
	for (int i = 0; i < 3000; i++)
	{
		low_third += rng_below(&rng, UINT64_C(0xc000000000000000)) < UINT64_C(0x4000000000000000);
	}
	ck_assert_int_gt(low_third, 880);
	ck_assert_int_lt(low_third, 1120);
	ck_assert_uint_eq(rng_below(&rng, 1), 0);
}
END_TEST

START_TEST(a_shuffle_is_a_permutation_and_every_one_occurs)
{
	Rng rng = rng_stream(7, 3);
	int seen[6] = {0};
	int64_t single = 5;

	for (int i = 0; i < 6000; i++)
	{
		int64_t values[3] = {1, 2, 3};

		rng_shuffle(&rng, values, 3);
		ck_assert_int_eq(values[0] + values[1] + values[2], 6);
		ck_assert_int_eq(values[0] * values[1] * values[2], 6);
		seen[(values[0] - 1) * 2 + (values[1] > values[2])]++;
	}
	for (int i = 0; i < 6; i++)
	{
		ck_assert_int_gt(seen[i], 850);
		ck_assert_int_lt(seen[i], 1150);
	}
	rng_shuffle(&rng, &single, 1);
	ck_assert_int_eq(single, 5);
	rng_shuffle(&rng, NULL, 0);
}
END_TEST

START_TEST(a_random_seed_is_new_each_time_and_fits_a_bigint)
{
	uint64_t first = rng_random_seed();

	ck_assert_uint_ne(first, rng_random_seed());
	for (int i = 0; i < 64; i++)
	{
		ck_assert_uint_lt(rng_random_seed(), UINT64_C(1) << 63);
	}
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("rng");
	TCase *tcase = tcase_create("rng");

	tcase_set_timeout(tcase, 20);
	tcase_add_test(tcase, draws_are_those_of_splitmix64);
	tcase_add_test(tcase, a_stream_repeats_and_differs_from_the_others);
	tcase_add_test(tcase, streams_do_not_overlap);
	tcase_add_test(tcase, numbers_below_a_bound_are_even);
	tcase_add_test(tcase, a_shuffle_is_a_permutation_and_every_one_occurs);
	tcase_add_test(tcase, a_random_seed_is_new_each_time_and_fits_a_bigint);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
