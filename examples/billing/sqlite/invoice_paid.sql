-- Books a payment once. The writer is alone on the file, so these statements see no other.

-- The invoice may not be there yet; `void` is never overwritten.
INSERT INTO invoices (id, customer_id, status, amount_paid, paid_at)
SELECT o ->> 'id', o ->> 'customer', 'paid', o ->> 'amount_paid',
       coalesce(:occurred_at, strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
  FROM (SELECT :payload -> '$.data.object' AS o)
 WHERE true
ON CONFLICT (id) DO UPDATE SET
  status = 'paid', amount_paid = excluded.amount_paid,
  paid_at = excluded.paid_at, updated_at = excluded.updated_at
WHERE invoices.status NOT IN ('paid', 'void');

-- The message leaves only when the next statement books.
INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload)
SELECT 'Invoice', i.id, 'InvoicePaymentBooked',
       json_object('invoice_id', i.id, 'amount', :payload ->> '$.data.object.amount_paid')
  FROM invoices AS i
 WHERE i.id = :payload ->> '$.data.object.id' AND i.status = 'paid'
   AND NOT EXISTS (SELECT 1 FROM ledger_entries AS l
                    WHERE l.invoice_id = i.id AND l.kind = 'payment');

-- One ledger entry per (invoice, kind), even when two Event objects report one payment.
INSERT INTO ledger_entries (invoice_id, kind, amount)
SELECT i.id, 'payment', :payload ->> '$.data.object.amount_paid'
  FROM invoices AS i
 WHERE i.id = :payload ->> '$.data.object.id' AND i.status = 'paid'
ON CONFLICT (invoice_id, kind) DO NOTHING;

-- A payment for a void invoice books nothing; a human is told.
INSERT INTO ichido_flag (endpoint, event_id, reason)
SELECT :endpoint, :event_id, 'payment for the void invoice ' || i.id
  FROM invoices AS i
 WHERE i.id = :payload ->> '$.data.object.id' AND i.status = 'void';
