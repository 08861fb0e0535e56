//! The configuration of a run: flags and files make it, `config.toml` keeps it.

use crate::data::{self, DataArgs};
use crate::error::{Failure, Result};
use harmonium::train::TrainParams;
use harmonium_data::{DataName, Dataset, Source, nearest};
use harmonium_table::MachineConfig;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Rows from which a file is split without being asked.
const SPLIT_FROM: usize = 500;

/// Everything a run depends on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    /// The data.
    pub(crate) data: DataConfig,
    /// The machine.
    pub(crate) machine: MachineConfig,
    /// Settings of the training.
    pub(crate) train: TrainParams,
    /// What the command does around the training.
    pub(crate) run: RunConfig,
    /// The search for the other settings, if this is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tune: Option<TuneConfig>,
}

/// A search for settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct TuneConfig {
    /// Wall time for the whole command in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) time_budget: Option<f64>,
    /// Size of the search: estimated seconds on one thread. All that is tried follows from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) work: Option<f64>,
    /// Whether the number of hidden units is given.
    pub(crate) keep_hidden: bool,
    /// Whether their kind is given.
    pub(crate) keep_kind: bool,
}

/// The data of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct DataConfig {
    /// The data's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    /// Data that decide when to stop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) valid: Option<String>,
    /// Data that the final likelihood is computed on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) test: Option<String>,
    /// Fraction of the rows held out for the test, or a file of row numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) split: Option<String>,
    /// Seed of the split, of generated data and of binarisation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) seed: Option<u64>,
    /// How tables are read.
    pub(crate) read: DataArgs,
}

/// What the command does around the training.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RunConfig {
    /// Wall time for training in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) time_budget: Option<f64>,
    /// Seconds between checkpoints.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) checkpoint_every: Option<f64>,
    /// Number of models along the run that are kept, at exponentially spaced updates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) keep: Option<usize>,
}

impl Config {
    /// Reads a configuration.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|e| Failure::io("read", path, &e))?;
        toml::from_str(&text).map_err(|e| Failure::usage(format!("{}: {}", path.display(), explain(&e))))
    }

    /// The configuration as TOML, with a comment at its top.
    pub(crate) fn text(&self) -> Result<String> {
        let toml = toml::to_string(self).map_err(|e| Failure::new(format!("config.toml: {e}")))?;
        let use_of_it = match self.tune {
            Some(_) => "search depends on; `harmonium tune` with this directory resumes it",
            None => "run depends on; `harmonium train --config` with this file repeats it",
        };
        Ok(format!("# Everything this {use_of_it}.\n\n{toml}"))
    }

    /// Refuses settings of training that are not those of the checkpoint: with others it would not be the same run. What only says
    /// how long it takes may change.
    pub(crate) fn agrees_with(&self, saved: &TrainParams) -> Result {
        // A pretrained machine starts from its levels, whatever the settings say of the start.
        const MAY_CHANGE: [&str; 4] = ["updates", "epochs", "stop_after", "init"];
        let fields = |params: &TrainParams| serde_json::to_value(params).unwrap_or_default();
        let (mine, theirs) = (fields(&self.train), fields(saved));
        let keys = [&mine, &theirs].map(|v| v.as_object().into_iter().flat_map(|o| o.keys()));
        let mut keys = keys.into_iter().flatten().filter(|key| !MAY_CHANGE.contains(&key.as_str()));
        match keys.find(|key| mine[key.as_str()] != theirs[key.as_str()]) {
            None => Ok(()),
            Some(key) => Err(Failure::new(format!(
                "train.{key}: expected {}, as in the checkpoint of this run, got {}; only updates, run.time_budget, \
                 run.checkpoint_every, run.keep and --threads may change, for other settings start anew with --config",
                theirs[key.as_str()],
                mine[key.as_str()]
            ))),
        }
    }

    /// The data of a configuration in their parts; the configuration is completed.
    pub(crate) fn load(&mut self) -> Result<Dataset> {
        let data = &mut self.data;
        let seed = *data.seed.get_or_insert(self.train.seed.unwrap_or(0));
        let name = data.name.clone().ok_or_else(|| Failure::usage("the configuration names no data"))?;
        // Machines learn in single precision.
        let mut set = data.read.load_single(&name, seed)?;
        let parsed = DataName::parse(&name)?;
        let from_file = !matches!(parsed.source, Source::Generated(_));
        if let Some(test) = &data.test {
            set.test = Some(data.read.load_rows(test, set.train.schema(), seed)?);
        } else if set.test.is_none() {
            let enough = from_file && parsed.part.is_none() && set.train.rows() >= SPLIT_FROM;
            let chosen =
                data.split.get_or_insert_with(|| if enough { "0.1".into() } else { "0".into() });
            if chosen.parse() != Ok(0.0) {
                let split = data::split(chosen, seed)?.apply(set.train)?;
                (set.train, set.test) = (split.train, split.test);
            }
        } else if let Some(split) = data.split.as_ref().filter(|s| s.parse() != Ok(0.0)) {
            return Err(Failure::usage(format!(
                "--split {split}: {name} has a test part already; leave out --split, or name {name}:all"
            )));
        }
        if let Some(valid) = &data.valid {
            set.valid = Some(data.read.load_rows(valid, set.train.schema(), seed)?);
        }
        data.name = Some(lasting(&name, &parsed));
        Ok(set)
    }
}

/// The name of data that means the same from any folder.
fn lasting(name: &str, parsed: &DataName) -> String {
    match &parsed.source {
        Source::File { path, .. } => {
            let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
            let part = parsed.part.as_ref().map(|p| format!(":{p}")).unwrap_or_default();
            format!("{}{part}", path.display())
        }
        _ => name.to_owned(),
    }
}

/// The message of a TOML error, with a suggestion where a key is unknown.
fn explain(error: &toml::de::Error) -> String {
    let message = error.to_string();
    let message = message.trim_end();
    let words: Vec<&str> = error.message().split('`').skip(1).step_by(2).collect();
    if let (true, [unknown, known @ ..]) = (error.message().starts_with("unknown"), &words[..])
        && let Some(near) = nearest(unknown, known.iter().copied())
    {
        return format!("{message}\ndid you mean `{near}`?");
    }
    message.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_keys_are_refused_with_a_suggestion() {
        let error = toml::from_str::<Config>("[machine]\nhiden = [3]\n").unwrap_err();
        let text = explain(&error);
        assert!(text.contains("did you mean `hidden`?") && text.contains("line 2"), "{text}");
    }
}
