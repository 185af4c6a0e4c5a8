-- Takes verified deliveries and their events in one call, from arrays: one row back for each
-- event, in the order given. The caller commits, and acknowledges only after that.
--
-- The rules it holds:
-- * The event key is the judge. Keys are inserted in sorted order, for unsorted batches that
--   overlap deadlock. The first of two equal keys in one batch wins.
-- * ON CONFLICT DO NOTHING, then a second statement for what did not come back: under READ
--   COMMITTED only a new statement sees the winner. If a pruner took the row in between, there
--   is neither; then again, three times at most. A duplicate writes nothing.
-- * A delivery is stored only if one of its events was taken.
-- * A receipt id found under its own key is ours: the retry after an unknown COMMIT. It counts
--   as taken and writes nothing again.
-- * `differs`: not taken, for the id is known, but with other bytes; the caller judges whether
--   they say something else. `repeated`: taken, but the bytes are known, under another id, which
--   the provider does not sign.
-- * Waiting for another transaction's key is bounded here, and only here: the handler that runs
--   next in this transaction has no lock_timeout of ours.
-- Plans are generic: the shape never changes, and planning again would cost more than the work.
-- Sequential scans are off: a plan made while a table was small must not outlive that.
DROP FUNCTION IF EXISTS ichido.receive(
  uuid[], text[], text[], text[], bytea[], bytea[], int2[], uuid[], int4[], text[], text[], int4[],
  int4[], bytea[], timestamptz[], text[], boolean[], text[], text[], text[]);
CREATE FUNCTION ichido.receive(
  d_id uuid[], d_endpoint text[], d_method text[], d_url text[], d_headers bytea[],
  d_body bytea[], d_secret int2[],
  e_receipt uuid[], e_delivery int4[], e_id text[], e_type text[], e_from int4[], e_to int4[],
  e_digest bytea[], e_occurred timestamptz[], e_order_key text[], e_signed boolean[],
  e_route text[], e_queue text[], e_error text[])
RETURNS TABLE (n int4, receipt uuid, taken boolean, differs boolean, xid text, repeated boolean)
LANGUAGE plpgsql VOLATILE
SET lock_timeout = '2s'
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_xid text := pg_current_xact_id()::text;
  v_now timestamptz := clock_timestamp();
  v_count int4 := cardinality(e_receipt);
  -- One event in one delivery: the same statements without arrays, for half the time.
  v_one boolean := cardinality(e_receipt) = 1 AND cardinality(d_id) = 1;
  v_new int4;
  v_inserted int4 := 0;
  v_endpoint int2[];      -- by delivery
  v_ordered boolean[];    -- by delivery: its endpoint asks for order by key
  v_unsigned boolean;     -- has an endpoint whose signature does not cover the event id
  v_stored uuid[];        -- by event: the receipt under its key; NULL: not found yet
  v_fresh boolean[];      -- by event: inserted by this call
  v_differs boolean[];
  v_marked int4[] := '{}';  -- events whose bytes came before, under another id
