-- What came in the last hour, by endpoint and type, most frequent first. Reads the last hour
-- only, by the block ranges of received_at.
CREATE OR REPLACE FUNCTION ichido.stats_types()
RETURNS TABLE (endpoint text, event_type text, count bigint)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_since timestamptz := clock_timestamp() - interval '1 hour';
BEGIN
  RETURN QUERY
  SELECT p.name, t.event_type, t.many
    FROM (SELECT e.endpoint_id, e.event_type, count(*) AS many FROM ichido.event e
           WHERE e.received_at > v_since GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2 LIMIT 50) t
    JOIN ichido.endpoint p ON p.id = t.endpoint_id
   ORDER BY t.many DESC, 1, 2;
END
$$;
