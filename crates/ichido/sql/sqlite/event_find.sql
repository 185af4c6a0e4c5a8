-- Who holds an event key.
SELECT id, digest, signed FROM ichido_event WHERE endpoint_id = ?1 AND event_id = ?2
