//! A database in trouble, a `search_path` with strangers on it, floods of forgeries, and settings
//! that would lose or double events.

use std::{
    io::{Read, Write},
    net::TcpStream,
    thread,
    time::Duration,
};

use ichido_testkit::{Cluster, Fault, Proxy, eventually};
use ichido_verify::Timestamp;

use crate::{
    common::{AWAY, SECRET, Server, Site},
    support::{World, fresh, fresh_after, outcome, post, request, signed, stripe},
};

const EVENT: &[u8] = br#"{"id":"evt_1","type":"a.b"}"#;

/// Ends the other sessions of this database, so that new ones see its new settings.
const RECONNECT: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
     WHERE datname = current_database() AND pid <> pg_backend_pid()";

/// Sync and async at once: neither is acknowledged nor blamed on the sender, and nothing is kept.
fn is_503(world: &World, trouble: &str) {
    thread::scope(|scope| {
        for endpoint in ["billing", "later"] {
            scope.spawn(move || {
                let answer = world.post(endpoint, EVENT);
                assert_eq!(answer.status, 503, "{trouble}, {endpoint}: {answer:?}");
                assert!(answer.has("retry-after: 5"), "{trouble}, {endpoint}: {answer:?}");
            });
        }
    });
}

/// The same deliveries are taken, once the trouble is over.
async fn is_taken(world: &World) {
    assert_eq!(world.count("{i}event").await, 0, "something of the trouble was kept");
    for (endpoint, must) in [("billing", "processed"), ("later", "accepted")] {
        let taken = eventually("taken", Duration::from_secs(20), async || {
            let answer = world.post(endpoint, EVENT);
            (answer.status != 503).then_some(answer)
        });
        assert_eq!(outcome(&taken.await.expect("in time")), must);
    }
    assert_eq!(world.count("{i}event").await, 2);
    world.audit();
}

/// A world whose server reaches its database by a proxy, which begins with this fault.
async fn behind_a_proxy(fault: Fault) -> (World, Proxy) {
    let database = fresh().await;
    let (before, rest) = database.url().rsplit_once(':').expect("a port");
    let (port, name) = rest.split_once('/').expect("a name");
    let proxy = Proxy::start(port.parse().expect("a number")).await.expect("a proxy");
    proxy.set(fault);
    let url = format!("{before}:{}/{name}", proxy.port());
    (World::through(&url, database), proxy)
}

#[tokio::test(flavor = "multi_thread")]
async fn row_95_a_database_that_is_away_is_a_503_until_it_is_back() {
    let (world, proxy) = behind_a_proxy(Fault::Down).await;
    is_503(&world, "away from the start");
    proxy.set(Fault::None);
    is_taken(&world).await;
    proxy.set(Fault::Down);
    is_503(&world, "away later");
}

