-- Whether the bytes of an event are still there.
SELECT EXISTS (SELECT 1 FROM ichido_event e JOIN ichido_delivery d ON d.id = e.delivery_id
                WHERE e.id = ?1)
