-- The tables of the inbox in one SQLite file, beside the user's own. Same columns and meaning as
-- on PostgreSQL. Times are UTC text, which sorts; ids are 16 bytes. What is written once is kept
-- apart from what changes.

CREATE TABLE ichido_endpoint (
  id           INTEGER PRIMARY KEY,
  name         TEXT NOT NULL UNIQUE,
  provider     TEXT NOT NULL,
  max_attempts INTEGER NOT NULL DEFAULT 10 CHECK (max_attempts > 0),
  id_signed    INTEGER NOT NULL DEFAULT 1,
  settings     TEXT NOT NULL DEFAULT '{}',
  duplicates   INTEGER NOT NULL DEFAULT 0,
  created_at   TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
) STRICT;

-- Identity: the judge of duplicates, and the memory that outlives the payload.
CREATE TABLE ichido_event (
  endpoint_id INTEGER NOT NULL,
  event_id    TEXT NOT NULL,
  id          BLOB NOT NULL UNIQUE,
  delivery_id BLOB NOT NULL,
  body_from   INTEGER NOT NULL,
  body_to     INTEGER NOT NULL,
  event_type  TEXT NOT NULL,
  digest      BLOB NOT NULL,
  signed      INTEGER NOT NULL,
  occurred_at TEXT,
  order_key   TEXT,
  received_at TEXT NOT NULL,
  PRIMARY KEY (endpoint_id, event_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX ichido_event_received ON ichido_event (received_at);

-- Evidence: one row a request, however many events it holds.
CREATE TABLE ichido_delivery (
  id          BLOB PRIMARY KEY,
  endpoint_id INTEGER NOT NULL,
  received_at TEXT NOT NULL,
  method      TEXT NOT NULL,
  url         TEXT NOT NULL,
  headers     BLOB NOT NULL,
  body        BLOB NOT NULL,
  secret      INTEGER
) STRICT, WITHOUT ROWID;

-- What still has to be done. A row exists only while work remains.
CREATE TABLE ichido_work (
  id          BLOB PRIMARY KEY,
  endpoint_id INTEGER NOT NULL,
  queue       TEXT NOT NULL,
  lane        TEXT NOT NULL CHECK (lane IN ('fresh', 'retry', 'backfill')),
  next_at     TEXT,
  claimed_at  TEXT,
  lease       INTEGER NOT NULL DEFAULT 0,
  attempts    INTEGER NOT NULL DEFAULT 0,
  run         INTEGER NOT NULL DEFAULT 0,
  received_at TEXT NOT NULL,
  order_key   TEXT,
  order_seq   INTEGER,
  last_error  TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX ichido_work_due ON ichido_work (queue, lane, next_at, id);

-- The number of a lease is the fence, so it is never used twice.
CREATE TABLE ichido_lease (number INTEGER PRIMARY KEY AUTOINCREMENT) STRICT;

CREATE TABLE ichido_attempt (
  id         BLOB NOT NULL,
  lease      INTEGER NOT NULL,
  started_at TEXT NOT NULL,
  ended_at   TEXT NOT NULL,
  run        INTEGER NOT NULL,
  attempt    INTEGER NOT NULL,
  error      TEXT NOT NULL,
  PRIMARY KEY (id, lease)
) STRICT, WITHOUT ROWID;

CREATE TABLE ichido_done (
  id           BLOB NOT NULL,
  run          INTEGER NOT NULL,
  endpoint_id  INTEGER NOT NULL,
  outcome      TEXT NOT NULL CHECK (outcome IN ('processed', 'ignored', 'discarded')),
  attempts     INTEGER NOT NULL,
  processed_at TEXT NOT NULL,
  queue        TEXT,
  note         TEXT,
  PRIMARY KEY (id, run)
) STRICT, WITHOUT ROWID;

CREATE TABLE ichido_replay (
  id          BLOB NOT NULL,
  run         INTEGER NOT NULL,
  replayed_at TEXT NOT NULL,
  replayed_by TEXT NOT NULL,
  reason      TEXT NOT NULL,
  PRIMARY KEY (id, run)
) STRICT, WITHOUT ROWID;

CREATE TABLE ichido_review (
  id          BLOB PRIMARY KEY,
  endpoint_id INTEGER NOT NULL,
  queue       TEXT NOT NULL,
  attempts    INTEGER NOT NULL,
  run         INTEGER NOT NULL,
  since       TEXT NOT NULL,
  received_at TEXT NOT NULL,
  order_key   TEXT,
  order_seq   INTEGER,
  reason      TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- A handler's note for a human. A plain INSERT of the first three columns is enough.
CREATE TABLE ichido_flag (
  endpoint  TEXT NOT NULL,
  event_id  TEXT NOT NULL,
  reason    TEXT NOT NULL,
  id        INTEGER PRIMARY KEY,
  raised_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  closed_at TEXT,
  note      TEXT
) STRICT;
CREATE INDEX ichido_flag_open ON ichido_flag (raised_at) WHERE closed_at IS NULL;

CREATE TABLE ichido_conflict (
  receipt      BLOB NOT NULL,
  digest       BLOB NOT NULL,
  first_digest BLOB NOT NULL,
  seen_at      TEXT NOT NULL,
  method       TEXT NOT NULL,
  url          TEXT NOT NULL,
  headers      BLOB NOT NULL,
  body         BLOB NOT NULL,
  secret       INTEGER,
  PRIMARY KEY (receipt, digest)
) STRICT, WITHOUT ROWID;

CREATE TABLE ichido_signed_digest (
  endpoint_id INTEGER NOT NULL,
  digest      BLOB NOT NULL,
  id          BLOB NOT NULL,
  received_at TEXT NOT NULL,
  repeats     INTEGER NOT NULL DEFAULT 0,
  last_id     BLOB,
  last_at     TEXT,
  PRIMARY KEY (endpoint_id, digest)
) STRICT, WITHOUT ROWID;

-- Messages to the outside, written in the handler's transaction. The first four columns that
-- have no default are enough.
CREATE TABLE outbox (
  id             BLOB NOT NULL PRIMARY KEY DEFAULT (randomblob(16)),
  aggregate_type TEXT NOT NULL,
  aggregate_id   TEXT NOT NULL,
  event_type     TEXT NOT NULL,
  payload        TEXT NOT NULL CHECK (json_valid(payload)),
  created_at     TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  key            TEXT,
  headers        TEXT,
  destination    TEXT,
  not_before     TEXT
) STRICT;

CREATE TABLE ichido_route (
  aggregate_type TEXT NOT NULL DEFAULT '*',
  event_type     TEXT NOT NULL DEFAULT '*',
  destination    TEXT NOT NULL CHECK (destination <> ''),
  PRIMARY KEY (destination, aggregate_type, event_type)
) STRICT;

-- What still has to leave. next_at NULL: waits for a human; destination '': no route.
CREATE TABLE ichido_dispatch (
  message     BLOB NOT NULL,
  destination TEXT NOT NULL,
  next_at     TEXT,
  claimed_at  TEXT,
  lease       INTEGER NOT NULL DEFAULT 0,
  attempts    INTEGER NOT NULL DEFAULT 0,
  last_error  TEXT,
  PRIMARY KEY (message, destination)
) STRICT, WITHOUT ROWID;
CREATE INDEX ichido_dispatch_due ON ichido_dispatch (destination, next_at, message);

CREATE TABLE ichido_sent (
  message     BLOB NOT NULL,
  destination TEXT NOT NULL,
  sent_at     TEXT NOT NULL,
  attempts    INTEGER NOT NULL,
  PRIMARY KEY (message, destination)
) STRICT, WITHOUT ROWID;

-- Fans a message out to the destinations of its routes, in the transaction that wrote it. One
-- without a route is a finding, not silence.
CREATE TRIGGER ichido_outbox_route AFTER INSERT ON outbox BEGIN
  INSERT INTO ichido_dispatch (message, destination, next_at)
  SELECT new.id, new.destination, coalesce(new.not_before, new.created_at)
   WHERE new.destination IS NOT NULL;
  INSERT OR IGNORE INTO ichido_dispatch (message, destination, next_at)
  SELECT new.id, r.destination, coalesce(new.not_before, new.created_at)
    FROM ichido_route r
   WHERE new.destination IS NULL
     AND (r.aggregate_type = '*' OR r.aggregate_type = new.aggregate_type)
     AND (r.event_type IN ('*', new.event_type)
          OR (r.event_type LIKE '%.*'
              AND substr(new.event_type, 1, length(r.event_type) - 1)
                  = substr(r.event_type, 1, length(r.event_type) - 1)));
  INSERT INTO ichido_dispatch (message, destination)
  SELECT new.id, ''
   WHERE NOT EXISTS (SELECT 1 FROM ichido_dispatch d WHERE d.message = new.id);
END;

-- One row an event, with the columns that the pattern's users know. A union, so that a question
-- about open events reads only those: processed_at of `done` is never NULL.
CREATE VIEW webhook_inbox AS
WITH state AS (
  SELECT w.id, w.next_at AS available_at, w.attempts, w.last_error, NULL AS processed_at
    FROM ichido_work w
  UNION ALL
  SELECT r.id, NULL, r.attempts, r.reason, NULL FROM ichido_review r
  UNION ALL
  SELECT d.id, NULL, d.attempts, NULL, d.processed_at FROM ichido_done d
   WHERE d.run = (SELECT max(l.run) FROM ichido_done l WHERE l.id = d.id)
     AND NOT EXISTS (SELECT 1 FROM ichido_work w WHERE w.id = d.id)
     AND NOT EXISTS (SELECT 1 FROM ichido_review r WHERE r.id = d.id))
SELECT p.provider, p.name AS endpoint, e.event_id, e.event_type,
       CASE WHEN json_valid(CAST(substr(b.body, e.body_from + 1, e.body_to - e.body_from) AS TEXT))
            THEN CAST(substr(b.body, e.body_from + 1, e.body_to - e.body_from) AS TEXT)
       END AS payload,
       e.received_at, s.available_at, s.attempts, s.last_error, s.processed_at
  FROM state s
  JOIN ichido_event e ON e.id = s.id
  JOIN ichido_endpoint p ON p.id = e.endpoint_id
  LEFT JOIN ichido_delivery b ON b.id = e.delivery_id;
