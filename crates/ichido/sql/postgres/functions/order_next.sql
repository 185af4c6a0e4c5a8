-- Moves the line of a key on: the first in it is due now, unless it was let go before, or the key
-- is blocked by one that needs review. Called in the transaction in which the last head left.
CREATE OR REPLACE FUNCTION ichido.order_next(endpoint_id smallint, order_key text) RETURNS boolean
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off
SET plan_cache_mode = force_generic_plan
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_head uuid;
BEGIN
  PERFORM ichido.order_lock(order_next.endpoint_id, order_next.order_key);
  IF ichido.order_blocked(order_next.endpoint_id, order_next.order_key) THEN
    RETURN false;
  END IF;
  SELECT w.id INTO v_head FROM ichido.work w
   WHERE w.endpoint_id = order_next.endpoint_id AND w.order_key = order_next.order_key
     AND w.order_seq IS NOT NULL
   ORDER BY w.order_seq LIMIT 1;
  UPDATE ichido.work w SET next_at = clock_timestamp()
   WHERE w.id = v_head AND w.next_at IS NULL;
  RETURN FOUND;
END
$$;
