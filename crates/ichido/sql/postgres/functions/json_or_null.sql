-- Bytes as JSON, or NULL: the bytes are the truth and JSON is a projection that fails softly, so
-- one body that is not JSON (\u0000, invalid UTF-8, too deep) never fails a query over many.
-- PARALLEL UNSAFE: an exception block is a subtransaction, and up to 16 not even the leader of a
-- parallel plan may start one, so RESTRICTED fails as soon as a plan over many rows is parallel.
CREATE OR REPLACE FUNCTION ichido.json_or_null(body bytea) RETURNS jsonb
LANGUAGE plpgsql STABLE PARALLEL UNSAFE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  RETURN convert_from(json_or_null.body, 'UTF8')::jsonb;
EXCEPTION WHEN data_exception OR program_limit_exceeded THEN
  RETURN NULL;
END
$$;
