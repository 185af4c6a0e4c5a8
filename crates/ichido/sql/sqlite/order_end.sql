-- This endpoint asks for order no more: nobody would let them go.
UPDATE ichido_work SET next_at = ?2, order_seq = NULL
 WHERE endpoint_id = ?1 AND order_seq IS NOT NULL AND next_at IS NULL
