//! TLS to the database: the name is verified, against the root that was named.

use ichido::postgres::{Config, connect};
use ichido_testkit::Cluster;

async fn is_encrypted(url: &str) -> Result<bool, ichido::Error> {
    let client = connect(&Config::new(url)?).await?;
    let sql = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    Ok(client.query_one(sql, &[]).await.unwrap().get(0))
}

#[tokio::test]
async fn a_named_root_and_the_right_host_are_needed_and_make_an_encrypted_line() {
    let (cluster, root) = Cluster::start_with_tls().await.unwrap();
    let port = cluster.port();
    let url =
        |host: &str, options: &str| format!("postgres://postgres@{host}:{port}/postgres{options}");
    let named = format!("?sslmode=verify-full&sslrootcert={}", root.display());

    assert!(is_encrypted(&url("localhost", &named)).await.unwrap());
    let other_name = is_encrypted(&url("127.0.0.1", &named)).await.unwrap_err().to_string();
    assert!(other_name.contains("certificate"), "{other_name}");
    let no_root = is_encrypted(&url("localhost", "?sslmode=require")).await.unwrap_err();
    assert!(no_root.to_string().contains("certificate"), "{no_root}");
    assert!(!is_encrypted(&url("localhost", "")).await.unwrap());
}

#[tokio::test]
async fn a_root_file_that_is_not_there_is_named() {
    let config = Config::new("postgres://x@localhost/x?sslmode=require&sslrootcert=/none.pem");
    let refused = connect(&config.unwrap()).await.unwrap_err().to_string();
    assert!(refused.contains("/none.pem"), "{refused}");
}
