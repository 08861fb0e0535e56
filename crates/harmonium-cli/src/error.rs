//! Failures of a command: message and exit code.

use harmonium_data::nearest;
use std::fmt::Display;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;

/// The result of a command.
pub(crate) type Result<T = (), E = Failure> = std::result::Result<T, E>;

/// Why a command did not do what it was asked to do.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command line or a configuration is invalid: exit code 2.
    Usage(String),
    /// The command is valid but failed: exit code 1.
    Failed(String),
    /// Stopped by a signal, with everything saved: exit code 130.
    Interrupted,
    /// Broken pipe: the reader of the output has closed it. Exit code 0, no message.
    Pipe,
}

impl Failure {
    /// A failure of the kind with exit code 1.
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self::Failed(what.into())
    }

    /// A failure of the kind with exit code 2.
    pub(crate) fn usage(what: impl Into<String>) -> Self {
        Self::Usage(what.into())
    }

    /// An error of the operating system.
    pub(crate) fn io(action: &str, path: &Path, error: &std::io::Error) -> Self {
        Self::Failed(format!("{}: cannot {action}: {}{}", path.display(), cause(error), remedy(error)))
    }

    /// Prints the message and gives the exit code.
    pub(crate) fn report(self) -> ExitCode {
        let (message, code) = match self {
            Self::Usage(message) => (message, 2),
            Self::Failed(message) => (message, 1),
            Self::Interrupted => return ExitCode::from(130),
            Self::Pipe => return ExitCode::SUCCESS,
        };
        let _ = writeln!(std::io::stderr(), "error: {message}");
        ExitCode::from(code)
    }
}

/// The message of the operating system, without the name of a temporary file at its end.
fn cause(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" at path \"") {
        Some((cause, _)) => cause.into(),
        None => text,
    }
}

/// What can be done about an error of the operating system.
fn remedy(error: &std::io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::StorageFull => "; make room, then run the command again",
        ErrorKind::PermissionDenied => "; choose a place that you may write to",
        ErrorKind::NotFound => "; is the path spelled as it should be?",
        _ => "",
    }
}

impl From<harmonium::Error> for Failure {
    fn from(error: harmonium::Error) -> Self {
        match &error {
            harmonium::Error::Io { path, source } => Self::io("read or write", path, source),
            _ => Self::Failed(error.to_string()),
        }
    }
}

impl From<harmonium_data::Error> for Failure {
    fn from(error: harmonium_data::Error) -> Self {
        match &error {
            harmonium_data::Error::Io { place, action, source } => {
                Self::Failed(format!("{place}: cannot {action}: {}{}", cause(source), remedy(source)))
            }
            _ => Self::Failed(error.to_string()),
        }
    }
}

impl From<harmonium_table::Error> for Failure {
    fn from(error: harmonium_table::Error) -> Self {
        use harmonium_table::Error;
        match error {
            Error::Setting { name, value, why, known } => {
                let hint = match nearest(&value, known.iter().copied()) {
                    Some(near) => format!("; did you mean {near}?"),
                    None if known.is_empty() => String::new(),
                    None => format!("; expected one of {}", known.join(", ")),
                };
                Self::usage(format!("--{} {value}: {why}{hint}", name.replace('_', "-")))
            }
            Error::NoLabel => Self::new(format!(
                "{error}; mark one with `--label COLUMN`, or leave out `--machine class`"
            )),
            Error::Library(error) => error.into(),
            Error::Data(error) => error.into(),
            other => Self::new(other.to_string()),
        }
    }
}

/// Adds where a failure happened.
pub(crate) trait Context<T> {
    /// Puts `what: ` in front of the message.
    fn context(self, what: impl Display) -> Result<T>;
}

impl<T, E: Into<Failure>> Context<T> for std::result::Result<T, E> {
    fn context(self, what: impl Display) -> Result<T> {
        self.map_err(|e| match e.into() {
            Failure::Usage(message) => Failure::Usage(format!("{what}: {message}")),
            Failure::Failed(message) => Failure::Failed(format!("{what}: {message}")),
            other => other,
        })
    }
}
