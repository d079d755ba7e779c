//! The mirror of the cluster, and the columns that an author keeps beside it.

use berth_plugin_sdk::serde_json::json;
use berth_plugin_sdk::testing::{Host, node, pod};
use berth_plugin_sdk::{ObjectKey, Plugin, PodStage, WatchedResource};

/// The hooks' calls, a line each.
type Heard = Vec<String>;

fn listening() -> Plugin<Heard> {
    Plugin::new("p", Heard::new())
        .wants_pods()
        .resource(WatchedResource::new("example.com", "v1", "racks"))
        .state_reset(|heard, changed| heard.push(format!("reset {changed}")))
        .state_settled(|heard| heard.push("settled".into()))
        .node_upserted(|heard, index, node| {
            heard.push(format!("{index} {}", node.metadata.name.as_deref().unwrap_or_default()));
        })
        .node_removed(|heard, index, last| heard.push(format!("{index} from {last}")))
        .pod_upserted(|heard, placed| heard.push(format!("{} on {}", placed.uid, placed.node_name)))
        .pod_removed(|heard, placed| heard.push(format!("{} off {}", placed.uid, placed.node_name)))
        .object_upserted(|heard, key, object| {
            if object == b"[]" {
                return Err("a list");
            }
            heard.push(format!("object {}", key.name));
            Ok(())
        })
        .object_removed(|heard, key| heard.push(format!("no object {}", key.name)))
}

fn rack(name: &str) -> ObjectKey {
    let (group, version, resource) = ("example.com".into(), "v1".into(), "racks".into());
    ObjectKey { group, version, resource, namespace: String::new(), name: name.into() }
}

#[test]
fn hooks_hear_every_step_in_order() {
    let plugin = listening();
    let heard = plugin.shared();
    let mut host = Host::run(plugin, [node("a"), node("b"), node("c")]);
    assert_eq!(["reset true", "0 a", "1 b", "2 c", "settled"], *heard.lock().unwrap().clone());
    heard.lock().unwrap().clear();

    host.cluster.put_pod(pod("p"), "a", PodStage::Assumed, 1);
    host.cluster.put_pod(pod("p"), "b", PodStage::Placed, 0);
    host.cluster.put_object(&rack("r"), &json!({}));
    host.cluster.remove_node("a");
    host.cluster.remove_pod(pod("p"));
    host.cluster.remove_object(&rack("r"));
    host.update();

    assert_eq!(
        [
            "pod-default-p on a",
            "pod-default-p off a",
            "pod-default-p on b",
            "object r",
            "0 from 2",
            "pod-default-p off b",
            "no object r"
        ],
        *heard.lock().unwrap().clone()
    );
}

#[test]
fn a_stream_that_is_opened_again_goes_on_from_what_is_held() {
    let plugin = listening();
    let heard = plugin.shared();
    let mut host = Host::run(plugin, [node("a")]);
    heard.lock().unwrap().clear();

    host.cluster.put_node(node("b"));
    host.update();
    host.resume();
    host.cluster.put_node(node("c"));
    host.update();

    assert_eq!(["1 b", "2 c"], *heard.lock().unwrap().clone());
}

#[test]
fn a_transfer_replaces_everything_and_says_whether_the_epoch_changed() {
    let plugin = listening();
    let heard = plugin.shared();
    let mut host = Host::run(plugin, [node("a")]);
    heard.lock().unwrap().clear();

    host.sync();
    host.epoch.push_str("-later");
    host.sync();

    assert_eq!(["reset false", "0 a", "settled", "reset true", "0 a", "settled"], *heard.lock().unwrap().clone());
}

#[test]
#[should_panic(expected = "BadObject")]
fn an_object_that_the_author_cannot_use_is_refused() {
    let mut host = Host::run(listening(), [node("a")]);

    host.cluster.put_object(&rack("r"), &json!([]));
    host.update();
}

#[test]
#[should_panic(expected = "NOT_SYNCED")]
fn a_plugin_that_lost_its_way_holds_nothing() {
    let mut host = Host::run(listening().filter(|_, _, _| Ok(())), [node("a")]);
    host.epoch.push_str("-of another run");

    host.filter(pod("p"));
}
