-- Who had an event run again, and why.
INSERT INTO ichido_replay (id, run, replayed_at, replayed_by, reason) VALUES (?1, ?2, ?3, ?4, ?5)
