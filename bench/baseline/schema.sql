-- The one-table inbox of the usual pattern, and the business tables of the billing example.
-- What Ichido is compared with, so it must stay as people build it: one row an event holds the
-- payload, the state and the errors.
CREATE TABLE webhook_inbox (
  provider     text NOT NULL,
  endpoint     text NOT NULL,
  event_id     text NOT NULL,
  event_type   text NOT NULL,
  payload      jsonb NOT NULL,
  received_at  timestamptz NOT NULL DEFAULT now(),
  available_at timestamptz NOT NULL DEFAULT now(),
  attempts     integer NOT NULL DEFAULT 0,
  last_error   text,
  processed_at timestamptz,
  PRIMARY KEY (provider, endpoint, event_id)
);
CREATE INDEX webhook_inbox_due ON webhook_inbox (available_at) WHERE processed_at IS NULL;

CREATE TABLE invoices (
  id          text PRIMARY KEY,
  customer_id text NOT NULL,
  status      text NOT NULL,
  amount_paid bigint NOT NULL DEFAULT 0,
  paid_at     timestamptz,
  updated_at  timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE ledger_entries (
  id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  invoice_id text NOT NULL,
  kind       text NOT NULL,
  amount     bigint NOT NULL,
  UNIQUE (invoice_id, kind)
);
CREATE TABLE outbox (
  id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  aggregate_type text NOT NULL,
  aggregate_id   text NOT NULL,
  event_type     text NOT NULL,
  payload        jsonb NOT NULL,
  created_at     timestamptz NOT NULL DEFAULT now(),
  published_at   timestamptz
);
