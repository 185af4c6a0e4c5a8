-- Claims due messages for a dispatcher, in a short transaction of its own; they are sent after
-- it, outside any transaction. The lease number is the fence, and goes to the far side with the
-- key. A message whose lease ran out at its last attempt waits for a human.
CREATE OR REPLACE FUNCTION ichido.outbox_claim(
  destinations text[], most int4, lease_time interval, jitter double precision DEFAULT 0.25,
  max_attempts int4 DEFAULT 20)
RETURNS TABLE (
  message uuid, destination text, lease bigint, attempts int2, aggregate_type text,
  aggregate_id text, event_type text, payload jsonb, created_at timestamptz, key text,
  headers jsonb)
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off
SET plan_cache_mode = force_generic_plan
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_now timestamptz := clock_timestamp();
  v_lease bigint;
  v_messages uuid[] := '{}';
  v_destinations text[] := '{}';
  v record;
BEGIN
  FOR v IN
    SELECT w.*
      FROM unnest(outbox_claim.destinations) WITH ORDINALITY AS q (name, n)
     CROSS JOIN LATERAL (
       SELECT * FROM ichido.dispatch o
        WHERE o.destination = q.name AND o.next_at <= v_now AND o.destination <> ''
        ORDER BY o.next_at, o.message LIMIT outbox_claim.most FOR UPDATE SKIP LOCKED) w
     LIMIT outbox_claim.most
  LOOP
    IF v.lease <> 0 AND v.attempts >= outbox_claim.max_attempts THEN
      UPDATE ichido.dispatch d
         SET lease = 0, next_at = NULL,
             last_error = 'attempts used up; at the last one the lease ran out'
       WHERE d.message = v.message AND d.destination = v.destination;
    ELSE
      v_messages := v_messages || v.message;
      v_destinations := v_destinations || v.destination;
    END IF;
  END LOOP;
  IF cardinality(v_messages) = 0 THEN
    RETURN;
  END IF;
  v_lease := nextval('ichido.lease');
  UPDATE ichido.dispatch d
     SET attempts = d.attempts + 1, lease = v_lease, claimed_at = v_now,
         next_at = v_now + outbox_claim.lease_time * (1 + outbox_claim.jitter * random())
    FROM unnest(v_messages, v_destinations) AS i (message, destination)
   WHERE d.message = i.message AND d.destination = i.destination;
  RETURN QUERY
  SELECT d.message, d.destination, d.lease, d.attempts, o.aggregate_type, o.aggregate_id,
         o.event_type, o.payload, o.created_at, coalesce(o.key, o.id::text), o.headers
    FROM unnest(v_messages, v_destinations) WITH ORDINALITY AS i (message, destination, n)
    JOIN ichido.dispatch d ON d.message = i.message AND d.destination = i.destination
    JOIN ichido.outbox o ON o.id = i.message
   ORDER BY i.n;
END
$$;
