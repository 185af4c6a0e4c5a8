//! What is PostgreSQL's own: the guard at COMMIT, lines that are cut, poolers, locks, TLS-free
//! local connections. The promise itself is in the conformance suite.

mod commit;
mod guard;
mod support;
mod surroundings;
