-- Order by key. An event of an endpoint that asks for it has a place in line (`order_seq`), given
-- under the lock of its key. Of each key the first in line is the only one that can be claimed;
-- the others are parked (`next_at` NULL) until it is done.

-- What a head that fails does to its key; NULL: no order.
ALTER TABLE ichido.endpoint ADD COLUMN order_by_key text
  CHECK (order_by_key IN ('block', 'skip'));

CREATE SEQUENCE ichido.order_seq AS bigint CACHE 1 NO CYCLE;

-- Partial: where no order is asked for, they cost nothing.
CREATE INDEX work_order ON ichido.work (endpoint_id, order_key, order_seq)
  WHERE order_seq IS NOT NULL;
CREATE INDEX review_order ON ichido.review (endpoint_id, order_key)
  WHERE order_seq IS NOT NULL;
