//! Cases by hand, with the numbers that scheduler-plugins' rules give.

use std::collections::BTreeMap;

use berth_plugin_sdk::serde_json::{Value, json};
use berth_plugin_sdk::testing::{Host, PodBuilder, node, pod};
use berth_plugin_sdk::{Action, Code, CycleOutcome, Event, ObjectKey, PodStage};

use crate::plugin::plugin;
use crate::topology::KIND;
use crate::{fingerprint, requests};

const NIC: &str = "vendor.example/nic";

fn key(name: &str) -> ObjectKey {
    ObjectKey {
        group: "topology.node.k8s.io".into(),
        version: "v1alpha2".into(),
        resource: "noderesourcetopologies".into(),
        namespace: String::new(),
        name: name.into(),
    }
}

/// A `NodeResourceTopology` with these NUMA nodes: CPUs, memory and network cards that are available.
fn topology(policy: &str, scope: &str, zones: &[(u32, &str, u32)]) -> Value {
    let resource = |name: &str, available: Value| json!({"name": name, "capacity": "64", "available": available});
    let zone = |(id, (cpu, memory, nics)): (usize, &(u32, &str, u32))| {
        let costs: Vec<Value> = (0..zones.len())
            .map(|other| json!({"name": format!("node-{other}"), "value": if other == id { 10 } else { 20 }}))
            .collect();
        json!({
            "name": format!("node-{id}"), "type": "Node", "costs": costs,
            "resources": [resource("cpu", json!(cpu)), resource("memory", json!(memory)), resource(NIC, json!(nics))],
        })
    };
    let zones: Vec<Value> = zones.iter().enumerate().map(zone).collect();
    json!({
        "metadata": {"name": "n"}, "zones": zones,
        "attributes": [
            {"name": "topologyManagerPolicy", "value": policy}, {"name": "topologyManagerScope", "value": scope},
        ],
    })
}

fn single(scope: &str, zones: &[(u32, &str, u32)]) -> Value {
    topology("single-numa-node", scope, zones)
}

fn accounting(mut topology: Value, pods: &[(&str, &str)]) -> Value {
    let fingerprint = json!({"name": "nodeTopologyPodsFingerprint", "value": fingerprint::of(pods.iter().copied())});
    topology["attributes"].as_array_mut().expect("attributes").push(fingerprint);
    topology
}

/// A host with the node "n" of such NUMA nodes, and the node "plain" without data.
fn host(arguments: &Value, topology: &Value) -> Host {
    let whole = [("cpu", "64"), ("memory", "256Gi"), (NIC, "8"), ("ephemeral-storage", "1Ti")];
    let mut host = Host::run_with(plugin(), arguments, [node("n").resources(whole), node("plain").resources(whole)]);
    host.cluster.put_object(&key("n"), topology);
    host
}

fn asking(cpu: &str, memory: &str) -> PodBuilder {
    pod("p").guaranteed([("cpu", cpu), ("memory", memory)])
}

/// Why the node turns the pod down; empty where it does not.
fn reason(topology: &Value, pod: PodBuilder) -> String {
    let verdict = host(&json!({}), topology).filter(pod);
    assert!(verdict.passes("plain"), "a node without data takes every pod");
    verdict.rejected.get("n").map(|reason| reason.text.to_string()).unwrap_or_default()
}

fn scored(strategy: &str, topology: &Value, pod: PodBuilder) -> i64 {
    let scores = host(&json!({"scoringStrategy": {"type": strategy}}), topology).score(pod);
    scores.expect("scores")["n"]
}

