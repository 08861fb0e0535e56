//! Row weights by identity: a sequence counts 1/n where n sequences, itself included, are similar to it.

use crate::{Error, Result};

/// One weight per row of `codes` (rows of `length` bytes): 1 / the number of rows, itself included, that
/// agree with it in at least the fraction `identity` of positions.
///
/// The sum of the weights is the effective number of sequences.
pub fn identity_weights(codes: &[u8], length: usize, identity: f64, threads: usize) -> Result<Vec<f64>> {
    if !(identity > 0.0 && identity <= 1.0) {
        return Err(Error::parameter("reweight", identity, "an identity above 0, up to 1"));
    }
    if length == 0 || !codes.len().is_multiple_of(length) {
        return Err(Error::parameter("length", length, "a divisor of the number of codes"));
    }
    let rows = codes.len() / length;
    // Rounding must not exclude a pair that agrees in exactly the wanted fraction.
    let needed = (identity * length as f64 - 1e-9).ceil().max(0.0) as usize;
    let threads = threads.clamp(1, 64);
    let counts = std::thread::scope(|scope| {
        let work = |first: usize| move || count_neighbours(codes, length, needed, first, threads);
        let handles: Vec<_> = (1..threads).map(|first| scope.spawn(work(first))).collect();
        let mut total = work(0)();
        for handle in handles {
            // A panic there is a broken invariant here as well.
            let more = handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            total.iter_mut().zip(more).for_each(|(sum, count)| *sum += count);
        }
        total
    });
    debug_assert_eq!(counts.len(), rows);
    Ok(counts.iter().map(|count| 1.0 / f64::from(1 + count)).collect())
}

/// For every row its number of neighbours, over pairs whose first row is `first` modulo `stride`.
fn count_neighbours(
    codes: &[u8],
    length: usize,
    needed: usize,
    first: usize,
    stride: usize,
) -> Vec<u32> {
    let rows: Vec<&[u8]> = codes.chunks_exact(length).collect();
    let mut counts = vec![0; rows.len()];
    for i in (first..rows.len()).step_by(stride) {
        for j in i + 1..rows.len() {
            if agreements(rows[i], rows[j]) >= needed {
                counts[i] += 1;
                counts[j] += 1;
            }
        }
    }
    counts
}

/// Number of equal positions; blocks of 255 are summed in bytes, which the compiler turns into SIMD.
fn agreements(a: &[u8], b: &[u8]) -> usize {
    let blocks = a.chunks(255).zip(b.chunks(255));
    blocks
        .map(|(a, b)| {
            let equal = a.iter().zip(b).map(|(x, y)| u8::from(x == y));
            usize::from(equal.fold(0u8, u8::wrapping_add))
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn similar_rows_share_their_weight() {
        // Rows 0 and 1 agree in 4 of 5 positions, row 2 with no other.
        let codes = [1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 3, 3, 3, 3, 3];
        assert_eq!(identity_weights(&codes, 5, 0.8, 1).unwrap(), [0.5, 0.5, 1.0]);
        assert_eq!(identity_weights(&codes, 5, 0.9, 1).unwrap(), [1.0; 3]);
        assert!(identity_weights(&codes, 5, 0.0, 1).is_err());
    }

    proptest! {
        #[test]
        fn threads_do_not_matter(codes in prop::collection::vec(0u8..3, 600), length in prop::sample::select(vec![1usize, 4, 300])) {
            let one = identity_weights(&codes, length, 0.6, 1).unwrap();
            prop_assert_eq!(&identity_weights(&codes, length, 0.6, 3).unwrap(), &one);
            let rows: Vec<&[u8]> = codes.chunks(length).collect();
            for (i, weight) in one.iter().enumerate() {
                let near = rows.iter().filter(|row| {
                    let same = row.iter().zip(rows[i]).filter(|(a, b)| a == b).count();
                    same as f64 >= 0.6 * length as f64 - 1e-9
                });
                prop_assert_eq!(*weight, 1.0 / near.count() as f64);
            }
        }
    }
}
