//! The PostgreSQL engine. Only this module and those below it touch the driver.

pub mod migrate;
mod schema;

pub use schema::Schema;
