-- Only inserts: `invoice.paid` may have come first, and what it wrote is newer than this.
INSERT INTO invoices (id, customer_id, status)
SELECT o ->> 'id', o ->> 'customer', coalesce(o ->> 'status', 'draft')
  FROM (SELECT :payload -> '$.data.object' AS o)
 WHERE true
ON CONFLICT (id) DO NOTHING;
