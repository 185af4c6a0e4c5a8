-- The guard of a worker whose event has a place in line: lets the next of its order key come,
-- then judges the transaction as `sound` does. The lock is held for no longer than the COMMIT
-- that travels with it.
CREATE OR REPLACE FUNCTION ichido.sound(xid text, receipt uuid) RETURNS void
LANGUAGE plpgsql VOLATILE
SET lock_timeout = '2s'
SET enable_seqscan = off
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_endpoint int2;
  v_key text;
BEGIN
  SELECT e.endpoint_id, e.order_key INTO v_endpoint, v_key
    FROM ichido.event e WHERE e.id = sound.receipt;
  IF v_key IS NOT NULL THEN
    PERFORM ichido.order_next(v_endpoint, v_key);
  END IF;
  PERFORM ichido.sound(sound.xid);
END
$$;
