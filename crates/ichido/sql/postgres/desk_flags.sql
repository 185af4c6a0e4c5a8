-- Open flags, the oldest first.
SELECT f.id::text, p.name, e.event_id,
       to_char(f.raised_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), f.reason
  FROM ichido.flag f
  JOIN ichido.event e ON e.id = f.receipt
  JOIN ichido.endpoint p ON p.id = e.endpoint_id
 WHERE f.closed_at IS NULL
 ORDER BY f.raised_at, f.id LIMIT $1
