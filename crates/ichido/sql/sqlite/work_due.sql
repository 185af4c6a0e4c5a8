-- What is due in one lane of one queue, the longest due first: its event beside it.
SELECT w.id, w.lease, w.attempts, w.run, w.claimed_at, w.next_at, w.endpoint_id,
       p.max_attempts, p.name, p.provider, e.event_id, e.event_type, e.occurred_at,
       substr(d.body, e.body_from + 1, e.body_to - e.body_from), e.signed
  FROM ichido_work w
  JOIN ichido_endpoint p ON p.id = w.endpoint_id
  JOIN ichido_event e ON e.id = w.id
  LEFT JOIN ichido_delivery d ON d.id = e.delivery_id
 WHERE w.queue = ?1 AND w.lane = ?2 AND w.next_at <= ?3
 ORDER BY w.next_at, w.id LIMIT ?4
