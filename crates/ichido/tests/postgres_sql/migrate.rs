//! Migrations: planned, applied once, refused where they could harm.

use ichido::{
    ErrorKind,
    postgres::{Schema, migrate},
};

use crate::support::Db;

#[tokio::test]
async fn what_was_planned_is_done_and_nothing_is_left_to_do() {
    let mut db = Db::empty().await;
    let schema = Schema::default();
    let planned = migrate::plan(&db.client, &schema).await.unwrap();
    assert!(planned.iter().any(|step| step.name == "migration 1: inbox"));
    let done = migrate::migrate(&mut db.client, &schema).await.unwrap();
    assert_eq!(done, planned);
    assert_eq!(migrate::plan(&db.client, &schema).await.unwrap(), []);
    assert_eq!(db.text("SELECT ichido.version()").await, migrate::VERSION.to_string());
}

#[tokio::test]
async fn check_names_the_fix_until_the_schema_is_there() {
    let mut db = Db::empty().await;
    let schema = Schema::default();
    let error = migrate::check(&db.client, &schema).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Schema);
    assert!(error.to_string().contains("run `ichido migrate`"), "{error}");
    migrate::migrate(&mut db.client, &schema).await.unwrap();
    migrate::check(&db.client, &schema).await.unwrap();
}

#[tokio::test]
async fn two_processes_that_migrate_at_once_both_succeed() {
    let mut db = Db::empty().await;
    let mut other = db.connect().await;
    let schema = Schema::default();
    let (a, b) = tokio::join!(
        migrate::migrate(&mut db.client, &schema),
        migrate::migrate(&mut other, &schema)
    );
    let (a, b) = (a.unwrap().len(), b.unwrap().len());
    assert!(a.min(b) == 0 && a.max(b) > 0, "one does it all: {a} and {b}");
}

#[tokio::test]
async fn a_newer_schema_is_refused() {
    let mut db = Db::new().await;
    db.run("INSERT INTO ichido.migration (version, name, sha256) VALUES (999, 'later', '')").await;
    let schema = Schema::default();
    let error = migrate::migrate(&mut db.client, &schema).await.unwrap_err();
    assert!(error.to_string().contains("use a newer ichido"), "{error}");
    assert_eq!(migrate::check(&db.client, &schema).await.unwrap_err().kind(), ErrorKind::Schema);
}

#[tokio::test]
async fn a_migration_that_was_applied_with_another_text_is_refused() {
    let mut db = Db::new().await;
    db.run("UPDATE ichido.migration SET sha256 = 'other'").await;
    let error = migrate::migrate(&mut db.client, &Schema::default()).await.unwrap_err();
    assert!(error.to_string().contains("with another text"), "{error}");
}

#[tokio::test]
async fn only_a_function_whose_text_changed_is_applied_again() {
    let mut db = Db::new().await;
    db.run("UPDATE ichido.migration_function SET sha256 = 'other' WHERE name = 'sound'").await;
    let done = migrate::migrate(&mut db.client, &Schema::default()).await.unwrap();
    let names: Vec<_> = done.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(names, ["function sound"]);
}

#[tokio::test]
async fn a_failed_step_leaves_nothing_behind() {
    let mut db = Db::empty().await;
    db.run("CREATE SCHEMA ichido; CREATE TABLE ichido.flag (a int)").await;
    let error = migrate::migrate(&mut db.client, &Schema::default()).await.unwrap_err();
    assert!(error.to_string().contains("nothing was changed"), "{error}");
    assert_eq!(db.text("SELECT to_regclass('ichido.event')").await, "null");
}

#[tokio::test]
async fn the_schema_may_have_another_name() {
    let mut db = Db::empty().await;
    let schema = Schema::new("hooks").unwrap();
    migrate::migrate(&mut db.client, &schema).await.unwrap();
    migrate::check(&db.client, &schema).await.unwrap();
    db.run("SELECT hooks.endpoint_put('billing', 'stripe', '{}')").await;
    let taken = "SELECT taken FROM hooks.receive('billing', 'evt_1', 'invoice.paid', '{}')";
    assert_eq!(db.text(taken).await, "t");
    assert_eq!(db.text("SELECT to_regnamespace('ichido')").await, "null");
}
