-- The completion, which opens a handler's transaction. No row: the lease is not ours any more.
SELECT s.xid FROM ichido.start($1, $2) s
