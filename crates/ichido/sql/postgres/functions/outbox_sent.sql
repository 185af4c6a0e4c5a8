-- A message left. Guarded by the lease; false: another dispatcher has it now, and may send it
-- again with the same key.
CREATE OR REPLACE FUNCTION ichido.outbox_sent(message uuid, destination text, lease bigint)
RETURNS boolean
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v ichido.dispatch;
BEGIN
  DELETE FROM ichido.dispatch d
   WHERE d.message = outbox_sent.message AND d.destination = outbox_sent.destination
     AND d.lease = outbox_sent.lease AND d.lease <> 0
  RETURNING * INTO v;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  INSERT INTO ichido.sent AS s (message, sent_at, attempts, destination)
  VALUES (v.message, clock_timestamp(), v.attempts, v.destination)
  ON CONFLICT DO NOTHING;
  RETURN true;
END
$$;
