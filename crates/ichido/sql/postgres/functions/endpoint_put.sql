-- Registers an endpoint or changes its settings, and returns its id. The name is permanent and
-- belongs to one provider: another provider under it would mix two spaces of event ids.
-- Looks before it inserts: an upsert would burn a smallint id at each start of a process.
CREATE OR REPLACE FUNCTION ichido.endpoint_put(name text, provider text, settings jsonb)
RETURNS smallint
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v ichido.endpoint;
  v_settings jsonb := coalesce(endpoint_put.settings, '{}');
  v_attempts smallint := coalesce((v_settings ->> 'max_attempts')::smallint, 10);
  v_id_signed boolean := coalesce((v_settings ->> 'id_signed')::boolean, true);
  v_order text := v_settings ->> 'order_by_key';
BEGIN
  SELECT * INTO v FROM ichido.endpoint e WHERE e.name = endpoint_put.name;
  IF NOT FOUND THEN
    INSERT INTO ichido.endpoint AS e (name, provider, settings, max_attempts, id_signed,
                                      order_by_key)
    VALUES (endpoint_put.name, endpoint_put.provider, v_settings, v_attempts, v_id_signed,
            v_order)
    ON CONFLICT DO NOTHING;
    SELECT * INTO STRICT v FROM ichido.endpoint e WHERE e.name = endpoint_put.name;
  END IF;
  IF v.provider <> endpoint_put.provider THEN
    RAISE EXCEPTION 'endpoint % belongs to provider %, not %: choose another name',
      v.name, v.provider, endpoint_put.provider USING ERRCODE = 'IC004';
  END IF;
  IF v.settings <> v_settings THEN
    UPDATE ichido.endpoint e
       SET settings = v_settings, max_attempts = v_attempts, id_signed = v_id_signed,
           order_by_key = v_order
     WHERE e.id = v.id;
  END IF;
  RETURN v.id;
END
$$;
