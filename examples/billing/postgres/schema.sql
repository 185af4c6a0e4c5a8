-- The business tables. Safe to run again.
CREATE TABLE IF NOT EXISTS invoices (
  id          text COLLATE "C" PRIMARY KEY,     -- Stripe's: in_...
  customer_id text,
  status      text NOT NULL
              CHECK (status IN ('draft', 'open', 'paid', 'void', 'uncollectible')),
  amount_paid bigint NOT NULL DEFAULT 0,        -- in the currency's smallest unit
  paid_at     timestamptz,
  updated_at  timestamptz NOT NULL DEFAULT now()
);

-- One entry per (invoice, kind), whatever else goes wrong: a second one is impossible, not
-- merely unlikely.
CREATE TABLE IF NOT EXISTS ledger_entries (
  id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  invoice_id text COLLATE "C" NOT NULL,
  kind       text COLLATE "C" NOT NULL,
  amount     bigint NOT NULL,
  UNIQUE (invoice_id, kind)
);

-- Where its messages go: one without a route would be a finding of `ichido audit`.
INSERT INTO ichido.route (aggregate_type, destination) VALUES ('Invoice', 'bookkeeping')
ON CONFLICT DO NOTHING;
