//! A PostgreSQL whose receipts take as long as a test wants: as a disk that is slow.
//!
//! It must never hold a lock, which has a timeout of its own, and never leave a statement behind
//! that waits for ever.

use ichido_testkit::Database;
use tokio::runtime::Runtime;
use tokio_postgres::Client;

use crate::{
    common::Site,
    wire::{eventually, post},
};

const GATE: &str = "
    CREATE TABLE gate (open boolean);
    CREATE FUNCTION wait_at_the_gate() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        WHILE NOT EXISTS (SELECT FROM public.gate)
            AND clock_timestamp() < now() + interval '30 s' LOOP
            PERFORM pg_sleep(0.01);
        END LOOP;
        RETURN NEW;
    END $$;
    CREATE TRIGGER gate BEFORE INSERT ON ichido.event
        FOR EACH ROW EXECUTE FUNCTION wait_at_the_gate()";

/// A migrated database with a closed gate, and a site on it.
pub(crate) struct Gate {
    runtime: Runtime,
    client: Client,
    _database: Database,
    pub(crate) site: Site,
}

impl Gate {
    /// With the endpoints `billing` (Stripe; with a handler that does nothing for `handled.*`) and
    /// `chat` (Slack, which wants its answer within 3 s).
    pub(crate) fn closed(settings: &str) -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let database = runtime.block_on(Database::fresh("edge")).expect("a database");
        let site = Site::new(&format!(
            "{settings}\n[database]\nurl = \"{}\"\n[endpoint.billing]\nprovider = \"stripe\"\n\
             secrets = [\"env:SECRET\"]\n[endpoint.chat]\nprovider = \"slack\"\n\
             secrets = [\"env:SECRET\"]\n[endpoint.billing.handlers]\n\
             \"handled.*\" = \"handled.sql\"\n",
            database.url()
        ));
        let site = site.file("handled.sql", "SELECT 1;\n");
        let (code, output) = site.run(&["migrate"]);
        assert_eq!(code, Some(0), "{output}");
        let client = runtime.block_on(database.client()).expect("connects");
        runtime.block_on(client.batch_execute(GATE)).expect("the gate");
        Self { runtime, client, _database: database, site }
    }

    /// A delivery of an event that has a handler.
    pub(crate) fn handled(number: usize) -> Vec<u8> {
        let body = format!(r#"{{"id":"evt_{number}","type":"handled.now"}}"#);
        post(&body, "")
    }

    /// Lets everything through from now on.
    pub(crate) fn open(&self) {
        let opened = self.client.batch_execute("INSERT INTO gate VALUES (true)");
        self.runtime.block_on(opened).expect("opened");
    }

    fn number(&self, query: &str) -> i64 {
        let row = self.runtime.block_on(self.client.query_one(query, &[]));
        row.expect("a row").get(0)
    }

    /// Waits until so many statements stand at the gate.
    pub(crate) fn wait_for(&self, waiting: i64) {
        const WAITING: &str = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'
            AND datname = current_database()";
        eventually("receipts stand at the gate", || {
            (self.number(WAITING) >= waiting).then_some(())
        });
    }

    /// How many events are stored.
    pub(crate) fn stored(&self) -> i64 {
        self.number("SELECT count(*) FROM ichido.event")
    }

    /// Waits until exactly so many are stored.
    pub(crate) fn wait_for_stored(&self, count: i64) {
        eventually("the events are stored", || (self.stored() == count).then_some(()));
    }
}

/// Whoever still stands at the gate, their server gone, goes home.
impl Drop for Gate {
    fn drop(&mut self) {
        let opened = self.client.batch_execute("INSERT INTO gate VALUES (true)");
        let _ = self.runtime.block_on(opened);
    }
}
