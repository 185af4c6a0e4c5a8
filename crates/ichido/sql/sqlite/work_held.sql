-- How an event stands that we hold. No row: the lease is not ours any more.
SELECT w.claimed_at, w.attempts, w.run, p.max_attempts
  FROM ichido_work w JOIN ichido_endpoint p ON p.id = w.endpoint_id
 WHERE w.id = ?1 AND w.lease = ?2 AND w.lease <> 0
