-- One row an event, with the columns people know from the inbox pattern. An event is in exactly
-- one of work, review and done, so this is their union, and a question about open events
-- (processed_at IS NULL) prunes every partition of done. The parts are plain, so that conditions
-- reach their indexes; the joins are outer ones on unique keys, so that an unused one is free.
-- A later run hides the earlier ones. payload is NULL where the bytes are not JSON.
CREATE OR REPLACE VIEW ichido.webhook_inbox AS
SELECT p.provider,
       p.name AS endpoint,
       e.event_id,
       e.event_type,
       (SELECT ichido.json_or_null(substring(d.body, e.body_from + 1, e.body_to - e.body_from))
          FROM ichido.delivery d
         WHERE d.id = e.delivery_id AND d.received_at = e.received_at) AS payload,
       s.received_at,
       s.available_at,
       s.attempts,
       coalesce(s.last_error, (
         SELECT a.error FROM ichido.attempt a
          WHERE a.id = s.id AND a.run = s.run ORDER BY a.lease DESC LIMIT 1
       )) AS last_error,
       s.processed_at,
       s.id AS receipt,
       s.state
  FROM (
    SELECT w.id, w.endpoint_id, w.run, w.received_at, w.next_at AS available_at, w.attempts,
           w.last_error, NULL::timestamptz AS processed_at, 'work'::text AS state
      FROM ichido.work w
    UNION ALL
    SELECT r.id, r.endpoint_id, r.run, r.received_at, NULL, r.attempts,
           r.reason, NULL, 'review'::text
      FROM ichido.review r
    UNION ALL
    SELECT d.id, d.endpoint_id, d.run, d.received_at, d.received_at, d.attempts,
           NULL, d.processed_at, d.outcome COLLATE "default"
      FROM ichido.done d
  ) s
  LEFT JOIN ichido.event e ON e.id = s.id AND e.endpoint_id = s.endpoint_id
  LEFT JOIN ichido.endpoint p ON p.id = s.endpoint_id
 WHERE NOT EXISTS (SELECT 1 FROM ichido.replay y WHERE y.id = s.id AND y.run > s.run);
