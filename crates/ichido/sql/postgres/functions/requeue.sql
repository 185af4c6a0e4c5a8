-- Sends an event that needs review back to its queue with fresh attempts; its history stays.
-- False: it does not wait for a human (any more). Two humans: the row lock decides.
-- The delivery is locked against pruning: work without its bytes could never be done.
CREATE OR REPLACE FUNCTION ichido.requeue(receipt uuid) RETURNS boolean
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v ichido.review;
BEGIN
  DELETE FROM ichido.review r WHERE r.id = requeue.receipt RETURNING * INTO v;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  PERFORM 1 FROM ichido.event e
    JOIN ichido.delivery d ON d.id = e.delivery_id AND d.received_at = e.received_at
   WHERE e.id = v.id FOR KEY SHARE OF d;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'the bytes of event % are no longer kept: discard it', v.id
      USING ERRCODE = 'IC004';
  END IF;
  INSERT INTO ichido.work (received_at, next_at, order_seq, endpoint_id, run, id, queue, lane,
                           order_key, last_error)
  VALUES (v.received_at, clock_timestamp(), v.order_seq, v.endpoint_id, v.run, v.id, v.queue,
          'retry', v.order_key, v.reason);
  RETURN true;
END
$$;
