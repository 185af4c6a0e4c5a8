-- A failed attempt of a worker.
INSERT INTO ichido_attempt (id, lease, started_at, ended_at, run, attempt, error)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
