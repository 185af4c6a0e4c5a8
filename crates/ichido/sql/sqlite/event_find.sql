-- Who holds an event key, with the bytes that came first.
SELECT e.id, e.digest, e.signed, substr(d.body, e.body_from + 1, e.body_to - e.body_from)
  FROM ichido_event e LEFT JOIN ichido_delivery d ON d.id = e.delivery_id
 WHERE e.endpoint_id = ?1 AND e.event_id = ?2
