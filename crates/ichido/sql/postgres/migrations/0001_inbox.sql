-- The tables of the inbox. What is written once is kept apart from what changes: a body that
-- rode along in every change of state would cost up to twice the WAL. No foreign keys and no
-- triggers between events: partitions are dropped cheaply, and receive stays cheap.

-- A UUIDv7. Its default position is the end of every index on it.
CREATE FUNCTION ichido.uuid7() RETURNS uuid
LANGUAGE sql VOLATILE PARALLEL SAFE
AS $$
  SELECT encode(
    set_bit(
      set_bit(
        overlay(
          uuid_send(gen_random_uuid())
          PLACING substring(int8send(floor(
            extract(epoch FROM clock_timestamp()) * 1000)::bigint), 3, 6)
          FROM 1 FOR 6),
        52, 1),
      53, 1),
    'hex')::uuid
$$;

-- Configured places that receive. The name is permanent: it is half of every event key.
CREATE TABLE ichido.endpoint (
  id           smallint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name         text COLLATE "C" NOT NULL UNIQUE,
  provider     text NOT NULL,
  -- Starts of a handler before an event needs review.
  max_attempts smallint NOT NULL DEFAULT 10 CHECK (max_attempts > 0),
  -- False where the provider's signature does not cover the event id.
  id_signed    boolean NOT NULL DEFAULT true,
  settings     jsonb NOT NULL DEFAULT '{}',
  -- How many came so far; counted in lumps, so that a duplicate itself writes nothing.
  duplicates   bigint NOT NULL DEFAULT 0,
  created_at   timestamptz NOT NULL DEFAULT now()
);

-- Identity: the judge of duplicates, and the memory that outlives the payload. Unpartitioned,
-- since a unique key on a table partitioned by time would let a duplicate pass the next day.
CREATE TABLE ichido.event (
  received_at timestamptz NOT NULL,
  occurred_at timestamptz,
  body_from   int NOT NULL,              -- the event's bytes within the delivery: [from, to)
  body_to     int NOT NULL,
  endpoint_id smallint NOT NULL,
  signed      boolean NOT NULL,          -- signature verified; else vouched for by us
  id          uuid NOT NULL,             -- the receipt id: a UUIDv7 that ends in the lane byte
  delivery_id uuid NOT NULL,
  event_id    text COLLATE "C" NOT NULL, -- twice as fast to compare as in a locale
  event_type  text COLLATE "C" NOT NULL,
  digest      bytea NOT NULL,            -- SHA-256 of the event's own bytes
  order_key   text COLLATE "C",
  PRIMARY KEY (endpoint_id, event_id)
);
CREATE UNIQUE INDEX event_id ON ichido.event (id);
CREATE INDEX event_received ON ichido.event USING brin (received_at) WITH (pages_per_range = 32);

-- Evidence: one row a request, however many events it holds. Partitioned by the time at which
-- the database took it. The one partition to begin with covers all time and needs no
-- housekeeping; to split it later, bound it by a validated CHECK, detach it and attach it again
-- with that bound, which scans nothing. There is no DEFAULT partition: it would have to be
-- scanned at each new partition, and `IS NULL` on the key would not pass it by.
CREATE TABLE ichido.delivery (
  received_at timestamptz NOT NULL,
  endpoint_id smallint NOT NULL,
  secret      smallint,                  -- which of the endpoint's secrets verified it
  id          uuid NOT NULL,
  method      text NOT NULL,
  url         text NOT NULL,
  headers     bytea NOT NULL,            -- in the order in which they came
  body        bytea NOT NULL,            -- exactly the bytes that were verified
  PRIMARY KEY (id, received_at)
) PARTITION BY RANGE (received_at);
CREATE TABLE ichido.delivery_all PARTITION OF ichido.delivery
  FOR VALUES FROM (MINVALUE) TO (MAXVALUE);

