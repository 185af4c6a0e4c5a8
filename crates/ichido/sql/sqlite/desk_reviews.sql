-- What needs review, the longest waiting first.
SELECT r.id, p.name, e.event_id, e.event_type, r.attempts, r.since, r.reason
  FROM ichido_review r
  JOIN ichido_endpoint p ON p.id = r.endpoint_id
  JOIN ichido_event e ON e.id = r.id
 ORDER BY r.since, r.id LIMIT ?1
