-- PostgreSQL's own limit for async receive: one receipt a commit, nothing else.
-- The runner puts the payload into it.
\set n random(1, 9000000000000)
INSERT INTO webhook_inbox (provider, endpoint, event_id, event_type, payload)
VALUES ('stripe', 'billing', 'evt_' || lpad(:n::text, 24, '1'), 'invoice.paid', '@body@')
ON CONFLICT (provider, endpoint, event_id) DO NOTHING RETURNING event_id;
