-- Whether one that needs review blocks its order key. Sees what its caller's statement sees.
CREATE OR REPLACE FUNCTION ichido.order_blocked(endpoint_id smallint, order_key text)
RETURNS boolean
LANGUAGE sql STABLE
SET enable_seqscan = off
SET search_path = pg_catalog, pg_temp
AS $$
  SELECT EXISTS (
    SELECT 1 FROM ichido.review r
      JOIN ichido.endpoint p ON p.id = r.endpoint_id AND p.order_by_key = 'block'
     WHERE r.endpoint_id = order_blocked.endpoint_id AND r.order_key = order_blocked.order_key
       AND r.order_seq IS NOT NULL)
$$;
