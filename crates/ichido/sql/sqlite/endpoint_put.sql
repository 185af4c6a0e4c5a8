-- Registers an endpoint or changes its settings; the name is permanent and its provider too.
INSERT INTO ichido_endpoint (name, provider, max_attempts, id_signed, settings)
VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (name) DO UPDATE SET max_attempts = excluded.max_attempts,
  id_signed = excluded.id_signed, settings = excluded.settings
WHERE provider = excluded.provider
RETURNING id
