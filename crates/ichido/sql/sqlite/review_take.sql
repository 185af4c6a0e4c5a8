-- Takes an event out of review. No row: it does not wait for a human (any more).
DELETE FROM ichido_review WHERE id = ?1
RETURNING endpoint_id, queue, attempts, run, received_at, order_key, order_seq, reason
