//! From values to a schema: one profile per column, then one decision per column.

mod guess;
mod kinds;
mod order;
mod profile;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use self::guess::Guess;
pub(crate) use self::guess::is_value;
pub use self::kinds::{MAX_WORDS, words_differ};
use self::profile::{MAX_CATEGORIES, Profile};
use crate::cells::Cells;
use crate::schema::{Rule, name_and_number};
use crate::{CellFormat, Column, Error, Finding, Kind, Overrides, Place, Reason, Result, Schema};

/// From this many on, columns whose names differ only in a number (pixel0, pixel1, …) share one kind.
const FAMILY: usize = 16;

/// Gathers profiles from one or several grids with the same columns and decides on their schema.
pub(crate) struct Profiler<'a> {
    overrides: &'a Overrides,
    place: Place,
    names: Vec<String>,
    uniform: usize,
    shape: Option<[usize; 2]>,
    rules: Vec<Rule>,
    /// Why a column has the kind of its rule.
    given: Vec<Reason>,
    /// The profile of each column; columns of one array share one.
    which: Vec<usize>,
    profiles: Vec<Profile>,
    /// Columns that share their profile with others of the same stem.
    joined: HashSet<usize>,
    /// Whether a comma is more likely a decimal point.
    commas: bool,
    /// On a second pass, only the columns to look at again.
    only: Option<Vec<usize>>,
}

/// A schema, and what it was made of.
pub(crate) struct Inferred {
    pub(crate) schema: Schema,
    /// What was found out about each column.
    pub(crate) findings: Vec<Finding>,
    /// Whether single precision would lose digits of a real column.
    pub(crate) double: bool,
}

/// The schema of grids with the same columns.
pub(crate) fn infer(grids: &[&dyn Cells], overrides: &Overrides) -> Result<Inferred> {
    let mut profiler = Profiler::new(grids[0], overrides)?;
    loop {
        grids.iter().for_each(|grid| profiler.observe(*grid));
        if !profiler.look_again() {
            return profiler.finish();
        }
    }
}

impl<'a> Profiler<'a> {
    pub(crate) fn new(grid: &dyn Cells, overrides: &'a Overrides) -> Result<Self> {
        let names = grid.names();
        let place = grid.place().clone();
        check_distinct(&names, &place)?;
        overrides.check_names(&names, &place)?;
        let uniform = grid.uniform();
        let mut label_seen = false;
        let mut rules: Vec<Rule> = Vec::with_capacity(names.len());
        let mut given = Vec::with_capacity(names.len());
        for (col, name) in names.iter().enumerate() {
            let mut rule = overrides.rule(name).cloned().unwrap_or_default();
            let mut reason = Reason::Given;
            if let Some(declared) = grid.declared(col)
                && rule.kind.is_none_or(|kind| kind == declared.kind)
            {
                reason = if rule.kind.is_none() { Reason::Declared } else { reason };
                rule.kind = Some(declared.kind);
                if !declared.format.is_plain() {
                    rule.format.get_or_insert(declared.format);
                }
                if !declared.categories.is_empty() {
                    rule.categories.get_or_insert(declared.categories);
                }
            }
            if rule.kind.is_none() && col >= uniform && !label_seen && means_label(name) {
                rule.kind = Some(Kind::Label);
                reason = Reason::LabelName;
            }
            label_seen |= rule.kind == Some(Kind::Label);
            rule.kind = rule.kind.or(overrides.default);
            rules.push(rule);
            given.push(reason);
        }
        let (which, profiles) = share_profiles(&rules, &names, uniform);
        Ok(Self {
            overrides,
            place,
            names,
            uniform,
            shape: overrides.shape.or(grid.shape()),
            rules,
            given,
            which,
            profiles,
            joined: HashSet::new(),
            commas: grid.semicolons(),
            only: None,
        })
    }

