-- A human closes a flag.
SELECT ichido.flag_close($1, $2)
