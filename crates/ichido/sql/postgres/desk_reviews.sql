-- What needs review, the longest waiting first.
SELECT r.id, p.name, e.event_id, e.event_type, r.attempts,
       to_char(r.since AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), r.reason
  FROM ichido.review r
  JOIN ichido.endpoint p ON p.id = r.endpoint_id
  JOIN ichido.event e ON e.id = r.id
 ORDER BY r.since, r.id LIMIT $1
