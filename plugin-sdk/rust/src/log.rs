//! Lines on standard error: time is the log collector's, level and pairs are here.

use std::fmt::{Display, Write as _};
use std::str::FromStr;
use std::sync::atomic::{AtomicU8, Ordering};

static LEAST: AtomicU8 = AtomicU8::new(Level::Info as u8);

/// How much a line matters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Level {
    Debug,
    Info,
    Warn,
    Error,
}

impl FromStr for Level {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "debug" => Ok(Level::Debug),
            "info" => Ok(Level::Info),
            "warn" => Ok(Level::Warn),
            "error" => Ok(Level::Error),
            _ => Err(format!("{text:?} is none of debug, info, warn, error")),
        }
    }
}

/// Leaves out lines below a level, in the whole process.
pub(crate) fn set_level(level: Level) {
    LEAST.store(level as u8, Ordering::Relaxed);
}

/// Writes one line of a constant message and key=value pairs.
pub(crate) fn log(level: Level, message: &str, pairs: &[(&str, &dyn Display)]) {
    if (level as u8) < LEAST.load(Ordering::Relaxed) {
        return;
    }
    let mut line = format!("level={} msg={message:?}", format!("{level:?}").to_lowercase());
    for (key, value) in pairs {
        let _ = write!(line, " {key}={:?}", value.to_string());
    }
    eprintln!("{line}");
}
