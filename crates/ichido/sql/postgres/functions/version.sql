-- The version of the tables, for callers that check before they start.
CREATE OR REPLACE FUNCTION ichido.version() RETURNS int
LANGUAGE sql STABLE
AS $$ SELECT max(m.version) FROM ichido.migration m $$;
