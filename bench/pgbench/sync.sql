\set id random(1, 9000000000)
BEGIN;
INSERT INTO webhook_inbox (provider, endpoint, event_id, event_type, payload) VALUES ('stripe', 'billing', 'evt_' || :id, 'invoice.paid', '{payload}') ON CONFLICT DO NOTHING RETURNING event_id;
INSERT INTO invoices (id, customer_id, status, amount_paid, paid_at) VALUES ('in_' || :id, 'cus_1', 'paid', 4900, now()) ON CONFLICT (id) DO UPDATE SET status = 'paid', amount_paid = excluded.amount_paid, updated_at = now() WHERE invoices.status NOT IN ('paid', 'void');
SELECT status FROM invoices WHERE id = 'in_' || :id;
INSERT INTO ledger_entries (invoice_id, kind, amount) VALUES ('in_' || :id, 'payment', 4900) ON CONFLICT (invoice_id, kind) DO NOTHING RETURNING id;
INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload) VALUES ('Invoice', 'in_' || :id, 'InvoicePaymentBooked', '{"invoice_id": "in_1", "amount": 4900}');
UPDATE webhook_inbox SET processed_at = now() WHERE provider = 'stripe' AND endpoint = 'billing' AND event_id = 'evt_' || :id;
COMMIT;
