-- The view shows text only: bytes are the truth, and what is not UTF-8 must not break a reader
-- that asks for text. (The engine's json_valid takes invalid UTF-8, and reads no further than a
-- NUL.) Of events from before, the engine's own judgement is all there is.
ALTER TABLE ichido_event ADD COLUMN is_text INTEGER NOT NULL DEFAULT 1;

DROP VIEW webhook_inbox;

-- One row an event, with the columns that the pattern's users know, and the same as on
-- PostgreSQL. The parts of the union are plain and the joins are outer ones on unique keys, so
-- that a question about open events reads only those. A later run hides the earlier ones.
CREATE VIEW webhook_inbox AS
SELECT p.provider,
       p.name AS endpoint,
       e.event_id,
       e.event_type,
       (SELECT CASE WHEN json_valid(b.text) THEN b.text END
          FROM (SELECT CAST(substr(d.body, e.body_from + 1, e.body_to - e.body_from) AS TEXT)
                       AS text
                  FROM ichido_delivery d WHERE d.id = e.delivery_id AND e.is_text) b) AS payload,
       e.received_at,
       s.available_at,
       s.attempts,
       coalesce(s.last_error, (
         SELECT a.error FROM ichido_attempt a
          WHERE a.id = s.id AND a.run = s.run ORDER BY a.lease DESC LIMIT 1
       )) AS last_error,
       s.processed_at,
       s.id AS receipt,
       s.state
  FROM (
    SELECT w.id, w.run, w.next_at AS available_at, w.attempts, w.last_error,
           NULL AS processed_at, 'work' AS state
      FROM ichido_work w
    UNION ALL
    SELECT r.id, r.run, NULL, r.attempts, r.reason, NULL, 'review' FROM ichido_review r
    UNION ALL
    SELECT d.id, d.run, NULL, d.attempts, NULL, d.processed_at, d.outcome FROM ichido_done d
  ) s
  LEFT JOIN ichido_event e ON e.id = s.id
  LEFT JOIN ichido_endpoint p ON p.id = e.endpoint_id
 WHERE NOT EXISTS (SELECT 1 FROM ichido_replay y WHERE y.id = s.id AND y.run > s.run);
