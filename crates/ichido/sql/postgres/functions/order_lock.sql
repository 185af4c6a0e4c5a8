-- The lock of an order key, until the transaction ends: whoever gives places in line, or moves
-- the line on, holds it. Each statement after it must see what its last holder committed, so a
-- transaction with one snapshot for all of its statements is refused.
CREATE OR REPLACE FUNCTION ichido.order_lock(endpoint_id smallint, order_key text) RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
    RAISE EXCEPTION 'order by key needs READ COMMITTED, not %',
      current_setting('transaction_isolation') USING ERRCODE = 'IC004';
  END IF;
  PERFORM pg_advisory_xact_lock(
    x'69636869'::int4, ichido.order_slot(order_lock.endpoint_id, order_lock.order_key));
END
$$;
