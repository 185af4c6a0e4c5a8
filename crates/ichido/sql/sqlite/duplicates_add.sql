-- Counts duplicates, many at once: a duplicate itself writes nothing.
UPDATE ichido_endpoint SET duplicates = duplicates + ?2 WHERE name = ?1
