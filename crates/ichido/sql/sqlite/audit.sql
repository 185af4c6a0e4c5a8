-- The invariants that do not hold, as name, promise, count and one example.
SELECT * FROM (
  SELECT 'event_without_state' AS invariant,
         'every event has work, a result, or waits for a human' AS promise,
         count(*) AS broken, coalesce(lower(hex(min(e.id))), '') AS example
    FROM ichido_event e
   WHERE NOT EXISTS (SELECT 1 FROM ichido_work w WHERE w.id = e.id)
     AND NOT EXISTS (SELECT 1 FROM ichido_done d WHERE d.id = e.id)
     AND NOT EXISTS (SELECT 1 FROM ichido_review r WHERE r.id = e.id)
  UNION ALL
  SELECT 'state_without_event', 'work, results and reviews belong to an event', count(*),
         coalesce(lower(hex(min(s.id))), '')
    FROM (SELECT id FROM ichido_work UNION ALL SELECT id FROM ichido_done
          UNION ALL SELECT id FROM ichido_review) s
   WHERE NOT EXISTS (SELECT 1 FROM ichido_event e WHERE e.id = s.id)
  UNION ALL
  SELECT 'waiting_and_in_review', 'an event with work does not wait for a human as well',
         count(*), coalesce(lower(hex(min(w.id))), '')
    FROM ichido_work w JOIN ichido_review r ON r.id = w.id
  UNION ALL
  SELECT 'run_waits_and_is_done', 'a run that is done has no work left', count(*),
         coalesce(lower(hex(min(w.id))), '')
    FROM ichido_work w JOIN ichido_done d ON d.id = w.id AND d.run = w.run
  UNION ALL
  SELECT 'event_without_delivery', 'the bytes of an open event are kept', count(*),
         coalesce(lower(hex(min(e.id))), '')
    FROM (SELECT id FROM ichido_work UNION ALL SELECT id FROM ichido_review) s
    JOIN ichido_event e ON e.id = s.id
   WHERE NOT EXISTS (SELECT 1 FROM ichido_delivery d WHERE d.id = e.delivery_id)
  UNION ALL
  SELECT 'flag_without_event', 'a flag is on an event', count(*), coalesce(min(f.event_id), '')
    FROM ichido_flag f
   WHERE NOT EXISTS (SELECT 1 FROM ichido_event e JOIN ichido_endpoint p ON p.id = e.endpoint_id
                      WHERE p.name = f.endpoint AND e.event_id = f.event_id))
 WHERE broken > 0
