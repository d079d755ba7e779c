//! The queue's order, and where pod groups go, asked over a socket.

use std::collections::BTreeMap;

use berth_plugin_sdk::testing::{Host, PodBuilder, node, pod};
use berth_plugin_sdk::{
    Code, GroupPreemption, Nodes, Normalization, Placement, PlacementProgress, Plugin, Pod, PodGroup,
    ProposedPlacement, Server, SortKey, Status,
};

fn host<S: Send + 'static>(plugin: Plugin<S>) -> Host {
    Host::run(plugin, [node("a"), node("b"), node("c")])
}

fn pair() -> [PodBuilder; 2] {
    [pod("p"), pod("q")]
}

#[test]
fn pods_have_the_keys_that_the_plugin_gives_them() {
    let plugin = Plugin::new("order", 0).sort_key(|asked, pod: &Pod| {
        assert_ne!(Some("broken"), pod.metadata.name.as_deref());
        *asked += 1;
        [-5, *asked]
    });
    let mut host = host(plugin);

    let keys = host.sort_keys([pod("p"), pod("broken"), pod("q")]);

    assert_eq!(vec![vec![-5, 1], vec![], vec![-5, 2]], keys);
}

#[test]
fn what_becomes_of_the_queue_is_heard() {
    let plugin = Plugin::new("order", Vec::new())
        .sort_key(|_, _| SortKey::default())
        .pods_left(|heard, uids| heard.push(uids.join(", ")))
        .queue_reset(|heard, profile| heard.push(profile.to_string()));
    let heard = plugin.shared();
    let mut host = host(plugin);

    host.pods_left(&["u", "v"]);
    host.queue_reset();

    assert_eq!(["u, v", "default-scheduler"], **heard.lock().unwrap());
}

#[test]
fn what_hears_of_the_queue_needs_a_key() {
    let plugin = Plugin::new("order", ()).queue_reset(|(), _| {});

    let problem = Server::new(plugin, "unix:/x").err().expect("a contradiction");

    assert!(problem.to_string().ends_with("pods_left and queue_reset need sort_key"), "{problem}");
}

fn placement(name: &str, nodes: &[bool]) -> Placement {
    Placement { name: name.into(), nodes: nodes.to_vec() }
}

/// A plugin with these placements for every group.
fn places(answer: Result<Vec<Placement>, Status>) -> Plugin<()> {
    Plugin::new("groups", ()).generate_placements(move |(), _, _, _| answer.clone())
}

#[test]
fn a_group_may_go_to_the_nodes_of_each_placement() {
    let both = vec![placement("ends", &[true, false, true]), placement("middle", &[false, true, false])];
    let mut host = host(places(Ok(both)));
    let named = |name: &str, nodes: &[&str]| (name.to_string(), nodes.iter().map(ToString::to_string).collect());

    assert_eq!(Ok(vec![named("ends", &["a", "c"]), named("middle", &["b"])]), host.generate_placements("g", pair()));
    assert_eq!(Ok(vec![named("ends", &["c"])]), host.generate_placements_of("g", pair(), &["c"]));
}

#[test]
fn a_group_may_have_no_placements() {
    let none: Vec<Placement> = Vec::new();
    let three = [true; 3];
    let cases = [
        (Err(Status::skip()), Status::skip()),
        (Err(Status::unschedulable("no place is large enough")), Status::unschedulable("no place is large enough")),
        (Err(Status::pending("later")), Status::error("groups: CODE_PENDING is no answer here")),
        (
            Ok(vec![placement("", &three)]),
            Status::error("groups: placement \"\": expected a name and 3 nodes, got 3"),
        ),
        (
            Ok(vec![placement("x", &[true])]),
            Status::error("groups: placement \"x\": expected a name and 3 nodes, got 1"),
        ),
        (
            Ok(vec![placement("x", &three), placement("x", &three)]),
            Status::error("groups: placement \"x\": two have this name"),
        ),
    ];
    for (answer, expected) in cases {
        assert_eq!(Err(expected), host(places(answer)).generate_placements("g", pair()));
    }
    assert_eq!(Ok(Vec::new()), host(places(Ok(none))).generate_placements("g", pair()));
}

