//! Lines on standard error: time is the log collector's, level and pairs are here.

use std::fmt::{Display, Write as _};
use std::str::FromStr;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

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

const LINES_AT_ONCE: f64 = 20.0;
const LINES_A_SECOND: f64 = 0.5;

/// Bounds the lines about functions of the author that fail.
pub(crate) struct FailureLog {
    left: f64,
    looked: Option<Instant>,
    left_out: usize,
}

static FAILURES: Mutex<FailureLog> = Mutex::new(FailureLog::new());

impl FailureLog {
    const fn new() -> Self {
        FailureLog { left: LINES_AT_ONCE, looked: None, left_out: 0 }
    }

    /// How many lines were left out before this one; none where there is no room for it.
    fn admits(&mut self, now: Instant) -> Option<usize> {
        if let Some(looked) = self.looked {
            let more = now.duration_since(looked).as_secs_f64() * LINES_A_SECOND;
            self.left = LINES_AT_ONCE.min(self.left + more);
        }
        self.looked = Some(now);
        if self.left < 1.0 {
            self.left_out += 1;
            return None;
        }
        self.left -= 1.0;
        Some(std::mem::take(&mut self.left_out))
    }
}

/// Writes that a function of the author failed, unless there are too many such lines.
pub(crate) fn log_failure(message: &str, of: &str, text: &str) {
    let admitted = FAILURES.lock().unwrap_or_else(PoisonError::into_inner).admits(Instant::now());
    match admitted {
        None => (),
        Some(0) => log(Level::Error, message, &[("of", &of), ("error", &text)]),
        Some(left_out) => log(Level::Error, message, &[("of", &of), ("error", &text), ("left_out", &left_out)]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// A function that fails at every pod has few lines, and the next one counts those left out.
    #[test]
    fn failures_are_logged_at_a_bounded_rate() {
        let (begin, mut failures) = (Instant::now(), FailureLog::new());
        let lines = (0..100).filter(|_| failures.admits(begin).is_some()).count();

        assert_eq!(20, lines);
        assert_eq!(Some(80), failures.admits(begin + Duration::from_secs(2)));
    }
}
