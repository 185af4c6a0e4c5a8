-- The ids of messages. Its text is of the first migration; here it gets the search_path that all
-- functions of ours have: nobody else's functions or operators are called, whatever fits better.
ALTER FUNCTION ichido.uuid7() SET search_path = pg_catalog, pg_temp;