#[tokio::test(flavor = "multi_thread")]
async fn row_95_a_database_that_only_reads_is_a_503() {
    let world = World::postgres("").await;
    let url = world.database.as_ref().expect("there").url();
    let (_, name) = url.rsplit_once('/').expect("a name");
    world.sql(&format!("ALTER DATABASE {name} SET default_transaction_read_only = on")).await;
    world.sql(RECONNECT).await;
    is_503(&world, "read-only");
    let reset = format!("ALTER DATABASE {name} RESET default_transaction_read_only");
    world.sql(&format!("BEGIN READ WRITE; {reset}; COMMIT; {RECONNECT}")).await;
    is_taken(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn row_95_a_full_disk_is_a_503() {
    let world = World::postgres("").await;
    world
        .sql(
            "CREATE FUNCTION no_space() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
             RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END $$; \
             CREATE TRIGGER no_space BEFORE INSERT ON ichido.event EXECUTE FUNCTION no_space()",
        )
        .await;
    is_503(&world, "full");
    world.sql("DROP TRIGGER no_space ON ichido.event").await;
    is_taken(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn row_95_a_lock_that_does_not_come_is_a_503() {
    let world = World::postgres("").await;
    let holder = world.database.as_ref().expect("there").client().await.expect("connects");
    let lock = "BEGIN; LOCK TABLE ichido.event IN ACCESS EXCLUSIVE MODE";
    holder.batch_execute(lock).await.expect("locked");
    is_503(&world, "locked");
    holder.batch_execute("ROLLBACK").await.expect("unlocked");
    is_taken(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn row_95_too_many_connections_are_a_503() {
    let database = fresh().await;
    let client = database.client().await.expect("connects");
    let role = format!("t_limited_{}", std::process::id());
    let sql = |sql: &str| sql.replace("ROLE_NAME", &role);
    let made = "DROP ROLE IF EXISTS ROLE_NAME; CREATE ROLE ROLE_NAME LOGIN CONNECTION LIMIT 0; \
                GRANT postgres TO ROLE_NAME";
    client.batch_execute(&sql(made)).await.expect("a role");
    let url = database.url().replacen("postgres@", &format!("{role}@"), 1);
    let world = World::through(&url, database);
    is_503(&world, "too many connections");
    client.batch_execute(&sql("ALTER ROLE ROLE_NAME CONNECTION LIMIT -1")).await.expect("altered");
    is_taken(&world).await;
    client.batch_execute(&sql("DROP ROLE ROLE_NAME")).await.expect("dropped");
}

/// Functions and operators that fit our calls better than PostgreSQL's own, as anyone may make
/// who may create in `public`.
const SHADOWS: &str = r"
CREATE FUNCTION public.refuse() RETURNS boolean LANGUAGE plpgsql AS
  $$ BEGIN RAISE EXCEPTION 'a function of somebody else was called'; END $$;
DO $$
DECLARE of text;
BEGIN
  FOREACH of IN ARRAY ARRAY['uuid', 'text', 'bytea', 'boolean', 'smallint', 'integer'] LOOP
    EXECUTE format('CREATE FUNCTION public.cardinality(%s[]) RETURNS integer LANGUAGE sql AS
      ''SELECT 1 / (NOT public.refuse())::int''', of);
    EXECUTE format('CREATE FUNCTION public.unnest(%s[]) RETURNS SETOF %s LANGUAGE sql AS
      ''SELECT $1[1] WHERE public.refuse()''', of, of);
    EXECUTE format('CREATE FUNCTION public.array_position(%s[], %s) RETURNS integer LANGUAGE sql
      AS ''SELECT 1 / (NOT public.refuse())::int''', of, of);
  END LOOP;
END $$;
CREATE FUNCTION public.set_bit(bytea, integer, integer) RETURNS bytea LANGUAGE sql AS
  'SELECT $1 WHERE public.refuse()';
CREATE FUNCTION public.times(numeric, integer) RETURNS numeric LANGUAGE sql AS
  'SELECT $1 WHERE public.refuse()';
CREATE OPERATOR public.* (LEFTARG = numeric, RIGHTARG = integer, FUNCTION = public.times);
";

#[tokio::test(flavor = "multi_thread")]
async fn row_97_functions_of_another_role_in_public_are_never_called() {
    let database = fresh_after(SHADOWS).await;
    let url = database.url().to_owned();
    let world = World::through(&url, database);
    let other = br#"{"id":"evt_1","type":"a.b","x":1}"#;
    for (endpoint, first) in [("billing", "processed"), ("later", "accepted")] {
        for (body, must) in [(EVENT, first), (EVENT, "duplicate"), (&other[..], "duplicate")] {
            assert_eq!(outcome(&world.post(endpoint, body)), must, "{endpoint}");
        }
    }
    assert_eq!(outcome(&world.post("cards", r#"{"id":"evt_2","x":"\u0000"}"#)), "accepted");
    let unsigned = signed("github", SECRET, "1-2", EVENT, Timestamp::now());
    assert_eq!(outcome(&post(&world.server, "github", &unsigned, EVENT)), "processed");
    world.sql("INSERT INTO ichido.outbox VALUES (DEFAULT, 'a', 'b', 'c', '{}')").await;
    world.sql("SELECT * FROM ichido.claim('{later}', '{fresh}', 1, '1 minute')").await;
    world.sql("SELECT * FROM ichido.webhook_inbox; SELECT * FROM ichido.audit()").await;
    assert_eq!(world.stats()["conflicts"], 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn row_97_every_function_of_ours_has_a_search_path_of_its_own() {
    let database = fresh().await;
    let client = database.client().await.expect("connects");
    let sql = "SELECT p.oid::regprocedure::text FROM pg_proc p \
               WHERE p.pronamespace = 'ichido'::regnamespace \
                 AND NOT coalesce(p.proconfig, '{}') @> '{\"search_path=pg_catalog, pg_temp\"}'";
    let open = client.query(sql, &[]).await.expect("reads");
    let open: Vec<String> = open.iter().map(|row| row.get(0)).collect();
    assert_eq!(open, [""; 0]);
}

/// Sends a request so many times on one connection; every answer has to be a 400.
fn forge(server: &Server, request: &[u8], times: usize) {
    let mut stream = TcpStream::connect(server.address).expect("connects");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("set");
    let end = r#"{"error":"rejected"}"#;
    for _ in 0..times {
        stream.write_all(request).expect("sent");
        let mut answer = Vec::new();
        while !answer.ends_with(end.as_bytes()) {
            let mut some = [0; 1024];
            let read = stream.read(&mut some).expect("an answer");
            answer.extend(&some[..read]);
            assert!(read > 0, "closed after {:?}", String::from_utf8_lossy(&answer));
        }
        assert!(answer.starts_with(b"HTTP/1.1 400 "), "{}", String::from_utf8_lossy(&answer));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn row_99_forged_deliveries_make_no_statement_and_block_nothing() {
    const CONNECTIONS: usize = 4;
    let all = std::env::var_os("ICHIDO_ALL").is_some();
    let each = if all { 50_000 } else { 2_000 } / CONNECTIONS;
    let (world, proxy) = behind_a_proxy(Fault::None).await;
    // The first one opens what it needs, and the probe at the start is over.
    assert_eq!(outcome(&world.post("billing", EVENT.to_ascii_uppercase())), "accepted");
    assert_eq!(world.server.send("GET", "/readyz", &[], "").status, 200);
    let before = proxy.sent();
    assert!(before > 0, "the server has sent nothing");
    let headers = stripe(EVENT, "whsec_forged", Timestamp::now());
    let forged = request("billing", &headers, EVENT);
    thread::scope(|scope| {
        for _ in 0..CONNECTIONS {
            scope.spawn(|| forge(&world.server, &forged, each));
        }
    });
    assert_eq!(proxy.sent(), before, "a forgery sent something to the database");
    let count = each * CONNECTIONS;
    let line =
        format!("ichido_rejected_total{{endpoint=\"billing\",reason=\"wrong_signature\"}} {count}");
    assert!(world.metrics().contains(&line), "{}", world.metrics());
    assert_eq!(world.count("{i}event").await, 1);
    assert_eq!(outcome(&world.post("billing", EVENT)), "processed");
    assert!(proxy.sent() > before, "a real one sends something");
}

fn checked(endpoints: &str) -> (Option<i32>, String) {
    let config = format!("[database]\nurl = \"{AWAY}\"\n{endpoints}");
    let site = Site::new(&config);
    let checked = site.run(&["config", "check"]);
    if checked.0 != Some(0) {
        let (code, text) = site.run(&["serve", "--listen", "127.0.0.1:0"]);
        assert_eq!(code, Some(1), "{text}");
    }
    checked
}

#[test]
fn row_101_settings_that_would_lose_or_double_events_are_refused_at_start() {
    let good = "[endpoint.billing]\nprovider = \"stripe\"\nsecrets = [\"env:SECRET\"]\n";
    assert_eq!(checked(good).0, Some(0));
    for (config, fix) in [
        (format!("{good}{good}"), "ichido.toml:6: duplicate key"),
        (good.replace("billing", "Billing"), "a name is a-z"),
        (format!("{good}tolerance = \"0s\""), "tolerance must be at least one second"),
        (format!("{good}tolerance = \"87600h\""), "tolerance must be at most 24 h"),
        (format!("{good}tolerance = \"86401s\""), "tolerance must be at most 24 h"),
        (format!("{good}keep_identity = \"95h\""), "keep_identity (95h) must be at least 4d"),
        (format!("{good}max_attempts = 0"), "max_attempts is 0"),
    ] {
        let (code, text) = checked(&config);
        assert_eq!(code, Some(1), "{config}\n{text}");
        assert!(text.contains(fix), "{config}\n{text}");
    }
    assert_eq!(checked(&format!("{good}tolerance = \"24h\"")).0, Some(0));
}

/// A server that starts, for the database may be mended, and takes nothing until it is.
fn refuses(world: &World, fix: &str) {
    let ready = world.server.send("GET", "/readyz", &[], "");
    assert!(ready.status == 503 && ready.body.contains(fix), "{ready:?}");
    is_503(world, fix);
    assert!(world.server.wait_for("not ready").contains(fix));
}

#[tokio::test(flavor = "multi_thread")]
async fn row_101_a_database_without_synchronous_commit_takes_nothing() {
    let database = fresh().await;
    let client = database.client().await.expect("connects");
    let (_, name) = database.url().rsplit_once('/').expect("a name");
    let off = format!("ALTER DATABASE {name} SET synchronous_commit = off");
    client.batch_execute(&off).await.expect("altered");
    let url = database.url().to_owned();
    let world = World::through(&url, database);
    refuses(&world, "set it on for this role and database");
    world.sql(&off.replace("= off", "= on")).await;
    is_taken(&world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn row_101_a_database_without_fsync_takes_nothing() {
    let cluster = Cluster::start(&[("fsync", "off")]).await.expect("a server");
    let config = format!("[database]\nurl = \"{}\"", cluster.url("postgres"));
    let endpoint = "[endpoint.billing]\nprovider = \"stripe\"\nsecrets = [\"env:SECRET\"]";
    let site = Site::new(&format!("{config}\n{endpoint}"));
    let (code, text) = site.run(&["migrate"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("set fsync = on"), "{text}");
    let server = site.serve();
    let ready = server.send("GET", "/readyz", &[], "");
    assert!(ready.status == 503 && ready.body.contains("set fsync = on"), "{ready:?}");
    let headers = stripe(EVENT, SECRET, Timestamp::now());
    assert_eq!(post(&server, "billing", &headers, EVENT).status, 503);
}
