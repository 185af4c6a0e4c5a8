-- Runs an event again that is done (processed, ignored or discarded), as a new run: the old one
-- stays in history, with who asked for the new one and why. Its messages carry the same
-- idempotency keys. Queue NULL: the one that did it, else the endpoint's own. Returns the run.
CREATE OR REPLACE FUNCTION ichido.replay(
  receipt uuid, by text, reason text, queue text DEFAULT NULL)
RETURNS smallint
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v ichido.event;
  v_done ichido.done;
  v_run smallint;
  v_now timestamptz := clock_timestamp();
BEGIN
  IF coalesce(btrim(replay.by), '') = '' OR coalesce(btrim(replay.reason), '') = '' THEN
    RAISE EXCEPTION 'replay needs who asks for it and why' USING ERRCODE = 'IC004';
  END IF;
  -- One replay of an event at a time; what the last one did is seen by the statements below.
  SELECT * INTO v FROM ichido.event e WHERE e.id = replay.receipt FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'unknown event %', replay.receipt USING ERRCODE = 'IC004';
  END IF;
  IF EXISTS (SELECT 1 FROM ichido.work w WHERE w.id = v.id)
     OR EXISTS (SELECT 1 FROM ichido.review r WHERE r.id = v.id) THEN
    RAISE EXCEPTION 'event % is not done: wait for its worker, or requeue or discard it', v.id
      USING ERRCODE = 'IC004';
  END IF;
  SELECT * INTO v_done FROM ichido.done d WHERE d.id = v.id ORDER BY d.run DESC LIMIT 1;
  PERFORM 1 FROM ichido.delivery d
   WHERE d.id = v.delivery_id AND d.received_at = v.received_at FOR KEY SHARE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'the bytes of event % are no longer kept', v.id USING ERRCODE = 'IC004';
  END IF;
  v_run := coalesce(v_done.run, 0) + 1;
  INSERT INTO ichido.replay AS r (id, run, replayed_at, replayed_by, reason)
  VALUES (v.id, v_run, v_now, replay.by, replay.reason);
  INSERT INTO ichido.work (received_at, next_at, endpoint_id, run, id, queue, lane, order_key)
  VALUES (v.received_at, v_now, v.endpoint_id, v_run, v.id,
          coalesce(replay.queue, v_done.queue,
                   (SELECT p.name FROM ichido.endpoint p WHERE p.id = v.endpoint_id)),
          'backfill', v.order_key);
  RETURN v_run;
END
$$;
