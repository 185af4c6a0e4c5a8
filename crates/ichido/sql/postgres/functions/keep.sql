-- Keeps an event whose handler failed: called in the receive transaction after ROLLBACK TO the
-- savepoint that follows the receipt, so that there is no gap in which a waiting duplicate could
-- take the key. The mark `processed` of run 0 goes, work with the error comes.
CREATE OR REPLACE FUNCTION ichido.keep(
  receipt uuid, queue text, error text, delay interval DEFAULT NULL)
RETURNS void
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v ichido.event;
  v_now timestamptz := clock_timestamp();
  -- Full jitter, so that the events of one outage do not come back together.
  v_delay interval := coalesce(keep.delay, random() * interval '2 s');
BEGIN
  SELECT * INTO v FROM ichido.event e WHERE e.id = keep.receipt;
  -- run 0 of the receive transaction was marked at the time of its receipt.
  DELETE FROM ichido.done d
   WHERE d.id = keep.receipt AND d.run = 0 AND d.processed_at = v.received_at;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'event % was not taken to be processed in this transaction', keep.receipt
      USING ERRCODE = 'IC004';
  END IF;
  INSERT INTO ichido.work (id, endpoint_id, queue, lane, next_at, received_at, order_key,
                           last_error)
  VALUES (v.id, v.endpoint_id, keep.queue, 'retry', v_now + v_delay, v.received_at, v.order_key,
          keep.error);
  INSERT INTO ichido.attempt (id, lease, started_at, ended_at, run, attempt, error)
  VALUES (v.id, nextval('ichido.lease'), v.received_at, v_now, 0, 0, keep.error);
END
$$;