    /// Adds the rows of a grid, whose columns are matched by name.
    pub(crate) fn observe(&mut self, grid: &dyn Cells) {
        let names = grid.names();
        let by_name: HashMap<&str, usize> = names.iter().map(String::as_str).zip(0..).collect();
        let looked_at: Vec<usize> = match &self.only {
            Some(columns) => columns.clone(),
            None => (0..self.names.len()).collect(),
        };
        let columns: Vec<(usize, usize)> = looked_at
            .into_iter()
            .filter_map(|col| Some((col, *by_name.get(self.names[col].as_str())?)))
            .collect();
        let mut numbers = Vec::new();
        let whole_rows =
            self.only.is_none() && grid.uniform() == self.uniform && self.shares_one_profile();
        for row in 0..grid.rows() {
            let mut rest = &columns[..];
            if whole_rows && grid.numbers(row, &mut numbers) {
                self.profiles[self.which[0]].row(&numbers);
                rest = &columns[self.uniform..];
            }
            for &(col, source) in rest {
                let cell = grid.cell(row, source);
                let profile = &mut self.profiles[self.which[col]];
                match col < self.uniform {
                    true => profile.observe_shared(&cell),
                    false => profile.observe(&cell, || Some(grid.text(row, source).into_owned())),
                }
            }
        }
    }

    /// Whether all columns of the array have one profile.
    fn shares_one_profile(&self) -> bool {
        self.uniform > 0 && self.which[..self.uniform].iter().all(|which| *which == self.which[0])
    }

    /// Columns to look at once more: those that may be numbers or dates in another form than programs write them, and
    /// those where words turned up after numbers, whose numbers are wanted as words too.
    pub(crate) fn look_again(&mut self) -> bool {
        let mut again = Vec::new();
        for col in self.uniform..self.names.len() {
            let profile = &self.profiles[self.which[col]];
            let readable = is_readable(&self.rules[col]);
            let next = match &profile.reading {
                Some(_) if profile.texts > 0 && self.rules[col].format.is_none() => Profile::new(true),
                Some(_) => continue,
                None if profile.gather => continue,
                None => match profile.candidate(self.commas).filter(|_| readable) {
                    Some(guess) => Profile::reading(guess),
                    None if profile.texts > 0 && profile.numbers > 0 => Profile::new(true),
                    None => continue,
                },
            };
            self.profiles[self.which[col]] = next;
            again.push(col);
        }
        let any = !again.is_empty();
        self.only = Some(again);
        any
    }

    pub(crate) fn finish(mut self) -> Result<Inferred> {
        self.join_families();
        let decided: Vec<(Column, Finding)> =
            (0..self.names.len()).map(|col| self.decide(col)).collect::<Result<_>>()?;
        let (columns, findings): (Vec<Column>, Vec<Finding>) = decided.into_iter().unzip();
        let double = (0..columns.len())
            .any(|col| columns[col].kind == Kind::Real && self.profiles[self.which[col]].needs_double());
        let columns = share_categories(columns);
        let labels: Vec<&Column> = columns.iter().filter(|column| column.kind == Kind::Label).collect();
        if let [_, second, ..] = labels[..] {
            return Err(Error::schema(
                &self.place.column(&second.name),
                "a second label column",
                "mark all label columns but one as \"ignore\"",
            ));
        }
        let data = columns.iter().filter(|column| column.kind.is_data()).count();
        if data == 0 {
            return Err(Error::schema(
                &self.place,
                "no column is left as data: all are labels, empty, constant, or differ from row to row",
                "name the kind of at least one column in a schema",
            ));
        }
        let shape = self.shape.filter(|[height, width]| height.checked_mul(*width) == Some(data));
        if shape.is_none()
            && let Some([height, width]) = self.overrides.shape
        {
            return Err(Error::schema(
                &self.place,
                format!("shape [{height}, {width}] does not fit {data} columns of data"),
                "height × width must be the number of data columns",
            ));
        }
        Ok(Inferred { schema: Schema { columns, shape }, findings, double })
    }

