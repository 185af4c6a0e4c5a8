-- Sends a message that waits for a human on its way again with fresh attempts. Destination ''
-- (no route led anywhere) is routed anew. False: it does not wait, or there is still no route.
CREATE OR REPLACE FUNCTION ichido.outbox_requeue(message uuid, destination text) RETURNS boolean
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_now timestamptz := clock_timestamp();
BEGIN
  IF outbox_requeue.destination <> '' THEN
    UPDATE ichido.dispatch d SET next_at = v_now, attempts = 0
     WHERE d.message = outbox_requeue.message AND d.destination = outbox_requeue.destination
       AND d.next_at IS NULL;
    RETURN FOUND;
  END IF;
  PERFORM 1 FROM ichido.dispatch d
   WHERE d.message = outbox_requeue.message AND d.destination = '' FOR UPDATE;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  INSERT INTO ichido.dispatch AS d (message, destination, next_at)
  SELECT DISTINCT o.id, r.destination, v_now
    FROM ichido.outbox o
    JOIN ichido.route r ON ichido.route_matches(r.aggregate_type, o.aggregate_type)
                       AND ichido.route_matches(r.event_type, o.event_type)
   WHERE o.id = outbox_requeue.message
  ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  DELETE FROM ichido.dispatch d WHERE d.message = outbox_requeue.message AND d.destination = '';
  RETURN true;
END
$$;
