-- Where the signature does not cover the event id, a replayed body under a fresh id must not
-- pass unnoticed: the second receipt with the same signed bytes is marked on the first, or refused
-- where the endpoint says so (IC005; of two at once, one waits for the other here). A phase of its
-- own after the event keys, sorted, so that there is one order of locks and no deadlock. Gives the
-- numbers of the events that were marked.
DROP FUNCTION IF EXISTS ichido.mark_digests(int2[], uuid[], int4[], bytea[], boolean[], boolean[]);
CREATE FUNCTION ichido.mark_digests(
  d_endpoint int2[], e_receipt uuid[], e_delivery int4[], e_digest bytea[], e_signed boolean[],
  e_fresh boolean[] /* NULL: all */)
RETURNS int4[]
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v record;
  v_repeats int4;
  v_marked int4[] := '{}';
BEGIN
  FOR v IN
    SELECT p.id AS endpoint_id, e.digest, e.id, e.n::int4 AS n,
           p.settings ->> 'repeated_body' = 'refuse' AS refuse
      FROM unnest(e_receipt, e_delivery, e_digest, e_signed) WITH ORDINALITY
           AS e (id, d, digest, signed, n)
      JOIN ichido.endpoint p ON p.id = d_endpoint[e.d]
     WHERE e.signed AND NOT p.id_signed AND (e_fresh IS NULL OR e_fresh[e.n])
     ORDER BY p.id, e.digest, e.n
  LOOP
    -- One row at a time: the same bytes may come twice in one batch.
    INSERT INTO ichido.signed_digest AS s (endpoint_id, digest, id, received_at, last_id, last_at)
    VALUES (v.endpoint_id, v.digest, v.id, clock_timestamp(), v.id, clock_timestamp())
    ON CONFLICT (endpoint_id, digest)
    DO UPDATE SET repeats = s.repeats + 1, last_id = excluded.last_id, last_at = excluded.last_at
    RETURNING s.repeats INTO v_repeats;
    CONTINUE WHEN v_repeats = 0;
    IF v.refuse THEN
      RAISE EXCEPTION 'a body that was received before, under another event id'
        USING ERRCODE = 'IC005';
    END IF;
    v_marked := v_marked || v.n;
  END LOOP;
  RETURN v_marked;
END
$$;
