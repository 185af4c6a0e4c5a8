-- A message, in the handler's transaction.
INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload) VALUES (?1, ?2, ?3, ?4)
