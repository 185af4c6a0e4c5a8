-- A message did not leave. Retried with full jitter of min(300 s, 2^attempts s), or after
-- `delay`; at the last attempt, or permanently refused, it waits for a human.
-- Returns 'retry', 'review', or 'lost' when the lease is not ours any more.
CREATE OR REPLACE FUNCTION ichido.outbox_fail(
  message uuid, destination text, lease bigint, error text, delay interval DEFAULT NULL,
  permanent boolean DEFAULT false, max_attempts int4 DEFAULT 20)
RETURNS text
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v ichido.dispatch;
  v_last boolean;
BEGIN
  SELECT * INTO v FROM ichido.dispatch d
   WHERE d.message = outbox_fail.message AND d.destination = outbox_fail.destination
     AND d.lease = outbox_fail.lease AND d.lease <> 0 FOR UPDATE;
  IF NOT FOUND THEN
    RETURN 'lost';
  END IF;
  v_last := outbox_fail.permanent OR v.attempts >= outbox_fail.max_attempts;
  UPDATE ichido.dispatch d
     SET lease = 0, claimed_at = NULL, last_error = left(outbox_fail.error, 8000),
         next_at = CASE WHEN NOT v_last THEN clock_timestamp() + coalesce(
           outbox_fail.delay, random() * least(300, 2 ^ v.attempts) * interval '1 s') END
   WHERE d.message = v.message AND d.destination = v.destination;
  RETURN CASE WHEN v_last THEN 'review' ELSE 'retry' END;
END
$$;
