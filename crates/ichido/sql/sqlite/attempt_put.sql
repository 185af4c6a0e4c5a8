-- A failed start of a handler.
INSERT INTO ichido_attempt (id, lease, started_at, ended_at, run, attempt, error)
VALUES (?1, ?2, ?3, ?4, 0, 0, ?5)
