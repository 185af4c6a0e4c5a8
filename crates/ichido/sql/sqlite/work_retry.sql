-- Tried again later.
UPDATE ichido_work SET lease = 0, lane = 'retry', claimed_at = NULL, last_error = ?2, next_at = ?3
 WHERE id = ?1
