//! The PostgreSQL engine. placeholder
