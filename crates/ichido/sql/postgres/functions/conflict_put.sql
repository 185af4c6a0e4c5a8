-- Records that a signed delivery came under a known event key with other content. The first one
-- won; both digests and the later bytes are kept. The same content again adds nothing.
CREATE OR REPLACE FUNCTION ichido.conflict_put(
  receipt uuid, digest bytea, method text, url text, headers bytea, body bytea, secret int4)
RETURNS void
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  INSERT INTO ichido.conflict AS c (receipt, digest, first_digest, seen_at, secret, method, url,
                                    headers, body)
  SELECT e.id, conflict_put.digest, e.digest, clock_timestamp(), conflict_put.secret,
         conflict_put.method, conflict_put.url, conflict_put.headers, conflict_put.body
    FROM ichido.event e WHERE e.id = conflict_put.receipt
  ON CONFLICT DO NOTHING;
END
$$;
