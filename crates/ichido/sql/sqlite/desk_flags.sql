-- Open flags, the oldest first.
SELECT id, endpoint, event_id, raised_at, reason FROM ichido_flag
 WHERE closed_at IS NULL ORDER BY raised_at, id LIMIT ?1
