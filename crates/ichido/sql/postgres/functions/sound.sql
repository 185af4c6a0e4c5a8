-- The guard that travels with COMMIT. Drivers return Ok from `commit` on an aborted transaction,
-- and a handler's own COMMIT would pass a plain `SELECT 1`; this raises, so that COMMIT is not
-- reached, when the transaction is not the one that began or when durability was turned off.
CREATE OR REPLACE FUNCTION ichido.sound(xid text) RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_sync text := current_setting('synchronous_commit');
BEGIN
  IF pg_current_xact_id_if_assigned()::text IS DISTINCT FROM sound.xid THEN
    RAISE EXCEPTION 'this is not the transaction that took the event: '
      'a handler must not use COMMIT, ROLLBACK or BEGIN' USING ERRCODE = 'IC003';
  END IF;
  IF v_sync = 'off' OR (v_sync = 'local'
     AND current_setting('synchronous_standby_names') <> '') THEN
    RAISE EXCEPTION 'synchronous_commit is % in this transaction: a handler must not turn '
      'durability off', v_sync USING ERRCODE = 'IC003';
  END IF;
END
$$;
