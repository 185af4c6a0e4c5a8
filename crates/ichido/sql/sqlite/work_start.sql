-- The completion, which opens a handler's transaction. No row: the lease is not ours any more.
DELETE FROM ichido_work WHERE id = ?1 AND lease = ?2 AND lease <> 0
RETURNING endpoint_id, queue, attempts, run, order_key, order_seq
