-- Records a failed attempt. Seconds of delay NULL: drawn at random.
SELECT ichido.fail($1, $2, $3, make_interval(secs => $4), $5)
