//! Arguments of profiles: taken over whole, or refused with all that is wrong.

use berth_plugin_sdk::schemars::{self, JsonSchema};
use berth_plugin_sdk::serde_json::{Value, json};
use berth_plugin_sdk::testing::{Host, PROFILE};
use berth_plugin_sdk::{ArgumentError, Arguments, Plugin};
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
enum Policy {
    Packing,
    Spreading,
}

#[derive(Deserialize, JsonSchema, Serialize)]
#[serde(default, rename_all = "camelCase")]
struct Settings {
    /// Which nodes come first.
    policy: Policy,
    #[schemars(range(min = 1, max = 60))]
    wait_seconds: u32,
    racks: Vec<Rack>,
    label: Option<String>,
}

#[derive(Deserialize, JsonSchema, Serialize)]
struct Rack {
    name: String,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { policy: Policy::Packing, wait_seconds: 5, racks: Vec::new(), label: None }
    }
}

fn refusals(arguments: &Value) -> Vec<String> {
    let mut found =
        Host::serve(Plugin::new("p", ()).arguments(&Arguments::<Settings>::new())).configure(Some(arguments));
    found.sort();
    found
}

#[test]
fn everything_that_is_wrong_is_named_with_its_path() {
    let wrong = json!({
        "policy": "none", "waitSeconds": 61, "racks": [{}, {"name": 1}], "label": 3, "more": true,
    });

    assert_eq!(
        [
            "label: expected string or null, got 3",
            "more: unknown argument",
            "policy: \"none\" is none of packing, spreading",
            "racks[0].name: missing",
            "racks[1].name: expected string, got 1",
            "waitSeconds: 61 is more than 60"
        ],
        *refusals(&wrong)
    );
}

#[test]
fn what_is_not_said_is_the_default_and_a_refusal_changes_nothing() {
    let arguments = Arguments::<Settings>::new();
    let mut host = Host::serve(Plugin::new("p", ()).arguments(&arguments));
    assert_eq!(Vec::<String>::new(), host.configure(Some(&json!({"policy": "spreading", "label": "x"}))));
    assert_eq!(1, host.configure(Some(&json!({"policy": "packing", "waitSeconds": 0}))).len());

    let taken = arguments.of_profile(PROFILE);

    assert_eq!((Policy::Spreading, 5, Some("x")), (taken.policy, taken.wait_seconds, taken.label.as_deref()));
    assert_eq!(Policy::Packing, arguments.of_profile("another").policy);
}

#[test]
fn a_check_sees_what_has_passed_and_the_profile() {
    let arguments = Arguments::checked(|profile, settings: &Settings| {
        let problem = format!("not with {} in {}", settings.wait_seconds, profile.name);
        if profile.shadow { vec![ArgumentError::new("policy", problem)] } else { Vec::new() }
    });
    let mut host = Host::serve(Plugin::new("p", ()).arguments(&arguments));

    assert_eq!(Vec::<String>::new(), host.configure(None::<&()>));
    assert_eq!(["policy: not with 7 in default-scheduler"], *host.configure_shadow(Some(&json!({"waitSeconds": 7}))));
}

#[test]
fn a_plugin_without_arguments_takes_none() {
    let mut host = Host::serve(Plugin::new("p", ()));

    assert_eq!(["x: unknown argument of profile default-scheduler"], *host.configure(Some(&json!({"x": 1}))));
    assert_eq!(Vec::<String>::new(), host.configure(Some(&json!({}))));
}
