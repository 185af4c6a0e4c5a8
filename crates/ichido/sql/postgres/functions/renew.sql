-- Extends a lease from now, on a connection beside the handler's and before its completion.
-- False: the lease is not ours any more, stop.
CREATE OR REPLACE FUNCTION ichido.renew(receipt uuid, lease bigint, extend interval)
RETURNS boolean
LANGUAGE plpgsql VOLATILE
SET lock_timeout = '2s'
SET enable_seqscan = off
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  UPDATE ichido.work w SET next_at = clock_timestamp() + renew.extend
   WHERE w.id = renew.receipt AND w.lease = renew.lease AND w.lease <> 0;
  RETURN FOUND;
END
$$;
