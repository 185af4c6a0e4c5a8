-- A human sends an event back to its queue.
SELECT ichido.requeue($1)
