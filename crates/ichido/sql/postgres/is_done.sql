-- Whether a run of an event is done: asked where the fate of a COMMIT is unknown.
SELECT EXISTS (SELECT 1 FROM ichido.done d WHERE d.id = $1 AND d.run = $2)
