-- Order by key: of each key the first in line is the only one that can be claimed; the others are
-- parked (`next_at` NULL) until it is done. Partial: where no order is asked for, it costs nothing.
CREATE INDEX ichido_work_order ON ichido_work (endpoint_id, order_key, order_seq)
  WHERE order_seq IS NOT NULL;
CREATE INDEX ichido_review_order ON ichido_review (endpoint_id, order_key, order_seq)
  WHERE order_seq IS NOT NULL;
