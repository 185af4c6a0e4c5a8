-- The invariants as queries, the same as on PostgreSQL; only the broken ones come back, as name,
-- promise, count and one example. Reads the whole history.
WITH state AS (
  SELECT w.id, w.run, 'work' AS place FROM ichido_work w
  UNION ALL SELECT r.id, r.run, 'review' FROM ichido_review r
  UNION ALL SELECT d.id, d.run, 'done' FROM ichido_done d
), broken AS (
  SELECT 'event_without_state' AS invariant,
         'every event is in work, in review or done' AS promise, e.id AS example
    FROM ichido_event e WHERE NOT EXISTS (SELECT 1 FROM state s WHERE s.id = e.id)
  UNION ALL
  SELECT 'run_in_two_states',
         'every run of an event is in exactly one of work, review and done', s.id
    FROM state s GROUP BY s.id, s.run HAVING count(*) > 1
  UNION ALL
  SELECT 'two_open_runs', 'an event has at most one run that is not done', s.id
    FROM state s WHERE s.place <> 'done' GROUP BY s.id HAVING count(*) > 1
  UNION ALL
  SELECT 'state_without_event', 'work, review and done belong to an event', s.id
    FROM state s WHERE NOT EXISTS (SELECT 1 FROM ichido_event e WHERE e.id = s.id)
  UNION ALL
  SELECT 'run_without_replay', 'every run after the first was asked for by someone', s.id
    FROM state s
   WHERE s.run > 0
     AND NOT EXISTS (SELECT 1 FROM ichido_replay y WHERE y.id = s.id AND y.run = s.run)
  UNION ALL
  SELECT 'open_without_delivery', 'an event that is not done still has its bytes', s.id
    FROM state s
    JOIN ichido_event e ON e.id = s.id
   WHERE s.place <> 'done'
     AND NOT EXISTS (SELECT 1 FROM ichido_delivery d WHERE d.id = e.delivery_id)
  UNION ALL
  SELECT 'attempts_over_limit', 'no event is started more often than its endpoint allows', w.id
    FROM ichido_work w
    JOIN ichido_endpoint p ON p.id = w.endpoint_id
   WHERE w.attempts > p.max_attempts
  UNION ALL
  SELECT 'line_without_head', 'of each order key the first in line can be claimed, or needs '
         || 'review', CAST(min(w.order_key) AS BLOB)
    FROM ichido_work w WHERE w.order_seq IS NOT NULL
   GROUP BY w.endpoint_id, w.order_key
  HAVING count(w.next_at) = 0 AND NOT EXISTS (
           SELECT 1 FROM ichido_review r
            WHERE r.endpoint_id = w.endpoint_id AND r.order_key = w.order_key
              AND r.order_seq IS NOT NULL)
  UNION ALL
  SELECT 'line_with_two_heads', 'of each order key one event at a time can be claimed',
         CAST(min(w.order_key) AS BLOB)
    FROM ichido_work w WHERE w.order_seq IS NOT NULL AND w.next_at IS NOT NULL
   GROUP BY w.endpoint_id, w.order_key HAVING count(*) > 1
  UNION ALL
  SELECT 'message_without_route', 'every message has a destination: add a route, or name one',
         d.message
    FROM ichido_dispatch d WHERE d.destination = ''
  UNION ALL
  SELECT 'message_lost', 'every message waits, needs a human, or was sent', o.id
    FROM outbox o
   WHERE NOT EXISTS (SELECT 1 FROM ichido_dispatch d WHERE d.message = o.id)
     AND NOT EXISTS (SELECT 1 FROM ichido_sent t WHERE t.message = o.id)
  UNION ALL
  SELECT 'flag_without_event', 'a flag belongs to an event', CAST(f.event_id AS BLOB)
    FROM ichido_flag f
   WHERE NOT EXISTS (SELECT 1 FROM ichido_event e JOIN ichido_endpoint p ON p.id = e.endpoint_id
                      WHERE p.name = f.endpoint AND e.event_id = f.event_id)
)
SELECT b.invariant, b.promise, count(*), lower(hex(min(b.example)))
  FROM broken b GROUP BY b.invariant, b.promise ORDER BY 1
