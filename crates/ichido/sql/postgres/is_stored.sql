-- Whether a receipt is stored: asked on a fresh connection when COMMIT's answer was lost. A
-- transaction that is still ending shows as "no", which is safe: the sender tries again, and the
-- event key makes that a duplicate.
SELECT EXISTS (SELECT FROM ichido.event e WHERE e.id = $1)
