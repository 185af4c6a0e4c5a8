-- Work that a human asked for.
INSERT INTO ichido_work (id, endpoint_id, queue, lane, next_at, run, received_at, order_key,
                         order_seq, last_error)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
