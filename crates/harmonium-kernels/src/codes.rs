//! A batch of Potts codes, checked once.

/// Rows of `sites` codes, each below `q`.
///
/// The codes are checked when the view is made; kernels then index with them freely.
#[derive(Clone, Copy, Debug)]
pub struct Codes<'a> {
    codes: &'a [u32],
    sites: usize,
    q: usize,
}

impl<'a> Codes<'a> {
    /// A view of `codes.len() / sites` rows.
    ///
    /// # Panics
    /// If the length is no multiple of `sites`, or a code is not below `q`.
    pub fn new(codes: &'a [u32], sites: usize, q: usize) -> Self {
        assert!(
            if sites == 0 { codes.is_empty() } else { codes.len().is_multiple_of(sites) },
            "codes: length is no multiple of the number of sites"
        );
        // A fold over the maximum vectorises; an early exit would not.
        let max = codes.iter().fold(0, |m, &c| m.max(c));
        assert!(codes.is_empty() || (max as usize) < q, "codes: {max} is not below q = {q}");
        Self { codes, sites, q }
    }

    /// All codes, row after row.
    pub fn data(&self) -> &'a [u32] {
        self.codes
    }

    /// Number of rows (0 when there are no sites).
    pub fn rows(&self) -> usize {
        self.codes.len().checked_div(self.sites).unwrap_or(0)
    }

    /// Sites per row.
    pub fn sites(&self) -> usize {
        self.sites
    }

    /// Number of values of a site.
    pub fn q(&self) -> usize {
        self.q
    }
}
