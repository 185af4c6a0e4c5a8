-- Writes a message in the caller's transaction, and returns its id. A plain INSERT of
-- (aggregate_type, aggregate_id, event_type, payload) does the same.
CREATE OR REPLACE FUNCTION ichido.outbox_put(
  aggregate_type text, aggregate_id text, event_type text, payload jsonb,
  destination text DEFAULT NULL, key text DEFAULT NULL, headers jsonb DEFAULT NULL,
  not_before timestamptz DEFAULT NULL)
RETURNS uuid
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_id uuid := ichido.uuid7();
BEGIN
  INSERT INTO ichido.outbox AS o (id, aggregate_type, aggregate_id, event_type, payload,
                                  destination, key, headers, not_before)
  VALUES (v_id, outbox_put.aggregate_type, outbox_put.aggregate_id, outbox_put.event_type,
          outbox_put.payload, outbox_put.destination, outbox_put.key, outbox_put.headers,
          outbox_put.not_before);
  RETURN v_id;
END
$$;
