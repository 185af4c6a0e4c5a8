-- Gives a claimed event back without a start, due after so many seconds.
SELECT ichido.release($1, $2, make_interval(secs => $3))
