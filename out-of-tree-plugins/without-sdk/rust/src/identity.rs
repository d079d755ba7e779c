//! IdentityService: who the plugin is, and each profile's arguments.

use std::sync::Arc;

use serde::Deserialize;
use tonic::{Request, Response, Status};

use crate::pb::identity_service_server::IdentityService;
use crate::pb::{
    ActionType, Capabilities, ConfigureRequest, ConfigureResponse, EventInterest, ExtensionPoint,
    HandshakeRequest, HandshakeResponse, PodFields, StateInterest,
};
use crate::session::Session;

const VERSION: u32 = 1;

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Arguments {
    label: String,
}

impl Default for Arguments {
    fn default() -> Arguments {
        Arguments { label: "team".into() }
    }
}

pub struct Identity {
    pub session: Arc<Session>,
}

#[tonic::async_trait]
impl IdentityService for Identity {
    async fn handshake(
        &self,
        _: Request<HandshakeRequest>,
    ) -> Result<Response<HandshakeResponse>, Status> {
        Ok(Response::new(HandshakeResponse {
            name: "same-label".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            supported_versions: vec![VERSION],
            capabilities: Some(capabilities()),
        }))
    }

    async fn configure(
        &self,
        request: Request<ConfigureRequest>,
    ) -> Result<Response<ConfigureResponse>, Status> {
        let request = request.into_inner();
        let errors = self.take(request).err().into_iter().collect();
        self.session.report_readiness().await;
        Ok(Response::new(ConfigureResponse { errors }))
    }
}

impl Identity {
    fn take(&self, request: ConfigureRequest) -> Result<(), String> {
        if request.removed {
            self.session.profiles().remove(&request.profile);
            return Ok(());
        }
        if request.protocol_version != VERSION {
            return Err(format!("protocol version {} is not spoken", request.protocol_version));
        }
        let arguments =
            request.arguments.map_or_else(|| Ok(Arguments::default()), |given| read(&given))?;
        self.session.profiles().insert(request.profile, arguments.label);
        Ok(())
    }
}

/// Reads the arguments; serde alone would take a list for an object with its fields in order.
fn read(given: &[u8]) -> Result<Arguments, String> {
    let object: serde_json::Map<String, serde_json::Value> =
        serde_json::from_slice(given).map_err(|error| format!("arguments: {error}"))?;
    let arguments: Arguments =
        serde_json::from_value(object.into()).map_err(|error| format!("arguments: {error}"))?;
    if arguments.label.is_empty() {
        return Err("label: must not be empty".into());
    }
    Ok(arguments)
}

fn capabilities() -> Capabilities {
    Capabilities {
        extension_points: vec![ExtensionPoint::Filter.into(), ExtensionPoint::Score.into()],
        events: vec![EventInterest {
            resource: "Node".into(),
            actions: vec![ActionType::Add.into(), ActionType::UpdateNodeLabel.into()],
            ..EventInterest::default()
        }],
        pod_fields: Some(PodFields { paths: vec!["/metadata/labels".into()] }),
        state: Some(StateInterest { nodes: true, ..StateInterest::default() }),
        node_local: true,
        ..Capabilities::default()
    }
}
