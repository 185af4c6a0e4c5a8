-- A note for a human on an event.
SELECT ichido.flag($1, $2, $3)
