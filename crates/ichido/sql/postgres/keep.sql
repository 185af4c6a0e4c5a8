-- Keeps an event whose handler failed, in the receive transaction itself: no gap in which a
-- waiting duplicate could take the key.
SELECT ichido.keep($1, $2, $3)
