//! Hello keeps pods on their own team's nodes, and off nodes without a team where it can: a
//! template to copy. Teams are named by a label of nodes and pods.

use std::process::ExitCode;

use berth_plugin_sdk::schemars::{self, JsonSchema};
use berth_plugin_sdk::{Action, Arguments, Event, EventInterest, Node, Plugin, Pod, Reason, labels};
use serde::{Deserialize, Serialize};

const OTHER_TEAM: Reason = Reason::new("node(s) belonged to another team");

#[derive(Deserialize, JsonSchema, Serialize)]
#[serde(default)]
struct Settings {
    /// The label of nodes and pods that names a team.
    label: String,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { label: "team".into() }
    }
}

struct Hello {
    arguments: Arguments<Settings>,
}

impl Hello {
    /// Turns down the nodes of other teams.
    fn filter(&self, pod: &Pod, node: &Node) -> Result<(), Reason> {
        let label = &self.arguments.of(pod).label;
        match labels(node).get(label) {
            Some(team) if labels(pod).get(label) != Some(team) => Err(OTHER_TEAM),
            _ => Ok(()),
        }
    }

    /// Prefers the team's own nodes to those without a team.
    fn score(&self, pod: &Pod, node: &Node) -> i64 {
        if labels(node).contains_key(&self.arguments.of(pod).label) { 100 } else { 0 }
    }

    /// Tries a pod again when a node is not another team's any more.
    fn hint(&self, pod: &Pod, event: &Event) -> bool {
        match event.nodes() {
            Ok((_, Some(node))) => self.filter(pod, &node).is_ok(),
            _ => true,
        }
    }
}

fn plugin() -> Plugin<Hello> {
    let arguments = Arguments::new();
    Plugin::new("hello", Hello { arguments: arguments.clone() })
        .version("0.1.0")
        .arguments(&arguments)
        .filter(Hello::filter)
        .score(Hello::score)
        .queueing_hint(Hello::hint)
        .events([EventInterest::new("Node", [Action::Add, Action::UpdateNodeLabel])])
        .pod_fields(["/metadata/labels", "/spec/schedulerName"])
        .node_local()
}

fn main() -> ExitCode {
    berth_plugin_sdk::main(plugin())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use berth_plugin_sdk::serde_json::json;
    use berth_plugin_sdk::testing::{Host, NodeBuilder, node, pod};

    use super::*;

    fn nodes() -> [NodeBuilder; 3] {
        [node("blue").label("team", "blue"), node("red").label("team", "red"), node("free")]
    }

    #[test]
    fn pods_stay_off_other_teams_nodes_and_prefer_their_own() {
        let mut host = Host::run(plugin(), nodes());

        let (verdict, scores) = host.filter_score(pod("p").label("team", "blue"));

        assert_eq!(["blue", "free"], *verdict.passing());
        assert_eq!(BTreeMap::from([("blue".to_string(), 100), ("free".to_string(), 0)]), scores);
    }

    #[test]
    fn the_label_is_an_argument() {
        let mut host = Host::run_with(plugin(), &json!({"label": "tenant"}), nodes());

        assert_eq!(["blue", "red", "free"], *host.filter(pod("p").label("team", "blue")).passing());
    }

    #[test]
    fn a_node_that_joins_the_team_is_worth_another_attempt() {
        let mut host = Host::run(plugin(), nodes());
        let joins = |team: &str| Event {
            resource: "Node".into(),
            action: Action::UpdateNodeLabel,
            old: None,
            new: Some(json!({"metadata": {"labels": {"team": team}}}).to_string().into_bytes()),
        };

        let table = host.hints([pod("p").label("team", "blue")], &[joins("red"), joins("blue")]);

        assert_eq!(vec![vec![false], vec![true]], table);
    }
}
