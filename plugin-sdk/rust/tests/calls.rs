//! Every function that a plugin may have, asked over a socket.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use berth_plugin_sdk::serde_json::json;
use berth_plugin_sdk::testing::{Host, PodBuilder, node, pod};
use berth_plugin_sdk::{
    Action, Call, Code, CycleOutcome, Event, EventInterest, MetadataPatch, Node, Nodes, Nomination, Normalization,
    Permission, Plugin, Pod, PodStage, Reason, Reply, Requeue, Status, Verdicts, labels,
};

const FULL: Reason = Reason::new("node(s) were full");
const NEVER: Reason = Reason::unresolvable("node(s) never fit");

fn nodes() -> [berth_plugin_sdk::testing::NodeBuilder; 3] {
    [node("n0"), node("n1").label("size", "large"), node("n2")]
}

// The form is that of functions with a state.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn large(_: &(), _: &Pod, node: &Node) -> Result<(), Reason> {
    if labels(node).contains_key("size") { Ok(()) } else { Err(FULL) }
}

#[test]
fn a_node_that_is_turned_down_is_not_scored() {
    let mut host = Host::run(Plugin::new("p", ()).filter(large).score(|(), _, _| 7), nodes());

    let (verdict, scores) = host.filter_score(pod("p"));

    assert_eq!((vec!["n1"], FULL), (verdict.passing(), verdict.rejected["n0"].clone()));
    assert_eq!(BTreeMap::from([("n1".to_string(), 7)]), scores);
}

#[test]
fn only_the_nodes_of_interest_are_asked_about() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let heard = seen.clone();
    let plugin = Plugin::new("p", ()).filter(move |(), _, node| {
        heard.lock().unwrap().push(node.metadata.name.clone().unwrap_or_default());
        Err(FULL)
    });
    let mut host = Host::run(plugin, nodes());
    host.once = true;

    let verdict = host.filter_these(pod("p"), &["n2"]);

    assert_eq!((vec!["n2".to_string()], 1), (seen.lock().unwrap().clone(), verdict.rejected.len()));
}

#[test]
fn listed_nodes_are_answered_as_those_of_a_bitmap() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let heard = seen.clone();
    let number = |node: &Node| i64::from(node.metadata.name.as_deref().unwrap_or_default().as_bytes()[1] - b'0');
    let by_node = Plugin::new("p", ())
        .filter(move |(), _, node| {
            heard.lock().unwrap().push(number(node));
            if number(node) == 1 { Err(NEVER) } else { Ok(()) }
        })
        .score(move |(), _, node| 10 * number(node));
    let at_once = Plugin::new("p", ())
        .filter_nodes(|(), _, nodes| Verdicts {
            codes: (0..nodes.len()).map(|index| u8::from(index == 1)).collect(),
            reasons: vec![NEVER],
        })
        .score_nodes(|(), _, nodes| (0..).step_by(10).take(nodes.len()).collect::<Vec<_>>());
    for plugin in [by_node, at_once] {
        let mut host = Host::run(plugin, nodes());
        host.once = true;
        let answers = [false, true].map(|lists_candidates| {
            host.lists_candidates = lists_candidates;
            let (both, scores) = host.filter_score_these(pod("p"), &["n1", "n2"]);
            let verdict = host.filter_these(pod("p"), &["n1", "n2"]);
            assert_eq!(verdict.rejected, both.rejected);
            (verdict.rejected, host.score_these(pod("p"), &["n0", "n2"]), scores)
        });
        let expected = (
            BTreeMap::from([("n1".to_string(), NEVER)]),
            Some(BTreeMap::from([("n0".to_string(), 0), ("n2".to_string(), 20)])),
            BTreeMap::from([("n2".to_string(), 20)]),
        );
        assert_eq!([expected.clone(), expected], answers);
    }
    assert_eq!([1, 2].repeat(4), *seen.lock().unwrap(), "no other node was looked at");
}

#[test]
fn verdicts_on_all_nodes_at_once_see_the_pods_on_them() {
    let crowded = |(): &(), _: &Pod, nodes: &Nodes<'_>| Verdicts {
        codes: (0..nodes.len())
            .map(|index| {
                let name = nodes.at(index).metadata.name.as_deref().unwrap_or_default();
                if nodes.pods_on(name).next().is_some() { 2 } else { 0 }
            })
            .collect(),
        reasons: vec![FULL, NEVER],
    };
    let mut host = Host::run(Plugin::new("p", ()).filter_nodes(crowded).wants_pods(), nodes());
    host.cluster.put_pod(pod("there").on("n1"), "n1", PodStage::Placed, 0);

    assert_eq!(vec!["n0", "n2"], host.filter(pod("p")).passing());
    assert_eq!(Ok(()), host.filter_without(pod("p"), "n1", &["pod-default-there"]));
    assert_eq!(vec!["n0", "n2"], host.filter(pod("p")).passing(), "what the overlay removed is there again");

    host.cluster.remove_pod(pod("there"));
    assert_eq!(vec!["n0", "n1", "n2"], host.filter(pod("p")).passing());
}