BEGIN
  IF v_one THEN
    SELECT ARRAY[p.id], NOT p.id_signed, ARRAY[p.order_by_key IS NOT NULL]
      INTO v_endpoint, v_unsigned, v_ordered
      FROM ichido.endpoint p WHERE p.name = d_endpoint[1];
  ELSE
    SELECT array_agg(p.id ORDER BY d.n), bool_or(NOT p.id_signed),
           array_agg(p.order_by_key IS NOT NULL ORDER BY d.n)
      INTO v_endpoint, v_unsigned, v_ordered
      FROM unnest(d_endpoint) WITH ORDINALITY AS d (name, n)
      LEFT JOIN ichido.endpoint p ON p.name = d.name;
  END IF;
  IF v_endpoint IS NULL OR array_position(v_endpoint, NULL) IS NOT NULL THEN
    RAISE EXCEPTION 'unknown endpoint %: call ichido.endpoint_put first',
      d_endpoint[coalesce(array_position(v_endpoint, NULL), 1)] USING ERRCODE = 'IC002';
  END IF;

  FOR v_try IN 1..3 LOOP
    IF v_one THEN
      INSERT INTO ichido.event (received_at, occurred_at, body_from, body_to, endpoint_id, signed,
                                id, delivery_id, event_id, event_type, digest, order_key)
      VALUES (v_now, e_occurred[1], e_from[1], e_to[1], v_endpoint[1], e_signed[1],
              e_receipt[1], d_id[1], e_id[1], e_type[1], e_digest[1], e_order_key[1])
      ON CONFLICT DO NOTHING;
    ELSE
      INSERT INTO ichido.event (received_at, occurred_at, body_from, body_to, endpoint_id, signed,
                                id, delivery_id, event_id, event_type, digest, order_key)
      SELECT v_now, e.occurred, e.b_from, e.b_to, v_endpoint[e.d], e.signed,
             e.id, d_id[e.d], e.event_id, e.event_type, e.digest, e.order_key
        FROM unnest(e_receipt, e_delivery, e_id, e_type, e_from, e_to, e_digest, e_occurred,
                    e_order_key, e_signed) WITH ORDINALITY
             AS e (id, d, event_id, event_type, b_from, b_to, digest, occurred, order_key, signed,
                   n)
       WHERE v_stored IS NULL OR v_stored[e.n] IS NULL
       ORDER BY v_endpoint[e.d], e.event_id COLLATE "C", e.n
      ON CONFLICT DO NOTHING;
    END IF;
    GET DIAGNOSTICS v_new = ROW_COUNT;
    v_inserted := v_inserted + v_new;
    EXIT WHEN v_inserted = v_count;

    SELECT array_agg(s.id ORDER BY e.n),
           array_agg(coalesce(s.id = e.id AND s.received_at = v_now, false) ORDER BY e.n),
           array_agg(coalesce(s.signed AND e.signed AND s.digest <> e.digest, false) ORDER BY e.n)
      INTO v_stored, v_fresh, v_differs
      FROM unnest(e_receipt, e_delivery, e_id, e_digest, e_signed) WITH ORDINALITY
           AS e (id, d, event_id, digest, signed, n)
      LEFT JOIN LATERAL (
        SELECT o.id, o.received_at, o.signed, o.digest FROM ichido.event o
         WHERE o.endpoint_id = v_endpoint[e.d] AND o.event_id = e.event_id LIMIT 1) s ON true;
    EXIT WHEN array_position(v_stored, NULL) IS NULL;
    IF v_try = 3 THEN
      RAISE EXCEPTION 'event % is neither new nor known: send it again',
        e_id[array_position(v_stored, NULL)] USING ERRCODE = '40001';
    END IF;
  END LOOP;

  IF v_inserted > 0 AND v_one AND e_route[1] IN ('work', 'run') THEN
    INSERT INTO ichido.delivery (received_at, endpoint_id, secret, id, method, url, headers, body)
    VALUES (v_now, v_endpoint[1], d_secret[1], d_id[1], d_method[1], d_url[1], d_headers[1],
            d_body[1]);
    IF e_route[1] = 'work' AND v_ordered[1] AND e_order_key[1] IS NOT NULL THEN
      PERFORM ichido.order_put(v_now, v_endpoint, e_receipt, e_queue, e_order_key);
    ELSIF e_route[1] = 'work' THEN
      INSERT INTO ichido.work (received_at, next_at, endpoint_id, id, queue, lane, order_key)
      VALUES (v_now, v_now, v_endpoint[1], e_receipt[1], e_queue[1], 'fresh', e_order_key[1]);
    ELSE
      INSERT INTO ichido.done (processed_at, received_at, endpoint_id, attempts, run, id, outcome)
      VALUES (v_now, v_now, v_endpoint[1], 0, 0, e_receipt[1], 'processed');
    END IF;
    IF v_unsigned THEN
      v_marked := ichido.mark_digests(v_endpoint, e_receipt, e_delivery, e_digest, e_signed, NULL);
    END IF;
    RETURN QUERY SELECT 1, e_receipt[1], true, false, v_xid, v_marked <> '{}';
    RETURN;
  END IF;
  IF v_inserted > 0 THEN
    INSERT INTO ichido.delivery (received_at, endpoint_id, secret, id, method, url, headers, body)
    SELECT v_now, d.endpoint_id, d.secret, d.id, d.method, d.url, d.headers, d.body
      FROM unnest(v_endpoint, d_secret, d_id, d_method, d_url, d_headers, d_body) WITH ORDINALITY
           AS d (endpoint_id, secret, id, method, url, headers, body, n)
     WHERE v_inserted = v_count OR d.n = ANY (
       ARRAY(SELECT e.d FROM unnest(e_delivery, v_fresh) AS e (d, fresh) WHERE e.fresh));

    IF 'work' = ANY (e_route) THEN
      INSERT INTO ichido.work (received_at, next_at, endpoint_id, id, queue, lane, order_key)
      SELECT v_now, v_now, v_endpoint[e.d], e.id, e.queue, 'fresh', e.order_key
        FROM unnest(e_receipt, e_delivery, e_queue, e_order_key, e_route) WITH ORDINALITY
             AS e (id, d, queue, order_key, route, n)
       WHERE e.route = 'work' AND (v_inserted = v_count OR v_fresh[e.n])
         AND (e.order_key IS NULL OR NOT v_ordered[e.d]);
      IF true = ANY (v_ordered) THEN
        PERFORM ichido.order_put(
          v_now, array_agg(v_endpoint[e.d] ORDER BY e.n), array_agg(e.id ORDER BY e.n),
          array_agg(e.queue ORDER BY e.n), array_agg(e.order_key ORDER BY e.n))
          FROM unnest(e_receipt, e_delivery, e_queue, e_order_key, e_route) WITH ORDINALITY
               AS e (id, d, queue, order_key, route, n)
         WHERE e.route = 'work' AND (v_inserted = v_count OR v_fresh[e.n])
           AND e.order_key IS NOT NULL AND v_ordered[e.d];
      END IF;
    END IF;
    IF 'run' = ANY (e_route) OR 'ignored' = ANY (e_route) THEN
      INSERT INTO ichido.done (processed_at, received_at, endpoint_id, attempts, run, id, outcome)
      SELECT v_now, v_now, v_endpoint[e.d], 0, 0, e.id,
             CASE e.route WHEN 'run' THEN 'processed' ELSE 'ignored' END
        FROM unnest(e_receipt, e_delivery, e_route) WITH ORDINALITY AS e (id, d, route, n)
       WHERE e.route IN ('run', 'ignored') AND (v_inserted = v_count OR v_fresh[e.n]);
    END IF;
    IF 'review' = ANY (e_route) THEN
      INSERT INTO ichido.review (since, received_at, endpoint_id, attempts, run, id, queue,
                                 order_key, reason)
      SELECT v_now, v_now, v_endpoint[e.d], 0, 0, e.id, coalesce(e.queue, d_endpoint[e.d]),
             e.order_key, coalesce(e.error, 'unreadable')
        FROM unnest(e_receipt, e_delivery, e_queue, e_order_key, e_route, e_error) WITH ORDINALITY
             AS e (id, d, queue, order_key, route, error, n)
       WHERE e.route = 'review' AND (v_inserted = v_count OR v_fresh[e.n]);
    END IF;
    IF v_unsigned THEN
      v_marked := ichido.mark_digests(v_endpoint, e_receipt, e_delivery, e_digest, e_signed,
                                      CASE WHEN v_inserted < v_count THEN v_fresh END);
    END IF;
  END IF;

  RETURN QUERY
  SELECT e.n::int4, coalesce(v_stored[e.n], e.id), coalesce(v_stored[e.n] = e.id, true),
         coalesce(v_differs[e.n], false), v_xid, e.n = ANY (v_marked)
    FROM unnest(e_receipt) WITH ORDINALITY AS e (id, n) ORDER BY e.n;
END
$$;
