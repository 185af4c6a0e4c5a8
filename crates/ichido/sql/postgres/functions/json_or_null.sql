-- Bytes as JSON, or NULL: the bytes are the truth and JSON is a projection that fails softly, so
-- one body that is not JSON (\u0000, invalid UTF-8, too deep) never fails a query over many.
-- PARALLEL RESTRICTED: an exception block is a subtransaction, and a parallel worker has none.
CREATE OR REPLACE FUNCTION ichido.json_or_null(body bytea) RETURNS jsonb
LANGUAGE plpgsql STABLE PARALLEL RESTRICTED
AS $$
BEGIN
  RETURN convert_from(json_or_null.body, 'UTF8')::jsonb;
EXCEPTION WHEN data_exception OR program_limit_exceeded THEN
  RETURN NULL;
END
$$;
