-- A handler's note for a human on the event that it processes, in the same transaction: the
-- event stays processed, the flag shows until a human closes it. Returns the flag's id.
CREATE OR REPLACE FUNCTION ichido.flag(endpoint text, event_id text, reason text) RETURNS uuid
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_id uuid := ichido.uuid7();
  v_receipt uuid;
BEGIN
  SELECT e.id INTO v_receipt
    FROM ichido.endpoint p JOIN ichido.event e ON e.endpoint_id = p.id
   WHERE p.name = flag.endpoint AND e.event_id = flag.event_id;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'endpoint % has no event %: flag the event that is being processed',
      flag.endpoint, flag.event_id USING ERRCODE = 'IC004';
  END IF;
  INSERT INTO ichido.flag AS f (id, receipt, raised_at, reason)
  VALUES (v_id, v_receipt, clock_timestamp(), flag.reason);
  RETURN v_id;
END
$$;
