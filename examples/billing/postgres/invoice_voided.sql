-- Ends an invoice. One that was paid stays paid, since its payment is in the ledger; a human is
-- told. As in `invoice_paid.sql`, the upsert takes the row's lock and tells which status won.
WITH invoice AS (
  INSERT INTO invoices AS i (id, customer_id, status)
  SELECT o ->> 'id', o ->> 'customer', 'void'
    FROM (SELECT :payload #> '{data,object}' AS o) AS event
  ON CONFLICT (id) DO UPDATE SET
    status = CASE WHEN i.status = 'paid' THEN 'paid' ELSE 'void' END,
    updated_at = CASE WHEN i.status = 'paid' THEN i.updated_at ELSE excluded.updated_at END
  RETURNING i.id, i.status
)
SELECT ichido.flag(:endpoint, :event_id, 'void for the paid invoice ' || id)
  FROM invoice WHERE status = 'paid';
