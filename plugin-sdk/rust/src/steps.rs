//! Changes of the state, with their objects decoded.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, Pod};
use prost::bytes::Bytes;
use serde::de::IgnoredAny;

use crate::objects::{ObjectKey, PlacedPod, SyncError};
use crate::outcomes::PodStage;
use crate::pb::{self, change::Change};

/// A change with its object decoded.
pub(crate) enum Step {
    NodeUpserted { index: usize, name: String, node: Box<Node> },
    NodeRemoved { index: usize, name: String },
    PodUpserted(Arc<PlacedPod>),
    PodRemoved { uid: String },
    ObjectUpserted { key: ObjectKey, object: Bytes },
    ObjectRemoved { key: ObjectKey },
}

/// Decodes a pod's JSON, or knows it already.
pub(crate) type PodDecoder<'a> = &'a dyn Fn(&str, &Bytes) -> Result<Arc<Pod>, serde_json::Error>;

/// Decodes every pod.
pub(crate) fn decode_pod(_uid: &str, data: &Bytes) -> Result<Arc<Pod>, serde_json::Error> {
    serde_json::from_slice(data).map(Arc::new)
}

/// Decodes changes, in their order.
pub(crate) fn steps_of(changes: Vec<pb::Change>, pod: PodDecoder<'_>) -> Result<Vec<Step>, SyncError> {
    changes.into_iter().map(|change| step_of(change, pod)).collect()
}

fn step_of(change: pb::Change, pod: PodDecoder<'_>) -> Result<Step, SyncError> {
    match change.change {
        Some(Change::NodeUpsert(upsert)) => {
            let node = serde_json::from_slice(&upsert.object)
                .map_err(|error| SyncError::bad_object(format!("node {:?}: {error}", upsert.name)))?;
            Ok(Step::NodeUpserted { index: upsert.index as usize, name: upsert.name, node })
        }
        Some(Change::NodeRemove(remove)) => Ok(Step::NodeRemoved { index: remove.index as usize, name: remove.name }),
        Some(Change::PodUpsert(upsert)) => Ok(Step::PodUpserted(placed_pod(upsert, pod)?)),
        Some(Change::PodRemove(remove)) => Ok(Step::PodRemoved { uid: remove.uid }),
        Some(Change::ObjectUpsert(upsert)) => {
            let key = ObjectKey::of(upsert.key);
            serde_json::from_slice::<IgnoredAny>(&upsert.object)
                .map_err(|error| SyncError::bad_object(format!("{key}: {error}")))?;
            // A copy: a slice would keep all of the message that brought it.
            Ok(Step::ObjectUpserted { key, object: Bytes::copy_from_slice(&upsert.object) })
        }
        Some(Change::ObjectRemove(remove)) => Ok(Step::ObjectRemoved { key: ObjectKey::of(remove.key) }),
        None => Err(SyncError::bad_object("a change of an unknown kind".into())),
    }
}

/// A pod that counts on a node, decoded.
pub(crate) fn placed_pod(upsert: pb::PodUpsert, pod: PodDecoder<'_>) -> Result<Arc<PlacedPod>, SyncError> {
    let stage = PodStage::of(upsert.stage)
        .ok_or_else(|| SyncError::bad_object(format!("pod {}: stage {} is none", upsert.uid, upsert.stage)))?;
    let decoded = pod(&upsert.uid, &upsert.object)
        .map_err(|error| SyncError::bad_object(format!("pod {}: {error}", upsert.uid)))?;
    Ok(Arc::new(PlacedPod {
        pod: decoded,
        uid: upsert.uid,
        node_name: upsert.node_name,
        stage,
        attempt: upsert.attempt,
    }))
}