#[test]
fn placements_are_scored_by_where_their_pods_go() {
    let plugin = Plugin::new("groups", ()).normalization(Normalization::MinMax).score_placements(
        |(), group: &PodGroup, pod: &Pod, nodes: &Nodes<'_>, proposed: &[ProposedPlacement<'_>]| {
            assert_eq!(("g", Some("p")), (group.name.as_str(), pod.metadata.name.as_deref()));
            let cost = |each: &ProposedPlacement<'_>| {
                let pods = each.assignments.iter().map(|(key, index)| {
                    assert!(each.placement.nodes[*index]);
                    let letter = nodes.at(*index).metadata.name.as_ref().expect("a name").as_bytes()[0];
                    i64::from(letter - b'a') + i64::from(key.name == "q")
                });
                -pods.sum::<i64>()
            };
            proposed.iter().map(cost).collect::<Vec<_>>()
        },
    );
    let proposed = [BTreeMap::from([("p", "a"), ("q", "c")]), BTreeMap::from([("q", "b")])];

    assert_eq!(Ok(vec![-3, -2]), host(plugin).score_placements("g", pair(), &proposed));
}

#[test]
fn scores_of_placements_may_be_none_and_are_checked_as_those_of_nodes() {
    let out_of_range = "groups: scores from 0 to 101 without normalization: 0 to 100 is the range";
    for (points, expected) in [
        (None, Status::skip()),
        (Some(vec![1, 2]), Status::new(Code::Error, "groups: expected 1 scores, got 2")),
        (Some(vec![101]), Status::error(out_of_range)),
    ] {
        let plugin = Plugin::new("groups", ()).score_placements(move |(), _, _, _, _| points.clone());

        let answer = host(plugin).score_placements("g", pair(), &[BTreeMap::from([("p", "a")])]);

        assert_eq!(Err(expected), answer);
    }
}

#[test]
fn a_group_is_judged_by_each_number_of_pods() {
    let plugin =
        Plugin::new("groups", ()).placement_feasible(|(), group: &PodGroup, _, progress: PlacementProgress| {
            if progress.scheduled >= group.pods.len() {
                Ok(())
            } else if progress.scheduled + progress.remaining < group.pods.len() {
                Err(Status::unschedulable("too few"))
            } else {
                Err(Status::new(Code::Wait, "not yet"))
            }
        });
    let at = |remaining, scheduled| PlacementProgress { remaining, scheduled };

    let verdicts = host(plugin).placement_feasible("g", pair(), &[at(2, 0), at(0, 2), at(0, 1)]);

    let codes: Vec<_> = verdicts.iter().map(|each| each.code).collect();
    assert_eq!(vec![Code::Wait, Code::Success, Code::Unschedulable], codes);
}

fn proposing(sets: &[&[&str]]) -> Plugin<Vec<GroupPreemption>> {
    let each = |names: &&[&str]| GroupPreemption { victims: names.iter().map(ToString::to_string).collect() };
    let proposals: Vec<_> = sets.iter().map(each).collect();
    Plugin::new("groups", proposals).pod_group_post_filter(|proposals, _, _, _, _| Ok(proposals.clone()))
}

#[test]
fn evictions_are_proposed_for_a_group_in_their_order() {
    let found = host(proposing(&[&["a"], &["b", "c"]])).pod_group_post_filter("g", pair());

    assert_eq!(Ok(vec![vec!["a".to_string()], vec!["b".into(), "c".into()]]), found);
}

#[test]
fn a_proposal_without_victims_is_a_failure() {
    let status = host(proposing(&[&[]])).pod_group_post_filter("g", pair()).expect_err("no victims");

    assert_eq!((Code::Error, "groups: a proposal evicts no pod"), (status.code, &*status.reasons.concat()));
}
