-- Moves the line of a key on: the first in it is due now, unless it was let go before, or the key
-- is blocked by one that needs review.
UPDATE ichido_work SET next_at = ?3
 WHERE next_at IS NULL
   AND id = (SELECT w.id FROM ichido_work w
              WHERE w.endpoint_id = ?1 AND w.order_key = ?2 AND w.order_seq IS NOT NULL
              ORDER BY w.order_seq LIMIT 1)
   AND NOT EXISTS (
     SELECT 1 FROM ichido_review r
       JOIN ichido_endpoint p ON p.id = r.endpoint_id
      WHERE r.endpoint_id = ?1 AND r.order_key = ?2 AND r.order_seq IS NOT NULL
        AND p.settings ->> 'order_by_key' = 'block')
