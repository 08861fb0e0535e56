//! From values to a schema: one profile per column, then one decision per column.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use super::overrides::Rule;
use super::pattern::numbered;
use super::profile::{MAX_CATEGORIES, Profile};
use super::{Overrides, Schema};
use crate::cells::Cells;
use crate::{Column, Error, Kind, Place, Result};

/// So many columns that differ only in a number (pixel0, pixel1, …) are taken to mean the same thing.
const FAMILY: usize = 16;

/// Gathers profiles from one or several grids with the same columns and decides on their schema.
pub(crate) struct Profiler<'a> {
    overrides: &'a Overrides,
    place: Place,
    names: Vec<String>,
    uniform: usize,
    shape: Option<[usize; 2]>,
    rules: Vec<Rule>,
    /// The profile of each column; columns of one array share one.
    which: Vec<usize>,
    profiles: Vec<Profile>,
    /// On a second pass, only the columns to look at again.
    only: Option<Vec<usize>>,
}

/// The schema of grids with the same columns.
pub(crate) fn infer(grids: &[&dyn Cells], overrides: &Overrides) -> Result<Schema> {
    let mut profiler = Profiler::new(grids[0], overrides)?;
    grids.iter().for_each(|grid| profiler.observe(*grid));
    if profiler.look_again() {
        grids.iter().for_each(|grid| profiler.observe(*grid));
    }
    profiler.finish()
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
        for (col, name) in names.iter().enumerate() {
            let mut rule = overrides.rule(name).cloned().unwrap_or_default();
            if let Some(declared) = grid.declared(col)
                && rule.kind.is_none_or(|kind| kind == declared.kind)
            {
                rule.kind = Some(declared.kind);
                if !declared.categories.is_empty() {
                    rule.categories.get_or_insert(declared.categories);
                }
            }
            if rule.kind.is_none() && col >= uniform && !label_seen && means_label(name) {
                rule.kind = Some(Kind::Label);
            }
            label_seen |= rule.kind == Some(Kind::Label);
            rule.kind = rule.kind.or(overrides.default);
            rules.push(rule);
        }
        let (which, profiles) = share_profiles(&rules, uniform);
        Ok(Self {
            overrides,
            place,
            names,
            uniform,
            shape: overrides.shape.or(grid.shape()),
            rules,
            which,
            profiles,
            only: None,
        })
    }

    /// Takes in the rows of a grid, whose columns are matched by name.
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
                let word = || (col >= self.uniform).then(|| grid.text(row, source).into_owned());
                self.profiles[self.which[col]].observe(&cell, word);
            }
        }
    }

    /// Whether all columns of the array have one profile.
    fn shares_one_profile(&self) -> bool {
        self.uniform > 0 && self.which[..self.uniform].iter().all(|which| *which == self.which[0])
    }

    /// Columns where words turned up after numbers need their numbers as words too.
    pub(crate) fn look_again(&mut self) -> bool {
        let mixed: Vec<usize> = (self.uniform..self.names.len())
            .filter(|&col| {
                let profile = &self.profiles[self.which[col]];
                profile.texts > 0 && profile.numbers > 0 && !profile.gather
            })
            .collect();
        for &col in &mixed {
            self.profiles[self.which[col]] = Profile::new(true);
        }
        let any = !mixed.is_empty();
        self.only = Some(mixed);
        any
    }

    pub(crate) fn finish(mut self) -> Result<Schema> {
        self.join_families();
        let columns: Vec<Column> =
            (0..self.names.len()).map(|col| self.decide(col)).collect::<Result<_>>()?;
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
                "no column is left as data: all are labels, empty, or words that differ from row to row",
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
        Ok(Schema { columns, shape })
    }

    /// Numbered numeric columns of a text table share one profile: the border pixels of an image are
    /// counts like the others, although they happen to be 0 in every row.
    fn join_families(&mut self) {
        let mut families: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for col in self.uniform..self.names.len() {
            if self.rules[col].kind.is_none()
                && let Some((stem, _)) = numbered(&self.names[col])
            {
                families.entry(stem).or_default().push(col);
            }
        }
        for columns in families.into_values().filter(|family| family.len() >= FAMILY) {
            let members = || columns.iter().map(|&col| &self.profiles[self.which[col]]);
            let spins = members().filter(|p| p.kind() == Kind::Spin).count();
            if members().any(|profile| profile.texts > 0) || spins > 0 {
                continue;
            }
            let mut joint = Profile::new(false);
            members().for_each(|profile| joint.merge_numbers(profile));
            if joint.numbers == 0 {
                continue;
            }
            self.profiles.push(joint);
            for col in columns {
                self.which[col] = self.profiles.len() - 1;
            }
        }
    }

    fn decide(&self, col: usize) -> Result<Column> {
        let (rule, profile) = (&self.rules[col], &self.profiles[self.which[col]]);
        let place = || self.place.clone().column(&self.names[col]);
        let mut binarize = rule.binarize;
        let kind = match rule.kind {
            Some(kind) => kind,
            None if binarize.is_some() => Kind::Binary,
            None if self.overrides.binarize.is_some() && profile.is_numeric() => Kind::Binary,
            None if rule.categories.is_some() => Kind::Categorical,
            None => profile.kind(),
        };
        let bits = matches!(kind, Kind::Binary | Kind::Spin);
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
        let named = match kind {
            Kind::Categorical | Kind::Label => true,
            Kind::Binary => profile.texts > 0,
            _ => false,
        };
        let categories = match (&rule.categories, named) {
            (Some(given), _) if named || bits => given.clone(),
            (None, true) if profile.distinct() > MAX_CATEGORIES => {
                return Err(Error::schema(
                    &place(),
                    format!("more than {MAX_CATEGORIES} distinct values in a {kind} column"),
                    "choose the kind \"real\", \"count\" or \"ignore\" for it",
                ));
            }
            (None, true) if bits && profile.distinct() != 2 => Arc::default(),
            (None, true) => profile.categories(col < self.uniform && kind != Kind::Label).into(),
            _ => Arc::default(),
        };
        if kind == Kind::Categorical && categories.is_empty() {
            return Err(Error::schema(
                &place(),
                "a categorical column without a single value",
                "list its categories in the schema, or mark it \"ignore\"",
            ));
        }
        Ok(Column { name: self.names[col].clone(), kind, categories, binarize, transform: None })
    }
}

fn means_label(name: &str) -> bool {
    ["label", "labels", "class", "target"].iter().any(|word| name.eq_ignore_ascii_case(word))
}

/// Columns of one array share a profile when the schema says the same about them; others have their own.
fn share_profiles(rules: &[Rule], uniform: usize) -> (Vec<usize>, Vec<Profile>) {
    let mut shared: HashMap<Option<Kind>, usize> = HashMap::new();
    let mut profiles = Vec::new();
    let mut which = Vec::with_capacity(rules.len());
    for (col, rule) in rules.iter().enumerate() {
        let gather =
            rule.categories.is_none() && matches!(rule.kind, Some(Kind::Categorical | Kind::Label));
        let mut fresh = || {
            profiles.push(Profile::new(gather));
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
