-- Both databases of sql/like/parts/second/ as schemas of one: what is loaded after this is the second.
CREATE SCHEMA counts;
SET search_path = counts;
