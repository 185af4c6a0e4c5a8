-- Receives a batch. Sent on its own it is one transaction and one round trip, and the guard runs
-- within it, so that nothing is acknowledged that a setting has made perishable.
SELECT r.receipt, r.taken, r.differs, r.xid, r.repeated,
       CASE WHEN r.n = 1 THEN ichido.sound(r.xid)::text END
  FROM ichido.receive($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17,
                      $18, $19, $20) r
