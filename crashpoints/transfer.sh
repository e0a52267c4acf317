#!/bin/sh
# Moves 10 from account 1 to account 2 and leaves a row in the outbox, all in one transaction, and tries again until psql
# says that it was done. The row has the transfer's own key: a transfer that was committed without an answer is found again.
for _ in 1 2 3; do
	psql -X -q -v ON_ERROR_STOP=1 <<'SQL' && exit 0
BEGIN;
WITH fresh AS (
	INSERT INTO outbox (key, amount) VALUES ('transfer-1', 10) ON CONFLICT DO NOTHING RETURNING amount
)
UPDATE account a SET balance = a.balance + CASE a.id WHEN 1 THEN -f.amount ELSE f.amount END
	FROM fresh f WHERE a.id IN (1, 2);
COMMIT;
SQL
done
exit 1
