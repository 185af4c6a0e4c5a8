-- A human ended it unprocessed, and why.
INSERT INTO ichido_done (id, run, endpoint_id, outcome, attempts, processed_at, queue, note)
VALUES (?1, ?2, ?3, 'discarded', ?4, ?5, ?6, ?7)
