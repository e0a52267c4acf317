-- What one looks for a key in that is not there, before anybody else is connected.
CREATE TABLE item (id int PRIMARY KEY);
