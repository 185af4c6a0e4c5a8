//! The SQLite engine. placeholder
