-- Stores a request once, however many events it holds.
INSERT INTO ichido_delivery (id, endpoint_id, received_at, method, url, headers, body, secret)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
