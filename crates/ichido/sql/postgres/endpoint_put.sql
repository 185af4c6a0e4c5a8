-- Registers an endpoint or changes its settings; the name is permanent.
SELECT ichido.endpoint_put($1, $2, $3)
