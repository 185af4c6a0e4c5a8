-- The bytes that came first under an event key, to judge whether a later copy conflicts.
SELECT ichido.event_body($1)
