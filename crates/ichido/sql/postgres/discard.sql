-- A human ends an event unprocessed.
SELECT ichido.discard($1, $2)
