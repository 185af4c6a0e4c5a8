-- Gives a claimed event back without a start: at shutdown, or when this worker does not know its
-- type. The attempt is not counted. False: the lease is not ours any more.
CREATE OR REPLACE FUNCTION ichido.release(
  receipt uuid, lease bigint, delay interval DEFAULT '0 s')
RETURNS boolean
LANGUAGE plpgsql VOLATILE
SET lock_timeout = '2s'
SET enable_seqscan = off
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  UPDATE ichido.work w
     SET lease = 0, claimed_at = NULL, attempts = greatest(w.attempts - 1, 0),
         next_at = clock_timestamp() + release.delay
   WHERE w.id = release.receipt AND w.lease = release.lease AND w.lease <> 0;
  RETURN FOUND;
END
$$;