#[test]
fn a_container_needs_a_numa_node_that_has_room_for_all_of_it() {
    let two = single("container", &[(4, "8Gi", 0), (2, "16Gi", 1)]);
    let cases = [
        ("it fits on the first", asking("4", "8Gi"), ""),
        ("CPUs on the first and memory on the second are none", asking("4", "16Gi"), "cannot align container"),
        ("together they would have room", asking("6", "4Gi"), "cannot align container"),
        (
            "the node has no such resource",
            pod("p").guaranteed([("cpu", "1"), ("memory", "1Gi"), ("vendor.example/gpu", "1")]),
            "cannot align container",
        ),
        (
            "none of a resource asks for nothing",
            pod("p").guaranteed([("cpu", "1"), ("memory", "1Gi"), ("vendor.example/gpu", "0")]),
            "",
        ),
        (
            "storage is the node's as a whole",
            pod("p").guaranteed([("cpu", "1"), ("memory", "1Gi"), ("ephemeral-storage", "1Gi")]),
            "",
        ),
        (
            "a card beside memory of another NUMA node",
            pod("p").guaranteed([("cpu", "3"), ("memory", "1Gi"), (NIC, "1")]),
            "cannot align container",
        ),
    ];
    for (name, pod, expected) in cases {
        assert_eq!(expected, reason(&two, pod), "{name}");
    }
}

#[test]
fn containers_take_from_each_other_and_init_containers_do_not() {
    let two = single("container", &[(4, "8Gi", 0), (2, "8Gi", 0)]);
    let container = [("cpu", "2"), ("memory", "1Gi")];
    let three = pod("p").guaranteed(container).guaranteed(container).guaranteed(container);

    assert_eq!("", reason(&two, three.clone()), "two on the first, one on the second");
    assert_eq!("cannot align container", reason(&two, three.clone().guaranteed(container)));
    assert_eq!("", reason(&two, three.clone().init(container).init([("cpu", "4"), ("memory", "1Gi")])));
    assert_eq!("cannot align init container", reason(&two, three.init([("cpu", "5"), ("memory", "1Gi")])));
}

#[test]
fn a_pod_is_aligned_as_a_whole_where_the_scope_is_the_pod() {
    let two = single("pod", &[(4, "8Gi", 0), (2, "8Gi", 0)]);
    let container = [("cpu", "2"), ("memory", "1Gi")];

    assert_eq!("", reason(&two, pod("p").guaranteed(container).guaranteed(container)));
    assert_eq!(
        "cannot align pod",
        reason(
            &two,
            pod("p").guaranteed(container).guaranteed(container).guaranteed([("cpu", "1"), ("memory", "1Gi")])
        )
    );
    assert_eq!("cannot align pod", reason(&two, asking("1", "1Gi").init([("cpu", "5"), ("memory", "1Gi")])));
}

#[test]
fn pods_that_share_cpus_need_no_numa_node_but_for_their_devices() {
    let one = single("container", &[(1, "1Gi", 1)]);

    assert_eq!("", reason(&one, pod("p").container([("cpu", "8"), ("memory", "8Gi")])), "burstable");
    assert_eq!("", reason(&one, pod("p")), "best effort");
    assert_eq!("", reason(&one, pod("p").container([(NIC, "1")])));
    assert_eq!("cannot align container", reason(&one, pod("p").container([(NIC, "2")])));
}

#[test]
fn only_single_numa_node_turns_pods_down() {
    for policy in ["none", "best-effort", "restricted"] {
        assert_eq!("", reason(&topology(policy, "container", &[(1, "1Gi", 0)]), asking("8", "8Gi")), "{policy}");
    }
    let mut deprecated = topology("", "", &[(1, "1Gi", 0)]);
    deprecated["topologyPolicies"] = json!(["SingleNUMANodePodLevel"]);
    assert_eq!("cannot align pod", reason(&deprecated, asking("8", "8Gi")));
}

#[test]
fn strategies_score_by_the_numa_node_that_is_worst_for_the_pod() {
    // 2 of 4 CPUs and 2 of 8 Gi; 2 of 10 CPUs and 2 of 4 Gi.
    let two = single("pod", &[(4, "8Gi", 0), (10, "4Gi", 0)]);
    let cases = [
        // (50 + 75) / 2 = 62, (80 + 50) / 2 = 65: the lower.
        ("LeastAllocated", 62),
        // (50 + 25) / 2 = 37, (20 + 50) / 2 = 35.
        ("MostAllocated", 35),
        // Variances of (0.5, 0.25) and (0.2, 0.5): 0.03125 and 0.045.
        ("BalancedAllocation", 95),
        // One NUMA node of at most eight, and none is closer: 100 - 12 + 6.
        ("LeastNUMANodes", 94),
    ];
    for (strategy, expected) in cases {
        assert_eq!(expected, scored(strategy, &two, asking("2", "2Gi")), "{strategy}");
    }
}

