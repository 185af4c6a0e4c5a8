-- The bookkeeping of migrations: what was applied, and the text it had.
CREATE TABLE IF NOT EXISTS ichido.migration (
  version    int PRIMARY KEY,
  name       text NOT NULL,
  sha256     text NOT NULL,
  applied_at timestamptz NOT NULL DEFAULT now()
);
-- Functions have no number: one is applied again whenever its text differs.
CREATE TABLE IF NOT EXISTS ichido.migration_function (
  name       text PRIMARY KEY,
  sha256     text NOT NULL,
  applied_at timestamptz NOT NULL DEFAULT now()
);
