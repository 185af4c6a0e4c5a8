-- Ends an invoice. One that was paid stays paid, since its payment is in the ledger.
INSERT INTO invoices (id, customer_id, status)
SELECT o ->> 'id', o ->> 'customer', 'void'
  FROM (SELECT :payload -> '$.data.object' AS o)
 WHERE true
ON CONFLICT (id) DO UPDATE SET status = 'void', updated_at = excluded.updated_at
WHERE invoices.status <> 'paid';

-- A human is told of a void that came after the payment.
INSERT INTO ichido_flag (endpoint, event_id, reason)
SELECT :endpoint, :event_id, 'void for the paid invoice ' || i.id
  FROM invoices AS i
 WHERE i.id = :payload ->> '$.data.object.id' AND i.status = 'paid';
