-- Sends an event that needs review back to its queue with fresh attempts; its history stays.
-- False: it does not wait for a human (any more). Two humans: the row lock decides.
-- The delivery is locked against pruning: work without its bytes could never be done.
-- Where its order key waited for it, it is the first in line again; where it was skipped, and
-- another of its key is at work, it goes to the end.
CREATE OR REPLACE FUNCTION ichido.requeue(receipt uuid) RETURNS boolean
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v ichido.review;
  v_next timestamptz := clock_timestamp();
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
  IF v.order_seq IS NOT NULL THEN
    PERFORM ichido.order_lock(v.endpoint_id, v.order_key);
    IF (SELECT w.next_at IS NOT NULL FROM ichido.work w
         WHERE w.endpoint_id = v.endpoint_id AND w.order_key = v.order_key
           AND w.order_seq IS NOT NULL
         ORDER BY w.order_seq LIMIT 1) THEN
      v.order_seq := nextval('ichido.order_seq');
      v_next := NULL;
    END IF;
  END IF;
  INSERT INTO ichido.work (received_at, next_at, order_seq, endpoint_id, run, id, queue, lane,
                           order_key, last_error)
  VALUES (v.received_at, v_next, v.order_seq, v.endpoint_id, v.run, v.id, v.queue,
          'retry', v.order_key, v.reason);
  RETURN true;
END
$$;
