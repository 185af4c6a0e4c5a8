-- Lets lines go on whose head is parked though nothing blocks them: those of a worker that
-- finished without telling its event to the guard, and all of an endpoint that asks for order no
-- more. Reads one row a key. Returns how many events it let go.
CREATE OR REPLACE FUNCTION ichido.order_sweep(most int4 DEFAULT 1000) RETURNS int4
LANGUAGE plpgsql VOLATILE
SET lock_timeout = '2s'
SET enable_seqscan = off
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v record;
  v_count int4 := 0;
BEGIN
  UPDATE ichido.work w SET next_at = clock_timestamp(), order_seq = NULL
    FROM ichido.endpoint p
   WHERE p.id = w.endpoint_id AND p.order_by_key IS NULL
     AND w.order_seq IS NOT NULL AND w.next_at IS NULL;
  GET DIAGNOSTICS v_count = ROW_COUNT;
  FOR v IN
    WITH RECURSIVE head AS (
      (SELECT w.endpoint_id, w.order_key, w.next_at FROM ichido.work w
        WHERE w.order_seq IS NOT NULL
        ORDER BY w.endpoint_id, w.order_key, w.order_seq LIMIT 1)
      UNION ALL
      SELECT n.endpoint_id, n.order_key, n.next_at
        FROM head h
       CROSS JOIN LATERAL (
         SELECT w.endpoint_id, w.order_key, w.next_at FROM ichido.work w
          WHERE w.order_seq IS NOT NULL
            AND (w.endpoint_id, w.order_key) > (h.endpoint_id, h.order_key)
          ORDER BY w.endpoint_id, w.order_key, w.order_seq LIMIT 1) n
    )
    SELECT h.endpoint_id, h.order_key FROM head h
     WHERE h.next_at IS NULL
       AND NOT ichido.order_blocked(h.endpoint_id, h.order_key)
     -- Locks in sorted order, as everywhere.
     ORDER BY ichido.order_slot(h.endpoint_id, h.order_key) LIMIT order_sweep.most
  LOOP
    v_count := v_count + ichido.order_next(v.endpoint_id, v.order_key)::int4;
  END LOOP;
  RETURN v_count;
END
$$;
