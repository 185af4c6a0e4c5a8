-- Gives new events their places in line, in the order of the arrays, and leaves them as work: an
-- event is parked where another of its key is in line, or blocks the key from review. The order
-- of a key is that in which its receipts committed, for its lock is held until then. Locks are
-- taken in sorted order: two batches that overlap would deadlock.
CREATE OR REPLACE FUNCTION ichido.order_put(
  received_at timestamptz, endpoint_ids smallint[], ids uuid[], queues text[], order_keys text[])
RETURNS void
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off
SET plan_cache_mode = force_generic_plan
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v record;
BEGIN
  FOR v IN
    SELECT DISTINCT ichido.order_slot(e.endpoint_id, e.order_key), e.endpoint_id, e.order_key
      FROM unnest(order_put.endpoint_ids, order_put.order_keys) AS e (endpoint_id, order_key)
     ORDER BY 1, 2, 3
  LOOP
    PERFORM ichido.order_lock(v.endpoint_id, v.order_key);
  END LOOP;
  FOR v IN
    SELECT e.id, e.endpoint_id, e.queue, e.order_key
      FROM unnest(order_put.ids, order_put.endpoint_ids, order_put.queues, order_put.order_keys)
           WITH ORDINALITY AS e (id, endpoint_id, queue, order_key, n)
     ORDER BY e.n
  LOOP
    INSERT INTO ichido.work (received_at, next_at, order_seq, endpoint_id, id, queue, lane,
                             order_key)
    SELECT order_put.received_at,
           CASE WHEN EXISTS (SELECT 1 FROM ichido.work w
                              WHERE w.endpoint_id = v.endpoint_id AND w.order_key = v.order_key
                                AND w.order_seq IS NOT NULL)
                  OR ichido.order_blocked(v.endpoint_id, v.order_key)
                THEN NULL ELSE order_put.received_at END,
           nextval('ichido.order_seq'), v.endpoint_id, v.id, v.queue, 'fresh', v.order_key;
  END LOOP;
END
$$;
