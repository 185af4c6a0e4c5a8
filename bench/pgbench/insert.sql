\set id random(1, 9000000000)
INSERT INTO webhook_inbox (provider, endpoint, event_id, event_type, payload) VALUES ('stripe', 'billing', 'evt_' || :id, 'invoice.paid', '{payload}') ON CONFLICT DO NOTHING RETURNING event_id;
