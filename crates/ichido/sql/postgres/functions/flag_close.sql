-- Closes a flag with a human's note. False: it is not open (any more).
CREATE OR REPLACE FUNCTION ichido.flag_close(flag uuid, note text) RETURNS boolean
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  UPDATE ichido.flag f SET closed_at = clock_timestamp(), note = flag_close.note
   WHERE f.id = flag_close.flag AND f.closed_at IS NULL;
  RETURN FOUND;
END
$$;
