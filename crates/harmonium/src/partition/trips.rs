//! Round trips of replicas: states that move from one end of a ladder to the other and back.

/// Follows walkers through a ladder of replicas.
///
/// A walker makes a round trip when it has been at the first replica (where states are forgotten), at the last, and
/// at the first again. Exchanges that are often accepted but never finish a trip do not mix.
#[derive(Clone, Debug, PartialEq)]
pub struct RoundTrips {
    /// The walker at each place: one list of chains per replica.
    walkers: Vec<Vec<u32>>,
    /// For each chain and walker: 0 = has seen neither end, 1 = last saw the first replica, 2 = the last one after it.
    phase: Vec<Vec<u8>>,
    accepted: Vec<u64>,
    tried: Vec<u64>,
    trips: Vec<u64>,
}

impl RoundTrips {
    /// Ladders of `replicas`, `chains` of them side by side.
    pub fn new(replicas: usize, chains: usize) -> Self {
        let mut out = Self {
            walkers: (0..replicas).map(|i| vec![i as u32; chains]).collect(),
            phase: vec![vec![0; replicas]; chains],
            accepted: vec![0; replicas.saturating_sub(1)],
            tried: vec![0; replicas.saturating_sub(1)],
            trips: vec![0; chains],
        };
        out.visit();
        out
    }

    /// Chain `r` tried to exchange the states of replicas `i` and `i + 1`.
    pub fn exchange(&mut self, i: usize, r: usize, accepted: bool) {
        self.tried[i] += 1;
        if accepted {
            self.accepted[i] += 1;
            let (low, high) = self.walkers.split_at_mut(i + 1);
            std::mem::swap(&mut low[i][r], &mut high[0][r]);
        }
    }

    /// Records the walkers at both ends; call it after each round of exchanges.
    pub fn visit(&mut self) {
        let last = self.walkers.len() - 1;
        for (r, phase) in self.phase.iter_mut().enumerate() {
            let (bottom, top) = (self.walkers[0][r] as usize, self.walkers[last][r] as usize);
            self.trips[r] += u64::from(phase[bottom] == 2);
            phase[bottom] = 1;
            if phase[top] == 1 {
                phase[top] = 2;
            }
        }
    }

    /// Rate of acceptance between replicas i and i+1.
    pub fn acceptance(&self) -> Vec<f64> {
        self.accepted.iter().zip(&self.tried).map(|(&a, &t)| a as f64 / (t as f64).max(1.0)).collect()
    }

    /// Finished round trips of each chain's ladder.
    pub fn trips(&self) -> &[u64] {
        &self.trips
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walker_goes_up_and_comes_back() {
        let mut t = RoundTrips::new(3, 1);
        // Walker 0 to the top, then back; others move the other way.
        for (i, seen) in [(0, 0), (1, 0), (1, 0), (0, 1)] {
            t.exchange(i, 0, true);
            t.visit();
            assert_eq!(t.trips()[0], seen);
        }
        t.exchange(0, 0, false);
        assert_eq!(t.acceptance(), [2.0 / 3.0, 1.0]);
    }
}
