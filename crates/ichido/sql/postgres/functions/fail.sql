-- Records a failed attempt, after the handler's transaction rolled back, guarded by the lease.
-- The last attempt, and a permanent failure, move to review at once. Delay NULL: full jitter of
-- min(300 s, 2^attempts s). Returns 'retry', 'review', or 'lost' when the lease is not ours.
-- Best effort: beside a backend that still holds the row it gives up, and the lease covers it.
CREATE OR REPLACE FUNCTION ichido.fail(
  receipt uuid, lease bigint, error text, delay interval, permanent boolean DEFAULT false)
RETURNS text
LANGUAGE plpgsql VOLATILE
SET lock_timeout = '2s'
SET enable_seqscan = off
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v ichido.work;
  v_now timestamptz := clock_timestamp();
  v_max int2;
  v_error text := coalesce(left(fail.error, 8000), 'failed without a reason');
BEGIN
  SELECT * INTO v FROM ichido.work w
   WHERE w.id = fail.receipt AND w.lease = fail.lease AND w.lease <> 0 FOR UPDATE;
  IF NOT FOUND THEN
    RETURN 'lost';
  END IF;
  INSERT INTO ichido.attempt (id, lease, started_at, ended_at, run, attempt, error)
  VALUES (v.id, v.lease, v.claimed_at, v_now, v.run, v.attempts, v_error);
  SELECT p.max_attempts INTO v_max FROM ichido.endpoint p WHERE p.id = v.endpoint_id;
  IF fail.permanent OR v.attempts >= v_max THEN
    DELETE FROM ichido.work w WHERE w.id = v.id;
    INSERT INTO ichido.review (since, received_at, endpoint_id, attempts, run, id, queue,
                               order_key, order_seq, reason)
    VALUES (v_now, v.received_at, v.endpoint_id, v.attempts, v.run, v.id, v.queue,
            v.order_key, v.order_seq, v_error);
    -- Unless it blocks its key from there.
    IF v.order_seq IS NOT NULL THEN
      PERFORM ichido.order_next(v.endpoint_id, v.order_key);
    END IF;
    RETURN 'review';
  END IF;
  UPDATE ichido.work w
     SET lease = 0, lane = 'retry', claimed_at = NULL, last_error = v_error,
         next_at = v_now + coalesce(
           fail.delay, random() * least(300, 2 ^ v.attempts) * interval '1 s')
   WHERE w.id = v.id;
  RETURN 'retry';
END
$$;
