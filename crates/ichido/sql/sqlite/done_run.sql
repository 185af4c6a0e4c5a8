-- Marks a worker's run as done, in the transaction of its effect.
INSERT INTO ichido_done (id, endpoint_id, queue, attempts, run, outcome, processed_at)
VALUES (?1, ?2, ?3, ?4, ?5, 'processed', ?6)
