-- The invariants that do not hold.
SELECT a.invariant, a.promise, a.count, a.example FROM ichido.audit() a
