-- Roles with the least rights, for who wants them: run it as the owner of the schema, after
-- `ichido migrate`, and grant the roles to the users that the processes log in as. Functions run
-- with their caller's rights, so what a role cannot do by hand it cannot do through them either.

-- Receives, and runs sync handlers: it adds, and undoes only its own mark when it keeps an event.
CREATE ROLE ichido_receive NOLOGIN;
GRANT USAGE ON SCHEMA ichido TO ichido_receive;
GRANT USAGE ON SEQUENCE ichido.lease, ichido.order_seq TO ichido_receive;
GRANT SELECT ON ichido.migration, ichido.migration_function, ichido.route TO ichido_receive;
GRANT SELECT, INSERT, UPDATE ON ichido.endpoint, ichido.signed_digest TO ichido_receive;
GRANT SELECT, INSERT ON ichido.event, ichido.delivery, ichido.conflict, ichido.flag,
  ichido.outbox, ichido.dispatch TO ichido_receive;
GRANT INSERT ON ichido.work, ichido.review, ichido.attempt TO ichido_receive;
-- Order by key looks whether another of the key is in line.
GRANT SELECT ON ichido.work, ichido.review TO ichido_receive;
GRANT SELECT, INSERT, DELETE ON ichido.done TO ichido_receive;

-- Claims and processes: what a receiver may, and changes of state.
CREATE ROLE ichido_work NOLOGIN;
GRANT ichido_receive TO ichido_work;
GRANT SELECT, UPDATE, DELETE ON ichido.work TO ichido_work;

-- Sends messages.
CREATE ROLE ichido_dispatch NOLOGIN;
GRANT USAGE ON SCHEMA ichido TO ichido_dispatch;
GRANT USAGE ON SEQUENCE ichido.lease TO ichido_dispatch;
GRANT SELECT ON ichido.migration, ichido.migration_function, ichido.outbox TO ichido_dispatch;
GRANT SELECT, UPDATE, DELETE ON ichido.dispatch TO ichido_dispatch;
GRANT SELECT, INSERT ON ichido.sent TO ichido_dispatch;

-- Looks at everything and changes nothing: dashboards, stats, audit.
CREATE ROLE ichido_read NOLOGIN;
GRANT USAGE ON SCHEMA ichido TO ichido_read;
GRANT SELECT ON ALL TABLES IN SCHEMA ichido TO ichido_read;
