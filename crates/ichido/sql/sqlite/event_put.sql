-- Takes an event key. Nothing inserted: a duplicate, for the key is the judge.
INSERT INTO ichido_event (endpoint_id, event_id, id, delivery_id, body_from, body_to, event_type,
                          digest, signed, occurred_at, order_key, received_at, is_text)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
ON CONFLICT (endpoint_id, event_id) DO NOTHING