#[test]
fn a_numa_node_without_room_does_not_count_and_none_at_all_is_zero() {
    let two = single("pod", &[(1, "8Gi", 0), (10, "4Gi", 0)]);

    // The first has room for half of it: (0 + 75) / 2 = 37; the second: 65.
    assert_eq!(37, scored("LeastAllocated", &two, asking("2", "2Gi")));
    assert_eq!(96, scored("BalancedAllocation", &single("pod", &[(1, "8Gi", 0), (8, "4Gi", 0)]), asking("2", "2Gi")));
    assert_eq!(0, scored("LeastAllocated", &topology("restricted", "pod", &[(4, "8Gi", 0)]), asking("2", "2Gi")));
}

#[test]
fn a_weight_makes_a_resource_count_more() {
    let arguments =
        json!({"scoringStrategy": {"type": "LeastAllocated", "resources": [{"name": "cpu", "weight": 3}]}});
    let scores = host(&arguments, &single("pod", &[(4, "8Gi", 0)])).score(asking("2", "2Gi"));

    // (3 * 50 + 75) / 4
    assert_eq!(56, scores.expect("scores")["n"]);
}

#[test]
fn containers_score_by_their_mean() {
    let one = single("container", &[(10, "10Gi", 0)]);
    let pod = asking("2", "2Gi").guaranteed([("cpu", "5"), ("memory", "5Gi")]);

    // 80 and 50.
    assert_eq!(65, scored("LeastAllocated", &one, pod));
}

#[test]
fn fewer_and_closer_numa_nodes_are_better() {
    let mut four = topology("best-effort", "pod", &[(4, "8Gi", 0), (4, "8Gi", 0), (8, "8Gi", 0), (8, "8Gi", 0)]);
    let distances = [[10, 12, 20, 22], [12, 10, 22, 24], [20, 22, 10, 12], [22, 24, 12, 10]];
    for (from, row) in distances.iter().enumerate() {
        let costs: Vec<Value> =
            row.iter().enumerate().map(|(to, value)| json!({"name": format!("node-{to}"), "value": value})).collect();
        four["zones"][from]["costs"] = json!(costs);
    }
    let cases = [
        ("one of eight", asking("8", "1Gi"), 100 - 12 + 6),
        ("two, the closest", asking("16", "1Gi"), 100 - 24 + 6),
        ("three, the first and the two last", asking("20", "1Gi"), 100 - 36 + 6),
        ("four", asking("24", "1Gi"), 100 - 48 + 6),
        ("more than there is", asking("25", "1Gi"), 0),
    ];
    for (name, pod, expected) in cases {
        assert_eq!(expected, scored("LeastNUMANodes", &four, pod), "{name}");
    }
    four["zones"][2]["resources"][0]["available"] = json!("2");
    assert_eq!(100 - 24, scored("LeastNUMANodes", &four, asking("11", "1Gi")), "two, and others would be closer");
}

#[test]
fn pods_that_share_cpus_find_every_node_equally_good() {
    assert_eq!(100, scored("LeastAllocated", &single("pod", &[(4, "8Gi", 0)]), pod("p").container([("cpu", "1")])));
}

