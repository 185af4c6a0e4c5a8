-- Which lock an order key has. Two keys may share one: they wait for each other, and no more.
CREATE OR REPLACE FUNCTION ichido.order_slot(endpoint_id smallint, order_key text) RETURNS int4
LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $$
  SELECT hashtext(order_slot.endpoint_id || '/' || order_slot.order_key)
$$;