-- Body and headers are compressed where they stand while they fit a page; out of line they
-- would cost more rows and another index. The url too: what is not MAIN is moved out first.
-- lz4 takes a fifth of pglz's time, and not every server was built with it.
DO $$
DECLARE
  v_lz4 boolean := EXISTS (SELECT 1 FROM pg_settings WHERE name = 'default_toast_compression'
                              AND 'lz4' = ANY (enumvals));
  v_table text;
  v_column text;
BEGIN
  FOREACH v_table IN ARRAY ARRAY['ichido.delivery', 'ichido.delivery_all'] LOOP
    FOREACH v_column IN ARRAY ARRAY['body', 'headers', 'url'] LOOP
      EXECUTE format('ALTER TABLE %s ALTER COLUMN %I SET STORAGE MAIN', v_table, v_column);
      IF v_lz4 THEN
        EXECUTE format('ALTER TABLE %s ALTER COLUMN %I SET COMPRESSION lz4', v_table, v_column);
      END IF;
    END LOOP;
  END LOOP;
END
$$;

-- The number of a lease is the fence, so it is never used twice.
CREATE SEQUENCE ichido.lease AS bigint CACHE 1 NO CYCLE;

-- What still has to be done. A row exists only while work remains, so the table stays the size
-- of the backlog. Two indexes only: a third one would be paid by every change of state.
CREATE TABLE ichido.work (
  received_at timestamptz NOT NULL,      -- as in event: finds the delivery's partition
  -- Not before this time: when it is due, or the end of its lease. NULL: parked behind another
  -- event of its order key.
  next_at     timestamptz,
  claimed_at  timestamptz,
  lease       bigint NOT NULL DEFAULT 0, -- 0: nobody holds it
  order_seq   bigint,                    -- its place among the events of its order key
  endpoint_id smallint NOT NULL,
  attempts    smallint NOT NULL DEFAULT 0,
  run         smallint NOT NULL DEFAULT 0,
  id          uuid NOT NULL PRIMARY KEY,
  queue       text COLLATE "C" NOT NULL,
  lane        text COLLATE "C" NOT NULL CHECK (lane IN ('fresh', 'retry', 'backfill')),
  order_key   text COLLATE "C",
  last_error  text
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 500,
        autovacuum_vacuum_cost_delay = 0);
CREATE INDEX work_due ON ichido.work (queue, lane, next_at, id);

-- The timeline: failed starts of a handler, those of a lease that ran out included.
CREATE TABLE ichido.attempt (
  id         uuid NOT NULL,
  lease      bigint NOT NULL,
  started_at timestamptz NOT NULL,
  ended_at   timestamptz NOT NULL,
  run        smallint NOT NULL,
  attempt    smallint NOT NULL,          -- 0: in the receive transaction, where none is counted
  error      text NOT NULL,
  PRIMARY KEY (id, lease)
);

-- What came of each run. Insert-only; partitioned as `delivery` is, and for the view's sake:
-- `processed_at IS NULL` prunes every partition, so a question about open events reads none.
CREATE TABLE ichido.done (
  processed_at timestamptz NOT NULL,
  received_at  timestamptz NOT NULL,
  endpoint_id  smallint NOT NULL,
  attempts     smallint NOT NULL,
  run          smallint NOT NULL,
  id           uuid NOT NULL,
  outcome      text COLLATE "C" NOT NULL CHECK (outcome IN ('processed', 'ignored', 'discarded')),
  queue        text COLLATE "C",         -- whose it was; NULL: the endpoint's own handlers
  note         text,                     -- why it was discarded
  PRIMARY KEY (id, run, processed_at)
) PARTITION BY RANGE (processed_at);
CREATE TABLE ichido.done_all PARTITION OF ichido.done FOR VALUES FROM (MINVALUE) TO (MAXVALUE);

-- Who had an event run again, and why. Run n hides the runs below it from the view.
CREATE TABLE ichido.replay (
  id          uuid NOT NULL,
  run         smallint NOT NULL,
  replayed_at timestamptz NOT NULL,
  replayed_by text NOT NULL,
  reason      text NOT NULL,
  PRIMARY KEY (id, run)
);

