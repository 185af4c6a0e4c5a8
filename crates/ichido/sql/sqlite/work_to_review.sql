-- Attempts are used up, or the handler asked for it: waits for a human. The work goes after it.
INSERT INTO ichido_review (id, endpoint_id, queue, attempts, run, since, received_at, order_key,
                           order_seq, reason)
SELECT id, endpoint_id, queue, attempts, run, ?2, received_at, order_key, order_seq, ?3
  FROM ichido_work WHERE id = ?1
