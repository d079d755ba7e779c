//! What a plugin knows of time.
//!
//! ```text
//! own --Time--> told --Begin of a stream without Time--> own
//! ```

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::sync::Notify;

use crate::errors::guarded;

type Function = Box<dyn FnOnce() + Send>;

/// What a plugin knows of time: the machine's, until a scheduler says the time;
/// that scheduler's from then on. A plugin that is given one
/// ([`Plugin::clock`](crate::Plugin::clock)) reads the time and sets timers by it
/// alone, so that a simulation plays it in virtual time. From any thread; clones are
/// the same clock.
///
/// The machine's time is read once, and counted on from there: the clock never
/// jumps, whatever is done to the machine's. It goes back only where another run of
/// a scheduler says an earlier time, which [`Plugin::state_reset`](crate::Plugin::state_reset)
/// announces as a changed epoch. Timers keep what is left of them where the clock
/// turns from the machine's time to a scheduler's and back.
#[derive(Clone)]
pub struct Clock {
    kept: Arc<Mutex<Kept>>,
    /// Wakes the task that waits for the next timer.
    changed: Arc<Notify>,
}

/// A function that waits for its time.
pub struct Timer {
    cancelled: Arc<AtomicBool>,
}

impl Timer {
    /// Has the function not called; nothing happens where it was called, or
    /// cancelled, before. A timer that is dropped runs all the same.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }
}

struct Kept {
    began: Instant,
    began_micros: i64,
    /// The scheduler's time, none while the clock is the plugin's own.
    told: Option<i64>,
    /// What is added to the times at which timers are kept, so that a turn moves all of them.
    shift: i64,
    timers: BinaryHeap<Reverse<Waiting>>,
    numbers: u64,
}

struct Waiting {
    due: i64,
    number: u64,
    cancelled: Arc<AtomicBool>,
    function: Function,
}

impl Waiting {
    fn place(&self) -> (i64, u64) {
        (self.due, self.number)
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.place() == other.place()
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.place().cmp(&other.place())
    }
}

impl Default for Clock {
    fn default() -> Self {
        Clock::new()
    }
}

impl Clock {
    /// The machine's clock.
    #[must_use]
    pub fn new() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let kept = Kept {
            began: Instant::now(),
            began_micros: micros_of(since),
            told: None,
            shift: 0,
            timers: BinaryHeap::new(),
            numbers: 0,
        };
        Clock { kept: Arc::new(Mutex::new(kept)), changed: Arc::default() }
    }

    /// What time it is.
    #[must_use]
    pub fn now(&self) -> SystemTime {
        at(self.kept().micros())
    }

    /// Calls the function once so much time has passed: by itself, between two calls
    /// of the scheduler. What it panics with is logged.
    pub fn after(&self, wait: Duration, function: impl FnOnce() + Send + 'static) -> Timer {
        let cancelled = Arc::new(AtomicBool::new(false));
        let mut kept = self.kept();
        kept.numbers += 1;
        let micros = micros_of(wait.saturating_add(Duration::from_nanos(999))).max(1);
        let due = kept.micros().saturating_add(micros) - kept.shift;
        let waiting =
            Waiting { due, number: kept.numbers, cancelled: cancelled.clone(), function: Box::new(function) };
        kept.timers.push(Reverse(waiting));
        drop(kept);
        self.changed.notify_one();
        Timer { cancelled }
    }

    /// Stands at that time of the scheduler, after each timer that is due by then was
    /// called at its own; when the next one is due. Called in the plugin's turn.
    pub(crate) fn reach(&self, micros: i64) -> Option<i64> {
        let mut kept = self.kept();
        if kept.told.is_none_or(|told| micros < told) {
            kept.turn(Some(micros));
        }
        drop(kept);
        while let Some(function) = self.due(micros) {
            // What went wrong was logged.
            let _ = guarded("timer", function);
        }
        let mut kept = self.kept();
        kept.told = Some(micros);
        kept.next()
    }

    /// Goes on by the machine's time.
    pub(crate) fn own(&self) {
        let mut kept = self.kept();
        if kept.told.is_some() {
            kept.turn(None);
            self.changed.notify_one();
        }
    }

    /// Calls what is due by the machine's time. Called in the plugin's turn.
    pub(crate) fn ring(&self) {
        let kept = self.kept();
        if kept.told.is_some() {
            return;
        }
        let now = kept.micros();
        drop(kept);
        while let Some(function) = self.due(now) {
            let _ = guarded("timer", function);
        }
    }

    /// Waits until a timer is due by the machine's time.
    pub(crate) async fn rings(&self) {
        loop {
            let left = {
                let mut kept = self.kept();
                let now = kept.micros();
                kept.next().filter(|_| kept.told.is_none()).map(|due| due - now)
            };
            match left {
                Some(left) if left <= 0 => return,
                Some(left) => {
                    let wait = Duration::from_micros(left.unsigned_abs());
                    tokio::select! { () = tokio::time::sleep(wait) => {}, () = self.changed.notified() => {} }
                }
                None => self.changed.notified().await,
            }
        }
    }

    /// Takes the next timer that is due by then, and stands at its time.
    fn due(&self, micros: i64) -> Option<Function> {
        let mut kept = self.kept();
        let due = kept.next().filter(|due| *due <= micros)?;
        kept.told = kept.told.map(|told| told.max(due));
        kept.timers.pop().map(|Reverse(waiting)| waiting.function)
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn micros(&self) -> i64 {
        self.told.unwrap_or_else(|| self.began_micros + micros_of(self.began.elapsed()))
    }

    /// Counts by another time; timers keep what is left of them.
    fn turn(&mut self, told: Option<i64>) {
        let before = self.micros();
        self.told = told;
        self.shift += self.micros() - before;
    }

    /// When the next timer is due.
    fn next(&mut self) -> Option<i64> {
        while let Some(Reverse(first)) = self.timers.peek() {
            if !first.cancelled.load(Ordering::Relaxed) {
                return Some(first.due + self.shift);
            }
            self.timers.pop();
        }
        None
    }
}

fn micros_of(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

/// That time, to the microsecond.
pub(crate) fn at(unix_micros: i64) -> SystemTime {
    let distance = Duration::from_micros(unix_micros.unsigned_abs());
    if unix_micros < 0 { UNIX_EPOCH - distance } else { UNIX_EPOCH + distance }
}
