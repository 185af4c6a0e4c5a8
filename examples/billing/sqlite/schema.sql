-- The business tables. Safe to run again: they are applied whenever the file is opened.
CREATE TABLE IF NOT EXISTS invoices (
  id          TEXT PRIMARY KEY NOT NULL,        -- Stripe's: in_...
  customer_id TEXT,
  status      TEXT NOT NULL
              CHECK (status IN ('draft', 'open', 'paid', 'void', 'uncollectible')),
  amount_paid INTEGER NOT NULL DEFAULT 0,       -- in the currency's smallest unit
  paid_at     TEXT,                             -- RFC 3339, UTC
  updated_at  TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
) STRICT;

-- One entry per (invoice, kind), whatever else goes wrong: a second one is impossible, not
-- merely unlikely.
CREATE TABLE IF NOT EXISTS ledger_entries (
  id         INTEGER PRIMARY KEY,
  invoice_id TEXT NOT NULL,
  kind       TEXT NOT NULL,
  amount     INTEGER NOT NULL,
  UNIQUE (invoice_id, kind)
) STRICT;

-- Where its messages go: one without a route would be a finding of `ichido audit`.
INSERT INTO ichido_route (aggregate_type, destination) VALUES ('Invoice', 'bookkeeping')
ON CONFLICT DO NOTHING;