#[test]
fn what_is_reserved_is_taken_off_every_numa_node_until_the_data_account_for_it() {
    let two = |cpus| single("container", &[(cpus, "32Gi", 0), (4, "32Gi", 0)]);
    let mut host = host(&json!({"cacheResyncPeriodSeconds": 5}), &accounting(two(4), &[]));
    let (first, second) = (asking("3", "1Gi"), pod("second").guaranteed([("cpu", "3"), ("memory", "1Gi")]));
    let placed = first.clone().on("n");

    assert_eq!(Code::Success, host.reserve(first.clone(), "n").code);
    assert!(!host.filter(second.clone()).passes("n"), "one CPU is left on each, though 4 are on one of them");

    host.cluster.put_pod(placed.clone(), "n", PodStage::Placed, 0);
    assert!(!host.filter(second.clone()).passes("n"), "the pod is there, and the data are from before it");

    host.cluster.put_object(&key("n"), &accounting(two(1), &[]));
    assert!(!host.filter(second.clone()).passes("n"), "other data, which do not account for it either");

    host.cluster.put_object(&key("n"), &accounting(two(1), &[("default", "p")]));
    assert!(host.filter(second).passes("n"), "the data account for it: the other NUMA node is free");
}

#[test]
fn data_count_as_soon_as_the_pod_comes_that_they_account_for() {
    let data = |cpus, pods| accounting(single("container", &[(cpus, "32Gi", 0), (4, "32Gi", 0)]), pods);
    let mut host = host(&json!({"cacheResyncPeriodSeconds": 5}), &data(4, &[]));
    host.reserve(asking("3", "1Gi"), "n");
    host.cluster.put_object(&key("n"), &data(1, &[("default", "p"), ("default", "late")]));
    let second = pod("second").guaranteed([("cpu", "3"), ("memory", "1Gi")]);
    assert!(!host.filter(second.clone()).passes("n"));

    host.cluster.put_pod(pod("late").on("n"), "n", PodStage::Placed, 0);

    assert!(host.filter(second).passes("n"));
}

#[test]
fn a_reservation_that_was_given_back_or_whose_pod_went_is_free_again() {
    let mut host = host(&json!({"cacheResyncPeriodSeconds": 5}), &accounting(single("pod", &[(4, "32Gi", 0)]), &[]));
    let (first, second) = (asking("3", "1Gi"), pod("second").guaranteed([("cpu", "3"), ("memory", "1Gi")]));

    host.reserve(first.clone(), "n");
    host.unreserve(first.clone(), "n");
    assert!(host.filter(second.clone()).passes("n"), "given back");

    host.reserve(first.clone(), "n");
    host.cluster.put_pod(first.clone(), "n", PodStage::Assumed, 2);
    assert!(!host.filter(second.clone()).passes("n"));
    host.cluster.remove_pod(first);
    assert!(host.filter(second).passes("n"), "the pod went");
}

#[test]
fn without_the_cache_a_reservation_changes_nothing() {
    let mut host = host(&json!({}), &single("pod", &[(4, "32Gi", 0)]));

    host.reserve(asking("3", "1Gi"), "n");

    assert!(host.filter(pod("second").guaranteed([("cpu", "3"), ("memory", "1Gi")])).passes("n"));
}

#[test]
fn a_pod_of_another_scheduler_puts_data_in_doubt_until_they_account_for_it() {
    let data = |pods| accounting(single("pod", &[(4, "32Gi", 0)]), pods);
    for (detect, doubtful) in [("All", true), ("OnlyExclusiveResources", false), ("None", false)] {
        let arguments = json!({"cacheResyncPeriodSeconds": 5, "cache": {"foreignPodsDetect": detect}});
        let mut host = host(&arguments, &data(&[]));
        host.update();
        let mut foreign: berth_plugin_sdk::Pod = pod("foreign").on("n").into();
        foreign.spec.get_or_insert_default().scheduler_name = Some("another".into());
        host.cluster.put_pod(foreign, "n", PodStage::Placed, 0);

        let verdict = host.filter(asking("1", "1Gi"));
        assert_eq!(
            doubtful,
            verdict.rejected.get("n").is_some_and(|reason| reason.text == "invalid node topology data"),
            "{detect}"
        );

        host.cluster.put_object(&key("n"), &data(&[("default", "foreign")]));
        assert!(host.filter(asking("1", "1Gi")).passes("n"), "{detect}");
    }
}

