//! A plugin for Berth on tonic alone: same-label keeps pods on nodes with their own value of a label.

use std::error::Error;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::{env, fs, io};

use tokio::net::UnixListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::Server;

use crate::identity::Identity;
use crate::pb::identity_service_server::IdentityServiceServer;
use crate::pb::scheduling_service_server::SchedulingServiceServer;
use crate::pb::state_service_server::StateServiceServer;
use crate::scheduling::Scheduling;
use crate::session::Session;
use crate::sync::Sync;

mod held;
mod identity;
mod scheduling;
mod session;
mod sync;

mod pb {
    tonic::include_proto!("berth.plugin.v1");
}

/// Calls grow with the cluster, while tonic takes 4 MiB by default.
const LARGEST_CALL: usize = 64 << 20;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let address = env::var("BERTH_PLUGIN_ADDRESS")?;
    let path = address.strip_prefix("unix:").ok_or("an address unix:PATH is needed")?;
    let (reporter, health) = tonic_health::server::health_reporter();
    let session = Arc::new(Session::new(reporter));
    session.report_readiness().await;
    let scheduling = SchedulingServiceServer::new(Scheduling { session: session.clone() })
        .max_decoding_message_size(LARGEST_CALL);
    let serving = Server::builder()
        .add_service(health)
        .add_service(IdentityServiceServer::new(Identity { session: session.clone() }))
        .add_service(StateServiceServer::new(Sync { session }))
        .add_service(scheduling)
        .serve_with_incoming(UnixListenerStream::new(listen(Path::new(path))?));
    let mut terminated = signal(SignalKind::terminate())?;
    tokio::select! {
        ended = serving => ended?,
        // Streams are open for ever, so their ends are not waited for.
        _ = terminated.recv() => {}
    }
    fs::remove_file(path)?;
    Ok(())
}

/// Listens on a socket that other users cannot open; an earlier process may have left one.
fn listen(path: &Path) -> io::Result<UnixListener> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}
