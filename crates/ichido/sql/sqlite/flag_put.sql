-- A note for a human on an event that is processed all the same.
INSERT INTO ichido_flag (endpoint, event_id, reason) VALUES (?1, ?2, ?3)
