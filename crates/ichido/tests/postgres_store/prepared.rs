//! Statements are prepared where a line leads straight to the server, and nowhere else; what the
//! server has forgotten is prepared anew.

use ichido::{
    Inbox, Outcome, SqlHandler, Store,
    postgres::{Config, Postgres, Schema, migrate},
};
use ichido_testkit::{Cluster, PgBouncer};

use crate::support::{Billing, Db, deliver, open};

/// Books how many statements its own connection has prepared.
fn count_prepared(endpoint: Billing) -> Billing {
    let sql = "INSERT INTO ledger (event_id, amount) \
               SELECT :event_id, count(*) FROM pg_prepared_statements";
    endpoint.on_sql("*", SqlHandler::parse("count", sql).unwrap())
}

async fn processed(inbox: &Inbox<Postgres>, id: &str) {
    let taken = deliver(inbox, id).await.unwrap();
    assert_eq!(taken.outcome, Outcome::Processed, "{id}: {:?}", taken.error);
}

#[tokio::test]
async fn statements_are_prepared_on_a_line_that_leads_straight_to_the_server() {
    let db = Db::new().await;
    let inbox = db.inbox(count_prepared);
    processed(&inbox, "evt_1").await;
    assert_eq!(db.count("ledger WHERE amount = 2").await, 1);
}

#[tokio::test]
async fn nothing_is_prepared_through_a_pooler() {
    let db = Db::new().await;
    let bouncer = PgBouncer::start(db.database.url()).await.unwrap();
    let name = db.database.url().rsplit('/').next().unwrap();
    let inbox = open(&bouncer.url(name), count_prepared);
    // Parses the handlers and leaves none of them behind.
    inbox.store().check().await.unwrap();
    for n in 0..4 {
        processed(&inbox, &format!("evt_{n}")).await;
    }
    assert_eq!(db.count("ledger WHERE amount = 0").await, 4);
}

#[tokio::test]
async fn a_line_with_tls_is_seen_to_lead_straight_to_the_server() {
    let (cluster, root) = Cluster::start_with_tls().await.unwrap();
    let url = format!(
        "postgres://postgres@localhost:{}/postgres?sslmode=verify-full&sslrootcert={}",
        cluster.port(),
        root.display()
    );
    let mut client = ichido::postgres::connect(&Config::new(&url).unwrap()).await.unwrap();
    migrate::migrate(&mut client, &Schema::default()).await.unwrap();
    client.batch_execute("CREATE TABLE ledger (event_id text, amount int)").await.unwrap();
    processed(&open(&url, count_prepared), "evt_1").await;
    let row = client.query_one("SELECT amount FROM ledger", &[]).await.unwrap();
    assert_eq!(row.get::<_, i32>(0), 2);
}

#[tokio::test]
async fn a_table_that_changes_its_shape_does_not_fail_the_handlers_that_read_it() {
    let db = Db::new().await;
    let sql = "INSERT INTO ledger (event_id) VALUES (:event_id) RETURNING *";
    let inbox = db.inbox(|e| e.on_sql("*", SqlHandler::parse("all", sql).unwrap()));
    processed(&inbox, "evt_1").await;
    db.client.batch_execute("ALTER TABLE ledger ADD COLUMN note text").await.unwrap();
    processed(&inbox, "evt_2").await;
    processed(&inbox, "evt_3").await;
    assert_eq!(db.count("ledger").await, 3);
}

#[tokio::test]
async fn a_server_that_forgot_what_was_prepared_is_told_again() {
    let db = Db::new().await;
    let forget = "CREATE FUNCTION forget() RETURNS void LANGUAGE plpgsql AS \
                  $$ BEGIN EXECUTE 'DEALLOCATE ALL'; END $$";
    db.client.batch_execute(forget).await.unwrap();
    let sql = "INSERT INTO ledger (event_id) VALUES (:event_id); SELECT forget()";
    let inbox = db.inbox(|e| e.on_sql("*", SqlHandler::parse("forget", sql).unwrap()));
    for n in 0..3 {
        processed(&inbox, &format!("evt_{n}")).await;
    }
    assert_eq!(db.count("ledger").await, 3);
}
