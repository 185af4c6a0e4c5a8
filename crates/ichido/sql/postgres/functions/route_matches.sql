-- '*' is any, 'invoice.*' a prefix, all else exact.
CREATE OR REPLACE FUNCTION ichido.route_matches(pattern text, value text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
  SELECT pattern = '*' OR pattern = value
      OR (right(pattern, 2) = '.*' AND starts_with(value, left(pattern, -1)))
$$;
