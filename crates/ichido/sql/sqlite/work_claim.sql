-- Counts the attempt, before a handler runs, and hides the event until the lease has run out.
UPDATE ichido_work SET attempts = attempts + 1, lease = ?2, claimed_at = ?3, next_at = ?4
 WHERE id = ?1
