-- Figures for a person or a machine. Reads what is open, never the history.
CREATE OR REPLACE FUNCTION ichido.stats() RETURNS TABLE (name text, value double precision)
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_now timestamptz := clock_timestamp();
BEGIN
  RETURN QUERY
  SELECT s.name, s.value::double precision
    FROM (SELECT count(*) AS waiting, extract(epoch FROM v_now - min(w.received_at)) AS oldest
            FROM ichido.work w) o
   CROSS JOIN LATERAL (
     VALUES ('unprocessed', o.waiting), ('oldest_age_seconds', o.oldest)) s (name, value)
  UNION ALL
  SELECT 'needs_review', count(*) FROM ichido.review
  UNION ALL
  SELECT 'flags', count(*) FROM ichido.flag f WHERE f.closed_at IS NULL
  UNION ALL
  SELECT 'conflicts', count(*) FROM ichido.conflict
  UNION ALL
  SELECT 'duplicates', coalesce(sum(p.duplicates), 0) FROM ichido.endpoint p
  UNION ALL
  SELECT 'repeated_bodies', count(*) FROM ichido.signed_digest d WHERE d.repeats > 0
  UNION ALL
  SELECT s.name, s.value
    FROM (SELECT count(*) FILTER (WHERE m.next_at IS NOT NULL) AS waiting,
                 count(*) FILTER (WHERE m.next_at IS NULL AND m.destination <> '') AS stuck,
                 count(*) FILTER (WHERE m.destination = '') AS unrouted
            FROM ichido.dispatch m) o
   CROSS JOIN LATERAL (
     VALUES ('outbox_waiting', o.waiting), ('outbox_needs_review', o.stuck),
            ('outbox_without_route', o.unrouted)) s (name, value);
END
$$;
