-- No work remains.
DELETE FROM ichido_work WHERE id = ?1
