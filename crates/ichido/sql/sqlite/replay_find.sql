-- An event that may run again: whether it is still open, its last run and whose that was.
SELECT e.endpoint_id, e.received_at, e.order_key,
       EXISTS (SELECT 1 FROM ichido_work w WHERE w.id = e.id)
         OR EXISTS (SELECT 1 FROM ichido_review r WHERE r.id = e.id),
       coalesce((SELECT max(d.run) FROM ichido_done d WHERE d.id = e.id), 0),
       coalesce((SELECT d.queue FROM ichido_done d WHERE d.id = e.id ORDER BY d.run DESC LIMIT 1),
                (SELECT p.name FROM ichido_endpoint p WHERE p.id = e.endpoint_id))
  FROM ichido_event e WHERE e.id = ?1
