-- Same event key, both signed, other content. The first one wins; both digests are kept.
INSERT INTO ichido_conflict (receipt, digest, first_digest, seen_at, method, url, headers, body,
                             secret)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
ON CONFLICT DO NOTHING
