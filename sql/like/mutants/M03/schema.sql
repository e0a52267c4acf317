-- M03: a sequence in the place of the number row, see write.sql beside this.
--
-- Readers of like_seq find the last number that was drawn, and who sets it, sets the sequence.
--
-- Lock order: none.

DROP TABLE like_seq;

CREATE SEQUENCE like_number;

CREATE VIEW like_seq AS
	SELECT 1 AS id, CASE WHEN is_called THEN last_value ELSE last_value - 1 END AS last FROM like_number;

CREATE RULE like_seq_set AS ON UPDATE TO like_seq
	DO INSTEAD SELECT setval('like_number', new.last + 1, false);
