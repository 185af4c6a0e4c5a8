-- Claims for a worker of ours, as one statement and so one transaction. The lease comes as
-- seconds.
SELECT c.receipt, c.lease, c.attempts, c.lane, c.endpoint, c.provider, c.event_id, c.event_type,
       c.occurred_at, c.body, c.run, c.signed
  FROM ichido.claim($1, $2, $3, make_interval(secs => $4)) c
