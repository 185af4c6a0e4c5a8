-- A number that was never used before.
INSERT INTO ichido_lease DEFAULT VALUES RETURNING number
