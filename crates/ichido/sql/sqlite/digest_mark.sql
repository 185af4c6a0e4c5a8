-- Where the signature does not cover the event id, the same bytes under a second id are marked.
-- True when these are.
INSERT INTO ichido_signed_digest (endpoint_id, digest, id, received_at)
VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (endpoint_id, digest) DO UPDATE
   SET repeats = repeats + 1, last_id = excluded.id, last_at = excluded.received_at
RETURNING repeats > 0
