-- Lets lines go on that nobody moves.
SELECT ichido.order_sweep()
