-- No work remains. Says which line its going moves on.
DELETE FROM ichido_work WHERE id = ?1
RETURNING endpoint_id, order_key, order_seq
