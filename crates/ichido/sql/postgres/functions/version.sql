-- The version of the tables, for callers that check before they start.
CREATE OR REPLACE FUNCTION ichido.version() RETURNS int
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$ SELECT max(m.version) FROM ichido.migration m $$;
