-- Marks a run as done, in the transaction of its effect.
INSERT INTO ichido_done (id, run, endpoint_id, outcome, attempts, processed_at)
VALUES (?1, 0, ?2, ?3, 0, ?4)
