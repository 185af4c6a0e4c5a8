-- Fans new messages out to their destinations, in the transaction that wrote them. A message
-- that names its destination goes there, else wherever a route leads, once to each. No route is
-- a finding, not silence: a row with destination '' waits for a human.
CREATE OR REPLACE FUNCTION ichido.outbox_route() RETURNS trigger
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_now timestamptz := clock_timestamp();
BEGIN
  INSERT INTO ichido.dispatch (message, destination, next_at)
  SELECT DISTINCT m.id, coalesce(m.destination, r.destination, ''),
         CASE WHEN coalesce(m.destination, r.destination, '') <> ''
              THEN coalesce(m.not_before, v_now) END
    FROM new_messages m
    LEFT JOIN ichido.route r
      ON m.destination IS NULL
     AND ichido.route_matches(r.aggregate_type, m.aggregate_type)
     AND ichido.route_matches(r.event_type, m.event_type);
  RETURN NULL;
END
$$;

CREATE OR REPLACE TRIGGER outbox_route AFTER INSERT ON ichido.outbox
  REFERENCING NEW TABLE AS new_messages
  FOR EACH STATEMENT EXECUTE FUNCTION ichido.outbox_route();