-- Waits for a human: requeue, or discard with a reason.
CREATE TABLE ichido.review (
  since       timestamptz NOT NULL,
  received_at timestamptz NOT NULL,
  endpoint_id smallint NOT NULL,
  attempts    smallint NOT NULL,
  run         smallint NOT NULL,
  id          uuid NOT NULL PRIMARY KEY,
  queue       text COLLATE "C" NOT NULL,
  order_key   text COLLATE "C",
  order_seq   bigint,
  reason      text NOT NULL
);

-- A handler's note for a human on an event that was processed.
CREATE TABLE ichido.flag (
  id        uuid PRIMARY KEY,
  receipt   uuid NOT NULL,
  raised_at timestamptz NOT NULL,
  closed_at timestamptz,
  reason    text NOT NULL,
  note      text
);
CREATE INDEX flag_open ON ichido.flag (raised_at) WHERE closed_at IS NULL;
CREATE INDEX flag_receipt ON ichido.flag (receipt);

-- Same event key, other content, both signed. The first one wins; both digests are kept.
CREATE TABLE ichido.conflict (
  receipt      uuid NOT NULL,
  digest       bytea NOT NULL,
  first_digest bytea NOT NULL,
  seen_at      timestamptz NOT NULL,
  secret       smallint,
  method       text NOT NULL,
  url          text NOT NULL,
  headers      bytea NOT NULL,
  body         bytea NOT NULL,
  PRIMARY KEY (receipt, digest)
);

-- Where the signature does not cover the event id, a replayed body under a fresh id is marked
-- here. Endpoints with signed ids have no rows.
CREATE TABLE ichido.signed_digest (
  endpoint_id smallint NOT NULL,
  digest      bytea NOT NULL,
  id          uuid NOT NULL,             -- the receipt that brought it first
  received_at timestamptz NOT NULL,
  repeats     int NOT NULL DEFAULT 0,
  last_id     uuid,                      -- the latest other receipt with the same bytes
  last_at     timestamptz,
  PRIMARY KEY (endpoint_id, digest)
);
CREATE INDEX signed_digest_repeated ON ichido.signed_digest (last_at) WHERE repeats > 0;

-- Messages to the outside, written in the handler's transaction. The first four columns that
-- have no default are enough.
CREATE TABLE ichido.outbox (
  id             uuid NOT NULL DEFAULT ichido.uuid7() PRIMARY KEY,
  aggregate_type text NOT NULL,
  aggregate_id   text NOT NULL,
  event_type     text NOT NULL,
  payload        jsonb NOT NULL,
  created_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
  key            text,                   -- the idempotency key of the far side; else the id
  headers        jsonb,
  destination    text,                   -- NULL: where the routes lead
  not_before     timestamptz
);

-- Which messages go where. '*' is any, 'invoice.*' a prefix, all else exact.
CREATE TABLE ichido.route (
  aggregate_type text COLLATE "C" NOT NULL DEFAULT '*',
  event_type     text COLLATE "C" NOT NULL DEFAULT '*',
  destination    text COLLATE "C" NOT NULL CHECK (destination <> ''),
  PRIMARY KEY (destination, aggregate_type, event_type)
);

-- What still has to leave: a row exists only until it was sent. Filled by a statement trigger
-- on outbox. next_at NULL: waits for a human; destination '': no route led anywhere.
CREATE TABLE ichido.dispatch (
  next_at     timestamptz,
  claimed_at  timestamptz,
  lease       bigint NOT NULL DEFAULT 0,
  attempts    smallint NOT NULL DEFAULT 0,
  message     uuid NOT NULL,
  destination text COLLATE "C" NOT NULL,
  last_error  text,
  PRIMARY KEY (message, destination)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 500,
        autovacuum_vacuum_cost_delay = 0);
CREATE INDEX dispatch_due ON ichido.dispatch (destination, next_at, message);

-- What left, and when.
CREATE TABLE ichido.sent (
  message     uuid NOT NULL,
  sent_at     timestamptz NOT NULL,
  attempts    smallint NOT NULL,
  destination text COLLATE "C" NOT NULL,
  PRIMARY KEY (message, destination)
);
