-- The handler failed after all: the mark goes, in the same transaction.
DELETE FROM ichido_done WHERE id = ?1 AND run = 0
