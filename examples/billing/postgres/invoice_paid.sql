-- Books a payment once, in one statement (the body travels once per statement):
--   * the invoice may not be there yet, and `void` is never overwritten;
--   * one ledger entry per (invoice, kind), even when two Event objects report one payment;
--   * the message leaves only when something was booked;
--   * a payment for a void invoice books nothing and raises a flag for a human.
-- The upsert always touches the row: that takes its lock, so that a concurrent `invoice.voided`
-- is seen before this decides, and RETURNING tells the status that won.
WITH event AS (
  SELECT o ->> 'id' AS id, o ->> 'customer' AS customer, (o ->> 'amount_paid')::bigint AS amount
    FROM (SELECT :payload #> '{data,object}' AS o) AS body
), invoice AS (
  INSERT INTO invoices AS i (id, customer_id, status, amount_paid, paid_at)
  SELECT id, customer, 'paid', amount, coalesce(:occurred_at, now()) FROM event
  ON CONFLICT (id) DO UPDATE SET
    status = CASE WHEN i.status = 'void' THEN 'void' ELSE 'paid' END,
    amount_paid = CASE WHEN i.status IN ('paid', 'void') THEN i.amount_paid
                       ELSE excluded.amount_paid END,
    paid_at = CASE WHEN i.status IN ('paid', 'void') THEN i.paid_at ELSE excluded.paid_at END,
    updated_at = CASE WHEN i.status IN ('paid', 'void') THEN i.updated_at
                      ELSE excluded.updated_at END
  RETURNING i.id, i.status
), booked AS (
  INSERT INTO ledger_entries (invoice_id, kind, amount)
  SELECT invoice.id, 'payment', event.amount FROM invoice, event WHERE invoice.status = 'paid'
  ON CONFLICT (invoice_id, kind) DO NOTHING
  RETURNING invoice_id, amount
), message AS (
  INSERT INTO ichido.outbox (aggregate_type, aggregate_id, event_type, payload)
  SELECT 'Invoice', invoice_id, 'InvoicePaymentBooked',
         jsonb_build_object('invoice_id', invoice_id, 'amount', amount)
    FROM booked
)
SELECT ichido.flag(:endpoint, :event_id, 'payment for the void invoice ' || id)
  FROM invoice WHERE status = 'void';
