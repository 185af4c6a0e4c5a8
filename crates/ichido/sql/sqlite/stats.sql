-- Figures by name; reads what is open, never the history.
SELECT 'unprocessed', count(*) FROM ichido_work
UNION ALL
SELECT 'oldest_age_seconds', (julianday('now') - julianday(min(received_at))) * 86400
  FROM ichido_work
UNION ALL
SELECT 'needs_review', count(*) FROM ichido_review
UNION ALL
SELECT 'flags', count(*) FROM ichido_flag WHERE closed_at IS NULL
UNION ALL
SELECT 'conflicts', count(*) FROM ichido_conflict
UNION ALL
SELECT 'repeated_bodies', count(*) FROM ichido_signed_digest WHERE repeats > 0
UNION ALL
SELECT 'outbox_waiting', count(*) FROM ichido_dispatch WHERE next_at IS NOT NULL
UNION ALL
SELECT 'duplicates', coalesce(sum(duplicates), 0) FROM ichido_endpoint
