-- What skew.spec and wait.spec are run over; made once, so that no interleaving pays for it.
CREATE TABLE account (id int PRIMARY KEY, balance int NOT NULL);
INSERT INTO account VALUES (1, 100), (2, 100);
