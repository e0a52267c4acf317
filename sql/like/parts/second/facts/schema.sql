-- The first of two databases: facts and events. What is derived from them lies in the second, ../counts/, and nothing of it here.
-- Over design row.

DROP FUNCTION like_consume(bigint[]);
DROP FUNCTION like_install(bigint, bigint, bigint);
DROP FUNCTION like_read_count(bigint, bigint);
DROP FUNCTION like_audit_read_side();
DROP FUNCTION like_watermark();
DROP FUNCTION like_watermark_reset();
DROP TABLE like_count, processed_event, counter_watermark CASCADE;
