//! Data sets: embedded, generated and read from files.
