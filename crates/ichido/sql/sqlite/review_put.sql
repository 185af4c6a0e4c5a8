-- Waits for a human: verified, but without a usable event id.
INSERT INTO ichido_review (id, endpoint_id, queue, attempts, run, since, received_at, order_key,
                           reason)
VALUES (?1, ?2, ?3, 0, 0, ?4, ?4, ?5, ?6)
