-- The event's own bytes, as they were verified. NULL when they are no longer kept.
CREATE OR REPLACE FUNCTION ichido.event_body(receipt uuid) RETURNS bytea
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
  SELECT substring(d.body, e.body_from + 1, e.body_to - e.body_from)
    FROM ichido.event e
    JOIN ichido.delivery d ON d.id = e.delivery_id AND d.received_at = e.received_at
   WHERE e.id = event_body.receipt
$$;
