-- Counts duplicates, some time after they were answered and many at once: a duplicate itself
-- writes nothing.
UPDATE ichido.endpoint e SET duplicates = e.duplicates + $2 WHERE e.name = $1
