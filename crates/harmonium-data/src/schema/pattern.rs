//! Which columns a line of a schema means: a name, a range `v0..v783`, or a glob `pixel*`.

/// Which columns a line of a schema is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Pattern {
    /// One name.
    Name(String),
    /// `stem` followed by a number from `first` to `last`.
    Range { stem: String, first: u64, last: u64 },
    /// A name with `*` for any run of characters.
    Glob(String),
}

impl Pattern {
    pub(crate) fn parse(text: &str) -> Self {
        if let Some((a, b)) = text.split_once("..")
            && let (Some((stem, first)), Some((other, last))) = (name_and_number(a), name_and_number(b))
            && stem == other
            && first <= last
        {
            return Self::Range { stem: stem.into(), first, last };
        }
        if text.contains('*') { Self::Glob(text.into()) } else { Self::Name(text.into()) }
    }

    pub(crate) fn matches(&self, name: &str) -> bool {
        match self {
            Self::Name(exact) => exact == name,
            Self::Range { stem, first, last } => name_and_number(name)
                .is_some_and(|(other, number)| other == stem && (*first..=*last).contains(&number)),
            Self::Glob(glob) => glob_matches(glob, name),
        }
    }
}

/// Splits `v17` into `v` and 17; numbers with leading zeros do not count, they could not be written back.
pub(crate) fn name_and_number(name: &str) -> Option<(&str, u64)> {
    let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count();
    let (stem, number) = name.split_at(name.len() - digits);
    if number.len() > 1 && number.starts_with('0') {
        return None;
    }
    Some((stem, number.parse().ok()?))
}

fn glob_matches(glob: &str, name: &str) -> bool {
    let mut pieces = glob.split('*');
    let Some(mut rest) = pieces.next().and_then(|start| name.strip_prefix(start)) else {
        return false;
    };
    let mut pieces: Vec<&str> = pieces.collect();
    let Some(end) = pieces.pop() else {
        return rest.is_empty();
    };
    for piece in pieces {
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    rest.ends_with(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_ranges_and_globs() {
        for (pattern, yes, no) in [
            ("age", vec!["age"], vec!["ages", "ag"]),
            ("v0..v12", vec!["v0", "v12"], vec!["v13", "w1", "v", "v01"]),
            ("pixel*", vec!["pixel", "pixel7"], vec!["apixel"]),
            ("*_z*1", vec!["a_z01", "_z1"], vec!["a_z", "z1"]),
            ("*", vec!["", "x"], vec![]),
            ("a..b", vec!["a..b"], vec!["a"]),
        ] {
            let pattern = Pattern::parse(pattern);
            assert!(yes.iter().all(|name| pattern.matches(name)), "{pattern:?}");
            assert!(!no.iter().any(|name| pattern.matches(name)), "{pattern:?}");
        }
    }
}
