-- A human closes a flag.
UPDATE ichido_flag SET closed_at = ?2, note = ?3 WHERE id = ?1 AND closed_at IS NULL
