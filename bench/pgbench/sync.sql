-- PostgreSQL's own limit for sync receive: the whole business transaction of the pattern, eight
-- statements. The runner puts the payload into it.
\set n random(1, 9000000000000)
BEGIN;
INSERT INTO webhook_inbox (provider, endpoint, event_id, event_type, payload)
VALUES ('stripe', 'billing', 'evt_' || lpad(:n::text, 24, '1'), 'invoice.paid', '@body@')
ON CONFLICT (provider, endpoint, event_id) DO NOTHING RETURNING event_id;
INSERT INTO invoices (id, customer_id, status, amount_paid, paid_at)
VALUES ('in_' || lpad(:n::text, 24, '1'), 'cus_SJLzq9dWptoLB7', 'paid', 4180, now())
ON CONFLICT (id) DO UPDATE
   SET status = 'paid', amount_paid = excluded.amount_paid,
       paid_at = coalesce(invoices.paid_at, excluded.paid_at), updated_at = now()
 WHERE invoices.status NOT IN ('paid', 'void');
SELECT status FROM invoices WHERE id = 'in_' || lpad(:n::text, 24, '1');
INSERT INTO ledger_entries (invoice_id, kind, amount)
VALUES ('in_' || lpad(:n::text, 24, '1'), 'payment', 4180)
ON CONFLICT (invoice_id, kind) DO NOTHING RETURNING id;
INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload)
VALUES ('Invoice', 'in_' || lpad(:n::text, 24, '1'), 'InvoicePaymentBooked',
        '{"invoice_id": "in_111111111111111111111111", "amount": 4180}');
UPDATE webhook_inbox SET processed_at = now()
 WHERE provider = 'stripe' AND endpoint = 'billing'
   AND event_id = 'evt_' || lpad(:n::text, 24, '1');
COMMIT;
