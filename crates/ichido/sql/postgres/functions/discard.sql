-- A human's decision that an event that needs review will not be processed, with the reason.
-- It stays visible, and can be replayed. False: it does not wait for a human (any more).
CREATE OR REPLACE FUNCTION ichido.discard(receipt uuid, reason text) RETURNS boolean
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v ichido.review;
BEGIN
  IF coalesce(btrim(discard.reason), '') = '' THEN
    RAISE EXCEPTION 'discard needs a reason' USING ERRCODE = 'IC004';
  END IF;
  DELETE FROM ichido.review r WHERE r.id = discard.receipt RETURNING * INTO v;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  INSERT INTO ichido.done (processed_at, received_at, endpoint_id, attempts, run, id, outcome,
                           queue, note)
  VALUES (clock_timestamp(), v.received_at, v.endpoint_id, v.attempts, v.run, v.id, 'discarded',
          v.queue, discard.reason || ' (it needed review: ' || v.reason || ')');
  IF v.order_seq IS NOT NULL THEN
    PERFORM ichido.order_next(v.endpoint_id, v.order_key);
  END IF;
  RETURN true;
END
$$;
