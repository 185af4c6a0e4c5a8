-- Work that remains.
INSERT INTO ichido_work (id, endpoint_id, queue, lane, next_at, received_at, order_key, last_error)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
