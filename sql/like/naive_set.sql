-- Negative control: a request adds or subtracts by its direction.
--
-- What is missing: the old state is not read, so nothing decides whether the request changes anything. A request sent
-- twice counts twice, and an unlike of a pair that was never liked goes below zero. It runs in a transaction like any
-- other: what like_set() has and this lacks is reading, comparing and deciding, not the transaction.
--
-- Lock order: the naive count row. It keeps a table of its own, to be compared with the facts that like_set() wrote for
-- the same requests.

CREATE TABLE like_naive_count (
	item_id bigint PRIMARY KEY REFERENCES item,
	n bigint NOT NULL
);

CREATE OR REPLACE FUNCTION like_set_naive(p_user bigint, p_item bigint, p_want boolean) RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
	INSERT INTO like_naive_count AS c (item_id, n) VALUES (p_item, CASE WHEN p_want THEN 1 ELSE -1 END)
		ON CONFLICT (item_id) DO UPDATE SET n = c.n + excluded.n;
END
$$;
