//! The plugin that the sidecar benchmark starts: it turns down every tenth node,
//! and scores the others by their number, all at once.
//!
//!     benchplugin NAME ADDRESS

use std::env;
use std::error::Error;

use berth_plugin_sdk::{Nodes, Plugin, Pod, Reason, Server, Verdicts};
use tokio::signal::unix::{SignalKind, signal};

const LEFT_OUT: usize = 10;
const WRONG_NUMBER: Reason = Reason::new("node(s) had the wrong number");

fn filter(nodes: &Nodes<'_>) -> Verdicts {
    let codes = (0..nodes.len()).map(|index| u8::from(index % LEFT_OUT == 0)).collect();
    Verdicts { codes, reasons: vec![WRONG_NUMBER] }
}

fn score(nodes: &Nodes<'_>) -> Vec<i64> {
    (0..=100).cycle().take(nodes.len()).collect()
}

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let (Some(name), Some(address)) = (arguments.next(), arguments.next()) else {
        return Err("two arguments are needed: NAME ADDRESS".into());
    };
    // As the Python plugin beside it, it follows pods too.
    let plugin = Plugin::new(name, ())
        .filter_nodes(|(), _: &Pod, nodes| filter(nodes))
        .score_nodes(|(), _: &Pod, nodes| score(nodes))
        .wants_pods();
    let running = Server::new(plugin, address)?.start().await?;
    signal(SignalKind::terminate())?.recv().await;
    running.stop().await;
    Ok(())
}
