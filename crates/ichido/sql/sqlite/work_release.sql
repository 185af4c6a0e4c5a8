-- Given back without a start: the attempt is not counted.
UPDATE ichido_work
   SET lease = 0, claimed_at = NULL, attempts = max(attempts - 1, 0), next_at = ?3
 WHERE id = ?1 AND lease = ?2 AND lease <> 0
