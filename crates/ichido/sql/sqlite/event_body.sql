-- The bytes of an event as they came first, to judge whether other ones say the same.
SELECT substr(d.body, e.body_from + 1, e.body_to - e.body_from)
  FROM ichido_event e JOIN ichido_delivery d ON d.id = e.delivery_id
 WHERE e.id = ?1
