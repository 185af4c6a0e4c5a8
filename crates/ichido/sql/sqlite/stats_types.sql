-- What came in the last hour, by endpoint and type.
SELECT p.name, t.event_type, t.many
  FROM (SELECT endpoint_id, event_type, count(*) AS many FROM ichido_event
         WHERE received_at > strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-1 hour')
         GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2 LIMIT 50) t
  JOIN ichido_endpoint p ON p.id = t.endpoint_id
 ORDER BY t.many DESC, 1, 2
