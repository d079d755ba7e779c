//! Plugins with one usual mistake each, by the name in MISTAKE: what the conformance kit
//! has to find.

use std::collections::HashMap;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};

use berth_plugin_sdk::Plugin;

fn main() -> ExitCode {
    let name = std::env::var("MISTAKE").unwrap_or_default();
    let plugin = Plugin::new(&name, ());
    let turn = AtomicI64::new(0);
    let numbers: Mutex<HashMap<String, i64>> = Mutex::default();
    let plugin = match name.as_str() {
        "too-short" => plugin.score_nodes(|(), _, nodes| vec![0; nodes.len() - 1]),
        "asked-only" => plugin.score_nodes(|(), _, nodes| nodes.asked().map(|_| 10).collect::<Vec<i64>>()),
        "keeps-state" => plugin.score(move |(), _, _| (turn.fetch_add(1, Ordering::Relaxed) + 1) % 7),
        "order-matters" => plugin.score(move |(), pod, _| {
            let mut numbers = numbers.lock().unwrap();
            let next = i64::try_from(numbers.len()).unwrap();
            let uid = pod.metadata.uid.clone().unwrap_or_default();
            100 / (1 + *numbers.entry(uid).or_insert(next))
        }),
        _ => plugin.wants_pods().score_nodes(|(), _, nodes| {
            nodes.scores(|_, node| {
                -i64::try_from(nodes.pods_on(node.metadata.name.as_deref().unwrap_or("")).count()).unwrap()
            })
        }),
    };
    berth_plugin_sdk::main(plugin)
}