#[test]
fn a_node_is_left_out_between_reservation_and_binding_if_so_configured() {
    let mut host = host(&json!({"discardReservedNodes": true}), &single("pod", &[(4, "32Gi", 0)]));
    let second = pod("second").guaranteed([("cpu", "1"), ("memory", "1Gi")]);

    host.reserve(asking("1", "1Gi"), "n");
    assert!(!host.filter(second.clone()).passes("n"));

    host.post_bind(asking("1", "1Gi"), "n");
    host.cycle_done(asking("1", "1Gi"), CycleOutcome::Bound, Some("n"));
    assert!(host.filter(second).passes("n"));
}

#[test]
fn another_run_of_the_scheduler_voids_reservations_and_a_new_transfer_does_not() {
    let mut host = host(&json!({"cacheResyncPeriodSeconds": 5}), &single("pod", &[(4, "32Gi", 0)]));
    let second = pod("second").guaranteed([("cpu", "3"), ("memory", "1Gi")]);
    host.reserve(asking("3", "1Gi"), "n");

    host.sync();
    assert!(!host.filter(second.clone()).passes("n"));

    host.epoch.push_str("-later");
    host.sync();
    assert!(host.filter(second).passes("n"));
}

#[test]
fn new_data_are_worth_another_attempt_where_they_have_room() {
    let mut host = host(&json!({}), &single("pod", &[(1, "1Gi", 0)]));
    let becomes = |cpus| Event {
        resource: KIND.into(),
        action: Action::Update,
        old: None,
        new: Some(single("pod", &[(cpus, "8Gi", 0)]).to_string().into_bytes()),
    };

    assert_eq!(vec![vec![false], vec![true]], host.hints([asking("2", "1Gi")], &[becomes(1), becomes(2)]));
}

#[test]
fn data_that_cannot_be_read_are_none() {
    let mut host = host(&json!({}), &single("pod", &[(1, "1Gi", 0)]));
    assert!(!host.filter(asking("2", "1Gi")).passes("n"));

    host.cluster.put_object(&key("n"), &json!({"zones": "none"}));
    assert!(host.filter(asking("2", "1Gi")).passes("n"));
}

#[test]
fn arguments_that_cannot_be_right_are_all_named() {
    let mut host = Host::serve(plugin());
    let wrong = json!({"scoringStrategy": {"type": "Best"}, "cacheResyncPeriodSeconds": -1, "preemptionMode": "Enabled", "x": 1});

    let mut paths: Vec<String> =
        host.configure(Some(&wrong)).iter().map(|error| error.split(':').next().unwrap_or_default().into()).collect();
    paths.sort();

    assert_eq!(["cacheResyncPeriodSeconds", "preemptionMode", "scoringStrategy.type", "x"], *paths);
}

#[test]
fn a_fingerprint_is_of_the_set_of_pods() {
    // Of no pods: the hash of nothing.
    let pods = [("default", "a"), ("kube-system", "b")];
    let turned = [pods[1], pods[0]];

    assert_eq!(fingerprint::of(pods.into_iter()), fingerprint::of(turned.into_iter()));
    assert_eq!("pfp0v001ef46db3751d8e999", fingerprint::of([].into_iter()));
}

#[test]
fn a_pod_is_guaranteed_when_every_limit_is_its_request() {
    let class = |builder: PodBuilder| requests::Requests::of(&builder.into()).qos;
    let both = [("cpu", "1"), ("memory", "1Gi")];

    assert_eq!(requests::Qos::Guaranteed, class(pod("p").guaranteed(both)));
    assert_eq!(requests::Qos::Burstable, class(pod("p").guaranteed(both).container([("cpu", "1")])));
    assert_eq!(requests::Qos::Burstable, class(pod("p").guaranteed([("cpu", "1")])));
    assert_eq!(requests::Qos::BestEffort, class(pod("p").container([(NIC, "1")])));
}

#[test]
fn a_pods_peak_is_the_larger_of_its_phases() {
    let peak = requests::Requests::of(
        &asking("1", "1Gi")
            .guaranteed([("cpu", "1"), ("memory", "1Gi")])
            .init([("cpu", "3"), ("memory", "1Gi")])
            .into(),
    );

    assert_eq!(BTreeMap::from([("cpu".into(), 3000), ("memory".into(), 2 << 30)]), peak.pod);
}
