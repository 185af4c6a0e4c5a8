-- Work of an endpoint that asks for order: parked where another of its key is in line, or blocks
-- the key (?6) from review. There is one writer, so no lock is needed.
INSERT INTO ichido_work (id, endpoint_id, queue, lane, next_at, received_at, order_key, order_seq)
SELECT ?1, ?2, ?3, 'fresh',
       CASE WHEN EXISTS (SELECT 1 FROM ichido_work w
                          WHERE w.endpoint_id = ?2 AND w.order_key = ?5
                            AND w.order_seq IS NOT NULL)
              OR (?6 AND EXISTS (SELECT 1 FROM ichido_review r
                                  WHERE r.endpoint_id = ?2 AND r.order_key = ?5
                                    AND r.order_seq IS NOT NULL))
            THEN NULL ELSE ?4 END,
       ?4, ?5,
       1 + max(coalesce((SELECT max(w.order_seq) FROM ichido_work w
                          WHERE w.endpoint_id = ?2 AND w.order_key = ?5
                            AND w.order_seq IS NOT NULL), 0),
               coalesce((SELECT max(r.order_seq) FROM ichido_review r
                          WHERE r.endpoint_id = ?2 AND r.order_key = ?5
                            AND r.order_seq IS NOT NULL), 0))
