-- Claims due events for a worker, in a short transaction of its own: the attempt is counted and
-- committed before a handler runs, so an event that kills the process stops at the limit too.
-- Queues in the order of lanes, then of queues, as given.
--
-- * Each row's lease end is jittered, and a row whose lease ran out is claimed alone, so that
--   an event that kills its process does not drag its neighbours into review.
-- * A row whose lease ran out at its last attempt moves to review.
-- * The clock is a variable: a bare volatile call in the predicate would be a filter, and walk
--   every row that is delayed. Row locks are skipped, never waited for.
-- * Sequential scans are off: a plan made while the table was empty must not outlive that.
CREATE OR REPLACE FUNCTION ichido.claim(
  queues text[], lanes text[], most int4, lease_time interval,
  jitter double precision DEFAULT 0.25)
RETURNS TABLE (
  receipt uuid, lease bigint, attempts int2, queue text, lane text, endpoint text,
  provider text, event_id text, event_type text, occurred_at timestamptz, body bytea,
  headers bytea, run int2, signed boolean, received_at timestamptz)
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off
SET plan_cache_mode = force_generic_plan
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_now timestamptz := clock_timestamp();
  v_lease bigint;
  v_max int2;
  v_alone boolean;
  v_tids tid[];          -- of rows that this transaction has locked, so they stay where they are
  v_rows ichido.work[];
  v record;
  w0 ichido.work;         -- the row at hand
BEGIN
  IF claim.jitter NOT BETWEEN 0 AND 1 OR claim.most < 1 OR claim.lease_time <= interval '0' THEN
    RAISE EXCEPTION 'claim needs most >= 1, a lease above 0 and a jitter of 0 to 1'
      USING ERRCODE = 'IC004';
  END IF;
  -- Each turn either claims, finds nothing, or moves one exhausted row to review.
  FOR v_turn IN 1..100 LOOP
    v_tids := '{}';
    v_rows := '{}';
    v_alone := false;
    FOR v IN
      SELECT w.tid, w.o AS row
        FROM (SELECT q.name AS queue, l.name AS lane
                FROM unnest(claim.lanes) WITH ORDINALITY AS l (name, n)
               CROSS JOIN unnest(claim.queues) WITH ORDINALITY AS q (name, n)
               ORDER BY l.n, q.n) s
       CROSS JOIN LATERAL (
         SELECT o.ctid AS tid, o FROM ichido.work o
          WHERE o.queue = s.queue AND o.lane = s.lane AND o.next_at <= v_now
          ORDER BY o.next_at, o.id LIMIT claim.most FOR UPDATE SKIP LOCKED) w
       LIMIT claim.most
    LOOP
      w0 := v.row;
      v_alone := w0.lease <> 0;
      EXIT WHEN v_alone;
      v_tids := v_tids || v.tid;
      v_rows := v_rows || w0;
    END LOOP;
    EXIT WHEN NOT v_alone OR cardinality(v_rows) > 0;

    INSERT INTO ichido.attempt (id, lease, started_at, ended_at, run, attempt, error)
    VALUES (w0.id, w0.lease, w0.claimed_at, w0.next_at, w0.run, w0.attempts,
            'the lease ran out: the worker died or the handler took too long');
    SELECT p.max_attempts INTO v_max FROM ichido.endpoint p WHERE p.id = w0.endpoint_id;
    v_tids := ARRAY[v.tid];
    v_rows := ARRAY[w0];
    EXIT WHEN w0.attempts < v_max;
    DELETE FROM ichido.work w WHERE w.ctid = v.tid;
    INSERT INTO ichido.review (since, received_at, endpoint_id, attempts, run, id, queue,
                               order_key, order_seq, reason)
    VALUES (v_now, w0.received_at, w0.endpoint_id, w0.attempts, w0.run, w0.id, w0.queue,
            w0.order_key, w0.order_seq,
            'attempts used up; at the last one the lease ran out');
    -- Unless it blocks its key from there.
    IF w0.order_seq IS NOT NULL THEN
      PERFORM ichido.order_next(w0.endpoint_id, w0.order_key);
    END IF;
    v_tids := '{}';
    v_rows := '{}';
  END LOOP;
  IF cardinality(v_rows) = 0 THEN
    RETURN;
  END IF;

  v_lease := nextval('ichido.lease');
  UPDATE ichido.work w
     SET attempts = w.attempts + 1, lease = v_lease, claimed_at = v_now,
         next_at = v_now + claim.lease_time * (1 + claim.jitter * random())
   WHERE w.ctid = ANY (v_tids);
  RETURN QUERY
  SELECT w.id, v_lease, (w.attempts + 1)::int2, w.queue, w.lane, p.name, p.provider, e.event_id,
         e.event_type, e.occurred_at,
         substring(d.body, e.body_from + 1, e.body_to - e.body_from), d.headers, w.run,
         e.signed, w.received_at
    FROM unnest(v_rows) w
    JOIN ichido.event e ON e.id = w.id
    JOIN ichido.endpoint p ON p.id = w.endpoint_id
    LEFT JOIN ichido.delivery d ON d.id = e.delivery_id AND d.received_at = w.received_at
   ORDER BY array_position(claim.lanes, w.lane), array_position(claim.queues, w.queue),
            w.next_at, w.id;
END
$$;