    /// Numbered numeric columns of a text table share one profile: the border pixels of an image are
    /// counts like the others, although they happen to be 0 in every row.
    fn join_families(&mut self) {
        let mut families: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for col in self.uniform..self.names.len() {
            if self.rules[col].kind.is_none()
                && let Some((stem, _)) = name_and_number(&self.names[col])
                && kinds::decide(&self.profiles[self.which[col]], false, false).1 != Reason::RowNumber
            {
                families.entry(stem).or_default().push(col);
            }
        }
        for columns in families.into_values().filter(|family| family.len() >= FAMILY) {
            let members = || columns.iter().map(|&col| &self.profiles[self.which[col]]);
            if members().any(|p| p.texts > 0 || p.format().is_some() || p.is_spin()) {
                continue;
            }
            let mut joint = Profile::new(false);
            members().for_each(|profile| joint.merge_numbers(profile));
            if joint.numbers == 0 {
                continue;
            }
            self.profiles.push(joint);
            for &col in &columns {
                self.which[col] = self.profiles.len() - 1;
            }
            self.joined.extend(columns);
        }
    }

    fn decide(&self, col: usize) -> Result<(Column, Finding)> {
        let (rule, profile) = (&self.rules[col], &self.profiles[self.which[col]]);
        let place = || self.place.clone().column(&self.names[col]);
        let (kind, reason, instead) = self.kind(col);
        let bits = matches!(kind, Kind::Binary | Kind::Spin);
        let mut binarize = rule.binarize;
        if bits && rule.categories.is_none() && profile.is_numeric() && !profile.is_binary() {
            binarize = binarize.or(self.overrides.binarize);
        }
        if !bits && binarize.is_some() {
            return Err(Error::schema(
                &place(),
                format!("binarize on a {kind} column"),
                "binarize makes binary or spin columns: change the kind or drop it",
            ));
        }
        let categories = self.categories(col, kind)?;
        if kind == Kind::Categorical && categories.is_empty() {
            return Err(Error::schema(
                &place(),
                "a categorical column without a single value",
                "list its categories in the schema, or mark it \"ignore\"",
            ));
        }
        let range = profile.is_numeric().then_some([profile.min, profile.max]);
        let format = self.format(col, kind);
        let column = Column { categories, binarize, format, ..Column::new(&self.names[col], kind) };
        Ok((column, Finding { reason, range, instead }))
    }

    /// The kind of a column, why, and what it might be instead.
    fn kind(&self, col: usize) -> (Kind, Reason, Option<Kind>) {
        let (rule, profile) = (&self.rules[col], &self.profiles[self.which[col]]);
        let given = |kind| (kind, Reason::Given, None);
        match rule.kind {
            Some(kind) => (kind, self.given[col], None),
            None if rule.binarize.is_some() => given(Kind::Binary),
            None if self.overrides.binarize.is_some() && profile.is_numeric() => given(Kind::Binary),
            None if rule.categories.is_some() => given(Kind::Categorical),
            None if col < self.uniform || self.joined.contains(&col) => kinds::alike(profile),
            None => kinds::decide(
                profile,
                names_identifier(&self.names, col),
                kinds::names_year(&self.names[col]),
            ),
        }
    }

    /// How the numbers of a column are written.
    fn format(&self, col: usize, kind: Kind) -> CellFormat {
        let (rule, profile) = (&self.rules[col], &self.profiles[self.which[col]]);
        let own = col >= self.uniform && !self.joined.contains(&col);
        match (&rule.format, kind) {
            (Some(format), Kind::Real | Kind::Count) => format.clone(),
            (None, Kind::Real | Kind::Count) if own => match profile.format() {
                Some(format) => format,
                None if kind == Kind::Real && profile.whole && profile.is_numeric() => CellFormat::WHOLE,
                None => CellFormat::PLAIN,
            },
            _ => CellFormat::PLAIN,
        }
    }