#[test]
fn what_contradicts_the_protocol_fails_the_attempt_with_a_text() {
    type Filter = fn(&(), &Pod, &Nodes<'_>) -> Verdicts;
    let cases: [(Filter, &str); 4] = [
        (|(), _, _| Verdicts::default(), "p: expected 3 codes, got 0"),
        (|(), _, _| Verdicts { codes: vec![1; 3], reasons: Vec::new() }, "p: code 1 has no reason: there are 0"),
        (
            |(), _, _| Verdicts { codes: vec![1; 3], reasons: vec![Reason::new("")] },
            "p: a reason needs a text and an unschedulable code, not \"\" and CODE_UNSCHEDULABLE",
        ),
        (|(), _, _| panic!("out of luck"), "p: filter: out of luck"),
    ];
    for (filter, expected) in cases {
        let status = Host::run(Plugin::new("p", ()).filter_nodes(filter), nodes()).filter_status(pod("p"));
        assert_eq!((Code::Error, vec![expected.to_string()]), (status.code, status.reasons));
    }
}

#[test]
fn scores_take_the_form_that_holds_them() {
    for (low, high) in [(0, 200), (-5, 100_000), (-5, 1 << 40)] {
        let plugin = Plugin::new("p", ())
            .score_nodes(move |(), _, nodes| {
                let mut points = vec![low; nodes.len()];
                points[1] = high;
                points
            })
            .normalization(Normalization::MinMax);
        let scores = Host::run(plugin, nodes()).score(pod("p")).expect("an opinion");
        assert_eq!(vec![&low, &high, &low], scores.values().collect::<Vec<_>>());
    }
}

#[test]
fn a_plugin_without_an_opinion_does_not_score() {
    assert_eq!(None, Host::run(Plugin::new("p", ()).score_nodes(|(), _, _| None), nodes()).score(pod("p")));
}

#[test]
fn verdicts_on_the_pod_come_before_those_on_nodes() {
    let cases = [
        (Status::skip(), Code::Skip, 3),
        (Status::pending("the licence server is away"), Code::Pending, 0),
        (Status::unresolvable("no such queue"), Code::UnschedulableAndUnresolvable, 0),
    ];
    for (status, code, passing) in cases {
        let plugin = Plugin::new("p", ()).pre_filter(move |(), _, _| Err(status.clone())).filter(large);
        let verdict = Host::run(plugin, nodes()).filter(pod("p"));
        assert_eq!((code, passing), (verdict.status.code, verdict.passing().len()));
    }
}

#[test]
fn an_error_of_any_kind_ends_an_attempt() {
    let plugin = Plugin::new("p", ()).pre_enqueue(|(), _: &Call, _: &Pod| -> Result<(), Status> {
        "many".parse::<i32>()?;
        Ok(())
    });

    let status = Host::run(plugin, nodes()).pre_enqueue(pod("p"));

    assert_eq!((Code::Error, vec!["invalid digit found in string".to_string()]), (status.code, status.reasons));
}

#[test]
fn room_is_made_on_a_node_for_a_reason() {
    let plugin = Plugin::new("p", ()).post_filter(|(), _, _, nodes, verdicts| {
        let reason = &verdicts.reasons[usize::from(verdicts.codes[0]) - 1];
        let name = nodes.at(nodes.len() - 1).metadata.name.clone().unwrap_or_default();
        Ok(Nomination::Node { name, victims: vec![reason.text.to_string()] })
    });

    let nomination = Host::run(plugin, nodes()).post_filter(pod("p"), &NEVER);

    assert_eq!(Ok(Nomination::Node { name: "n2".into(), victims: vec!["node(s) never fit".into()] }), nomination);
}

/// What the plugin [`remembering`] remembers.
type Held = Vec<(String, u32)>;

fn remembering() -> Plugin<Held> {
    Plugin::new("p", Held::new())
        .reserve(
            |held: &mut Held, call: &Call, _: &Pod, node: &Node| -> Result<Option<MetadataPatch>, Status> {
                let name = node.metadata.name.clone().unwrap_or_default();
                held.push((name.clone(), call.key.attempt));
                if held.len() > 2 { Err(Status::unschedulable("no more")) } else { Ok(None) }
            },
            |held, call, node_name| held.retain(|each| *each != (node_name.to_string(), call.key.attempt)),
        )
        .permit(|held: &mut Held, _: &Call, _: &Pod, _: &Node| {
            Ok(if held.len() < 2 { Permission::Wait(Duration::from_secs(3)) } else { Permission::Granted })
        })
        .pre_bind(|held: &mut Held, _: &Call, _: &Pod, _: &Node| {
            Ok(Some(MetadataPatch::annotate("p.example.com/held", held.len().to_string())))
        })
        .post_bind(|held, _, _| held.clear())
}

#[test]
fn what_is_reserved_is_seen_by_later_calls_and_given_back() {
    let mut host = Host::run(remembering(), nodes());
    let mine = || -> PodBuilder { pod("p") };

    assert_eq!(Code::Success, host.reserve(mine(), "n0").code);
    assert_eq!(Ok(Permission::Wait(Duration::from_secs(3))), host.permit(mine(), "n0"));
    host.reserve(pod("q"), "n1");
    assert_eq!(Ok(Permission::Granted), host.permit(mine(), "n0"));
    assert_eq!("no more", host.reserve(pod("r"), "n1").reasons[0]);
    host.unreserve(pod("r"), "n1");
    assert_eq!(Ok(MetadataPatch::annotate("p.example.com/held", "1")), host.pre_bind(mine(), "n0"));
    host.post_bind(mine(), "n0");
    assert_eq!(Ok(MetadataPatch::annotate("p.example.com/held", "0")), host.pre_bind(mine(), "n0"));
}

#[test]
fn a_node_that_went_fails_the_attempt() {
    let mut host = Host::run(remembering(), nodes());

    let status = host.reserve(pod("p"), "gone");

    assert_eq!((Code::Unschedulable, vec!["node gone is gone".to_string()]), (status.code, status.reasons));
}

#[test]
fn a_binder_may_answer_later_or_leave_it_to_the_next() {
    let plugin = Plugin::new("p", ()).bind(|(), call: &Call, _: &Pod, _: &Node, _: &BTreeMap<String, String>| {
        if call.key.name == "other" {
            return Reply::from(Err(Status::skip()));
        }
        Reply::later(async {
            tokio::task::yield_now().await;
            Err(Status::error("the API server is away"))
        })
    });
    let mut host = Host::run(plugin, nodes());

    assert_eq!(Code::Skip, host.bind(pod("other"), "n0").code);
    assert_eq!(vec!["the API server is away"], host.bind(pod("p"), "n0").reasons);
}

#[test]
fn the_end_of_an_attempt_is_heard() {
    let plugin = Plugin::new("p", Vec::new()).cycle_done(|heard, call, outcome| {
        heard.push((call.key.to_string(), outcome.result, outcome.node_name.clone()));
    });
    let heard = plugin.shared();
    let mut host = Host::run(plugin, nodes());

    host.cycle_done(pod("p"), CycleOutcome::Bound, Some("n0"));

    assert_eq!(
        [("default/p".to_string(), CycleOutcome::Bound, Some("n0".to_string()))],
        *heard.lock().unwrap().clone()
    );
}

#[test]
fn an_event_is_weighed_for_each_pod() {
    let hint = |(): &(), pod: &Pod, event: &Event| {
        event
            .nodes()
            .is_ok_and(|(_, node)| node.is_some_and(|node| labels(&node).get("for") == pod.metadata.name.as_ref()))
    };
    let plugin =
        Plugin::new("p", ()).filter(large).queueing_hint(hint).events([EventInterest::new("Node", [Action::Add])]);
    let mut host = Host::run(plugin, nodes());
    let comes = |name: &str| Event {
        resource: "Node".into(),
        action: Action::Add,
        old: None,
        new: Some(json!({"metadata": {"labels": {"for": name}}}).to_string().into_bytes()),
    };

    let table = host.hints([pod("a"), pod("b")], &[comes("b"), comes("c")]);

    assert_eq!(vec![vec![false, true], vec![false, false]], table);
}

#[test]
fn what_has_functions_is_announced_and_nothing_more() {
    let plugin = remembering().requeue(&Requeue::new()).pre_enqueue(|_, _, _| Ok(()));

    assert_eq!(
        [
            "EXTENSION_POINT_PRE_ENQUEUE",
            "EXTENSION_POINT_RESERVE",
            "EXTENSION_POINT_PERMIT",
            "EXTENSION_POINT_PRE_BIND",
            "EXTENSION_POINT_POST_BIND",
            "EXTENSION_POINT_REQUEUE"
        ],
        *Host::serve(plugin).handshake()
    );
}

#[test]
#[should_panic(expected = "expected 3 scores, got 1")]
fn a_vector_of_the_asked_nodes_alone_ends_a_test() {
    let plugin = Plugin::new("pushes", ()).score_nodes(|(), _, nodes| Some(nodes.asked().map(|_| 1).collect()));

    Host::run(plugin, ["a", "b", "c"].map(node)).score(pod("p"));
}

#[test]
#[should_panic(expected = "Filter answered ERROR: fails: filter: out of luck")]
fn an_error_ends_a_test_with_the_plugins_text() {
    let plugin = Plugin::new("fails", ()).filter_nodes(|(), _, _| panic!("out of luck"));

    Host::run(plugin, ["a", "b", "c"].map(node)).filter(pod("p"));
}

#[test]
fn builders_make_vectors_with_an_entry_for_each_node() {
    let plugin = Plugin::new("builds", ())
        .filter_nodes(|(), _, nodes| {
            nodes.verdicts(|index, _| if index == 1 { Err(Reason::new("the second")) } else { Ok(()) })
        })
        .score_nodes(|(), _, nodes| Some(nodes.scores(|index, _| 10 * i64::try_from(index).unwrap_or_default())));
    let mut host = Host::run(plugin, ["a", "b", "c"].map(node));

    let (verdict, scores) = host.filter_score_these(pod("p"), &["b", "c"]);

    assert_eq!(vec!["c"], verdict.passing());
    assert_eq!(BTreeMap::from([("c".to_string(), 20)]), scores);
}
