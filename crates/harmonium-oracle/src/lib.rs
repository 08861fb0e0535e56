//! Naive f64 enumeration and quadrature straight from E(x). Tests only.
