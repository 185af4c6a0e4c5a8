-- Takes one event that the caller vouches for, in the caller's own transaction: the contract for
-- other languages. Without a queue the caller processes it now, in this transaction, and the
-- mark is set with the receipt; with a queue it is left to a worker. `taken` false: a duplicate,
-- do nothing. In REPEATABLE READ a lost race raises 40001: loop.
CREATE OR REPLACE FUNCTION ichido.receive(
  endpoint text, event_id text, event_type text, body bytea,
  occurred_at timestamptz DEFAULT NULL, queue text DEFAULT NULL)
RETURNS TABLE (receipt uuid, taken boolean)
LANGUAGE plpgsql VOLATILE
SET lock_timeout = '2s'
SET enable_seqscan = off
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_now timestamptz := clock_timestamp();
  v_endpoint int2;
  -- The last byte is the lane byte: by it an id alone can be routed to a shard later.
  v_lane int4 := get_byte(sha256(convert_to(receive.endpoint, 'UTF8') || '\x00'
                                 || convert_to(receive.event_id, 'UTF8')), 0);
  v_id uuid := encode(set_byte(uuid_send(ichido.uuid7()), 15, v_lane), 'hex')::uuid;
  v_delivery uuid := encode(set_byte(uuid_send(ichido.uuid7()), 15, v_lane), 'hex')::uuid;
  v_stored uuid;
BEGIN
  IF coalesce(octet_length(receive.event_id), 0) NOT BETWEEN 1 AND 255
     OR receive.event_id ~ '[\x01-\x1f\x7f]' THEN
    RAISE EXCEPTION 'an event id has 1 to 255 bytes and no control characters'
      USING ERRCODE = 'IC004';
  END IF;
  SELECT p.id INTO v_endpoint FROM ichido.endpoint p WHERE p.name = receive.endpoint;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'unknown endpoint %: call ichido.endpoint_put first', receive.endpoint
      USING ERRCODE = 'IC002';
  END IF;
  FOR v_try IN 1..3 LOOP
    INSERT INTO ichido.event (received_at, occurred_at, body_from, body_to, endpoint_id, signed,
                              id, delivery_id, event_id, event_type, digest)
    VALUES (v_now, receive.occurred_at, 0, octet_length(receive.body), v_endpoint, false,
            v_id, v_delivery, receive.event_id, receive.event_type, sha256(receive.body))
    ON CONFLICT DO NOTHING;
    IF FOUND THEN
      INSERT INTO ichido.delivery (received_at, endpoint_id, id, method, url, headers, body)
      VALUES (v_now, v_endpoint, v_delivery, '', '', '', receive.body);
      IF receive.queue IS NULL THEN
        INSERT INTO ichido.done (processed_at, received_at, endpoint_id, attempts, run, id,
                                 outcome)
        VALUES (v_now, v_now, v_endpoint, 0, 0, v_id, 'processed');
      ELSE
        INSERT INTO ichido.work (received_at, next_at, endpoint_id, id, queue, lane)
        VALUES (v_now, v_now, v_endpoint, v_id, receive.queue, 'fresh');
      END IF;
      RETURN QUERY SELECT v_id, true;
      RETURN;
    END IF;
    SELECT e.id INTO v_stored FROM ichido.event e
     WHERE e.endpoint_id = v_endpoint AND e.event_id = receive.event_id;
    IF FOUND THEN
      RETURN QUERY SELECT v_stored, false;
      RETURN;
    END IF;
  END LOOP;
  RAISE EXCEPTION 'event % is neither new nor known: send it again', receive.event_id
    USING ERRCODE = '40001';
END
$$;
