-- How the line of a key stands: whether its head is let go, and the last place in it.
SELECT w.next_at IS NOT NULL,
       (SELECT max(l.order_seq) FROM ichido_work l
         WHERE l.endpoint_id = ?1 AND l.order_key = ?2 AND l.order_seq IS NOT NULL)
  FROM ichido_work w
 WHERE w.endpoint_id = ?1 AND w.order_key = ?2 AND w.order_seq IS NOT NULL
 ORDER BY w.order_seq LIMIT 1
