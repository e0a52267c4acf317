-- A fix by hand, which touched one side only.
UPDATE media SET usage_count = 5 WHERE id = 10;
