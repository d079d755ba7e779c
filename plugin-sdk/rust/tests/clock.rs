//! The time that a plugin reads, and its timers.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use berth_plugin_sdk::testing::{Host, node, pod};
use berth_plugin_sdk::{Clock, Plugin, Reason, Requeue, Timer};

const DAY: Duration = Duration::from_secs(86_400);

fn noon() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_800_000_000)
}

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// A plugin that turns nodes down before noon, its clock, and when its timers ran.
struct Kit {
    host: Host,
    clock: Clock,
    rings: Sender<u64>,
    rang: Receiver<u64>,
}

fn kit() -> Kit {
    let (clock, (rings, rang)) = (Clock::new(), channel());
    let read = clock.clone();
    let plugin = Plugin::new("alarms", ()).clock(&clock).requeue(&Requeue::new()).filter(move |(), _, _| {
        if read.now() < noon() { Err(Reason::new("node(s) are closed before noon")) } else { Ok(()) }
    });
    let host = Host::run(plugin, [node("n")]);
    Kit { host, clock, rings, rang }
}

fn set(clock: &Clock, rings: &Sender<u64>, wait: Duration, then: &'static [u64]) -> Timer {
    let (own, rings) = (clock.clone(), rings.clone());
    clock.after(wait, move || {
        let now = own.now().duration_since(noon()).expect("a time after noon");
        rings.send(now.as_secs()).expect("a test that listens");
        for each in then {
            let _ = set(&own, &rings, seconds(*each), &[]);
        }
    })
}

#[test]
fn answers_follow_the_time_that_is_said() {
    let mut kit = kit();

    kit.host.set_time(noon() - seconds(1));
    assert!(!kit.host.filter(pod("p")).passes("n"));
    kit.host.set_time(noon());
    assert!(kit.host.filter(pod("p")).passes("n"));
}

#[test]
fn each_timer_runs_at_its_own_time() {
    let mut kit = kit();
    kit.host.set_time(noon());
    let _ = set(&kit.clock, &kit.rings, seconds(60), &[]);
    let _ = set(&kit.clock, &kit.rings, seconds(10), &[5, 500]);
    set(&kit.clock, &kit.rings, seconds(20), &[]).cancel();

    assert_eq!(Some(noon() + seconds(510)), kit.host.set_time(noon() + seconds(100)));
    assert_eq!(vec![10, 15, 60], kit.rang.try_iter().collect::<Vec<_>>());
    assert_eq!(None, kit.host.set_time(noon() + seconds(600)));
}

#[test]
fn timers_keep_what_is_left_of_them() {
    let mut kit = kit();
    kit.host.set_time(noon());
    let _ = set(&kit.clock, &kit.rings, seconds(60), &[]);

    assert_eq!(Some(noon() - DAY + seconds(60)), kit.host.set_time(noon() - DAY));
    let (sender, rang) = channel();
    let _ = kit.clock.after(Duration::from_millis(1), move || sender.send(()).expect("a test that listens"));
    kit.host.sync();

    // A stream without time gives the machine's back.
    rang.recv_timeout(Duration::from_secs(30)).expect("a timer that ran");
    assert_ne!(noon() - DAY, kit.clock.now());
}

#[test]
fn a_timer_that_panics_leaves_the_others_and_none_is_due_at_once() {
    let mut kit = kit();
    kit.host.set_time(noon());
    let _ = kit.clock.after(seconds(1), || panic!("broken"));
    let _ = set(&kit.clock, &kit.rings, seconds(2), &[]);

    assert_eq!(None, kit.host.set_time(noon() + seconds(2)));
    assert_eq!(vec![2], kit.rang.try_iter().collect::<Vec<_>>());
    let _ = set(&kit.clock, &kit.rings, Duration::ZERO, &[]);
    assert!(kit.host.set_time(noon() + seconds(2)).is_some_and(|wake| wake > noon() + seconds(2)));
}
