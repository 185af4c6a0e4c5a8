-- A human has an event run again.
SELECT ichido.replay($1, $2, $3)
