-- Numbers of the past are of no use: what is never used twice is remembered elsewhere.
DELETE FROM ichido_lease WHERE number < ?1
