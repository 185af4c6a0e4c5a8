-- The completion, which opens the handler's transaction: row lock, fence and already-done check
-- in one. No row: the lease is not ours any more, roll back. It waits for a lock and does not
-- skip, so that a lease that ran out never causes a second effect. Under READ COMMITTED the
-- waiting DELETE checks the lease again after the wait.
-- Sequential scans are off: a plan made while the table was small must not outlive that.
CREATE OR REPLACE FUNCTION ichido.start(receipt uuid, lease bigint) RETURNS TABLE (xid text)
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v ichido.work;
BEGIN
  DELETE FROM ichido.work w
   WHERE w.id = start.receipt AND w.lease = start.lease AND w.lease <> 0
  RETURNING * INTO v;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  INSERT INTO ichido.done (processed_at, received_at, endpoint_id, attempts, run, id, outcome,
                           queue)
  VALUES (clock_timestamp(), v.received_at, v.endpoint_id, v.attempts, v.run, v.id, 'processed',
          v.queue);
  RETURN QUERY SELECT pg_current_xact_id()::text;
END
$$;
