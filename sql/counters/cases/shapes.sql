-- Counts that are easily counted wrong.

CREATE TABLE post (
	id bigint PRIMARY KEY,
	comments integer NOT NULL,
	commenters integer NOT NULL,
	tagged_comments integer NOT NULL -- comments once more, counted by a query that also joins tags
);

CREATE TABLE picture (
	id bigint PRIMARY KEY,
	comments integer NOT NULL
);

-- What is commented on has a type and an id; ids of posts and pictures are the same numbers.
CREATE TABLE comment (
	id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	subject_type text NOT NULL,
	subject_id bigint NOT NULL,
	author_id bigint NOT NULL
);

CREATE TABLE tag (
	post_id bigint NOT NULL REFERENCES post,
	name text NOT NULL
);

-- A count for each post, in a table of its own, whose rows may be missing.
CREATE TABLE post_stat (
	post_id bigint PRIMARY KEY,
	comments integer NOT NULL
);

-- A count for each post and language, where the language may be NULL; NULLs are distinct in its key, so ON CONFLICT misses them.
CREATE TABLE post_views (
	post_id bigint NOT NULL,
	language text,
	views integer NOT NULL,
	UNIQUE (post_id, language)
);

CREATE TABLE view_log (
	post_id bigint NOT NULL,
	language text
);

-- Post 1: three comments by two authors and two tags; post 2: none. Picture 1: two comments; picture 2: one.
INSERT INTO post VALUES (1, 3, 2, 3), (2, 0, 0, 0);
INSERT INTO picture VALUES (1, 2), (2, 1);
INSERT INTO comment (subject_type, subject_id, author_id) VALUES
	('post', 1, 7), ('post', 1, 7), ('post', 1, 8), ('picture', 1, 7), ('picture', 1, 9), ('picture', 2, 9);
INSERT INTO tag VALUES (1, 'red'), (1, 'blue');
INSERT INTO post_stat VALUES (2, 0);

INSERT INTO view_log VALUES (1, 'en'), (1, 'en'), (1, NULL), (1, NULL), (2, 'en');

CREATE FUNCTION count_view(p_post bigint, p_language text) RETURNS void
LANGUAGE sql VOLATILE
AS $$
	INSERT INTO post_views VALUES (p_post, p_language, 1)
		ON CONFLICT (post_id, language) DO UPDATE SET views = post_views.views + 1;
$$;

SELECT count_view(post_id, language) FROM view_log;