    fn categories(&self, col: usize, kind: Kind) -> Result<Arc<[String]>> {
        let (rule, profile) = (&self.rules[col], &self.profiles[self.which[col]]);
        let bits = matches!(kind, Kind::Binary | Kind::Spin);
        let named = match kind {
            Kind::Categorical | Kind::Label => true,
            Kind::Binary => profile.texts > 0,
            _ => false,
        };
        Ok(match (&rule.categories, named) {
            (Some(given), _) if named || bits => given.clone(),
            (None, true) if profile.distinct() > MAX_CATEGORIES => {
                return Err(Error::schema(
                    &self.place.clone().column(&self.names[col]),
                    format!("more than {MAX_CATEGORIES} distinct values in a {kind} column"),
                    "choose the kind \"real\", \"count\" or \"ignore\" for it",
                ));
            }
            (None, true) if bits && profile.is_truth() => profile.truth_words().into(),
            (None, true) if bits && profile.distinct() != 2 => Arc::default(),
            (None, true) => profile.categories(col < self.uniform && kind != Kind::Label).into(),
            _ => Arc::default(),
        })
    }
}

/// Whether a column may hold numbers in another form than programs write them.
fn is_readable(rule: &Rule) -> bool {
    matches!(rule.kind, None | Some(Kind::Real | Kind::Count))
        && rule.categories.is_none()
        && rule.binarize.is_none()
}

/// Whether the name of a column means an identifier; a first column without a name does.
fn names_identifier(names: &[String], col: usize) -> bool {
    let unnamed = col == 0 && names[0] == "v0" && names.get(1).is_some_and(|name| name != "v1");
    unnamed || kinds::names_identifier(&names[col])
}

/// Whether a column of this name is assumed to hold the class of a row, if nothing else is said.
pub fn means_label(name: &str) -> bool {
    ["label", "labels", "class", "target"].iter().any(|word| name.eq_ignore_ascii_case(word))
}

/// Columns of one array share a profile when the schema says the same about them; others have their own.
fn share_profiles(rules: &[Rule], names: &[String], uniform: usize) -> (Vec<usize>, Vec<Profile>) {
    let mut shared: HashMap<Option<Kind>, usize> = HashMap::new();
    let mut profiles = Vec::new();
    let mut which = Vec::with_capacity(rules.len());
    for (col, rule) in rules.iter().enumerate() {
        let named = matches!(rule.kind, Some(Kind::Categorical | Kind::Label));
        let identifies = rule.kind.is_none() && col >= uniform && names_identifier(names, col);
        let gather = rule.categories.is_none() && (named || identifies);
        let mut fresh = || {
            profiles.push(match &rule.format {
                Some(format) if col >= uniform && is_readable(rule) => {
                    Profile::reading(Guess::given(format))
                }
                _ => Profile::new(gather),
            });
            profiles.len() - 1
        };
        which.push(if col < uniform { *shared.entry(rule.kind).or_insert_with(fresh) } else { fresh() });
    }
    (which, profiles)
}

/// Equal lists of categories become one list in memory.
fn share_categories(mut columns: Vec<Column>) -> Vec<Column> {
    let mut seen: HashSet<Arc<[String]>> = HashSet::new();
    for column in &mut columns {
        match seen.get(&column.categories) {
            Some(same) => column.categories = same.clone(),
            None => drop(seen.insert(column.categories.clone())),
        }
    }
    columns
}

fn check_distinct(names: &[String], place: &Place) -> Result<()> {
    let mut seen = HashSet::new();
    match names.iter().find(|name| !seen.insert(name.as_str())) {
        None => Ok(()),
        Some(twice) => Err(Error::schema(
            &place.clone().column(twice),
            "two columns have this name",
            "rename one of them",
        )),
    }
}
