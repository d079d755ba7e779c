//! A plugin being served.

use std::fmt;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, UnixListener};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};
use tokio_stream::wrappers::{TcpListenerStream, UnixListenerStream};
use tonic::transport::server::Router;
use tonic::transport::{Certificate, Identity, ServerTlsConfig};

use crate::address::{listen, second_socket, unix_path};
use crate::core::Core;
use crate::grpc::{HealthService, Services, stopped};
use crate::log::{Level, log};
use crate::pages;
use crate::pb::group_service_server::GroupServiceServer;
use crate::pb::identity_service_server::IdentityServiceServer;
use crate::pb::placement_service_server::PlacementServiceServer;
use crate::pb::queueing_service_server::QueueingServiceServer;
use crate::pb::scheduling_service_server::SchedulingServiceServer;
use crate::pb::state_service_server::StateServiceServer;
use crate::plugin::{Functions, Plugin};
use crate::tracing::{Tracing, given};
use crate::ttrpc;

/// Replies and calls grow with the cluster; Sync stays below 4 MiB by itself.
const MAX_MESSAGE_BYTES: usize = 64 << 20;
/// A chunk of the state needs one window, not one for each 64 KiB.
const WINDOW_BYTES: u32 = 4 << 20;
const GRACE: Duration = Duration::from_secs(5);

/// Why a plugin can't be served.
#[derive(Debug)]
pub struct ServeError(String);

impl fmt::Display for ServeError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for ServeError {}

impl From<String> for ServeError {
    fn from(problem: String) -> Self {
        ServeError(problem)
    }
}

/// Certificates for TCP: the plugin's own, and the authority that the scheduler's
/// certificate must come from.
#[derive(Clone)]
pub struct Tls {
    config: ServerTlsConfig,
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// One of them can't be read.
    pub fn read(certificate: &Path, key: &Path, authority: &Path) -> Result<Self, ServeError> {
        let read =
            |what: &str, path: &Path| fs::read(path).map_err(|error| format!("{what}: {}: {error}", path.display()));
        let identity = Identity::from_pem(read("certificate", certificate)?, read("key", key)?);
        let authority = Certificate::from_pem(read("authority", authority)?);
        Ok(Tls { config: ServerTlsConfig::new().identity(identity).client_ca_root(authority) })
    }
}

/// A plugin that is about to be served.
pub struct Server {
    functions: Functions,
    address: String,
    metrics_address: Option<String>,
    tls: Option<Tls>,
    grace: Duration,
}

impl Server {
    /// Prepares to serve the plugin at `unix:/path/to/socket`, or at `host:port` with certificates.
    ///
    /// # Errors
    /// The plugin contradicts itself.
    pub fn new<S>(plugin: Plugin<S>, address: impl Into<String>) -> Result<Self, ServeError> {
        plugin.functions.validate()?;
        let metrics_address = given("BERTH_METRICS_ADDRESS");
        Ok(Server { functions: plugin.functions, address: address.into(), metrics_address, tls: None, grace: GRACE })
    }

    /// Serves TCP with these certificates, and demands the client's too.
    #[must_use]
    pub fn tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Serves metrics and state over HTTP at `host:port`.
    #[must_use]
    pub fn metrics(mut self, address: impl Into<String>) -> Self {
        self.metrics_address = Some(address.into());
        self
    }

    /// How long running calls may take to end when the server stops; 5 seconds without it.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Listens and serves, in the background of the runtime that this is called in.
    ///
    /// # Errors
    /// Another process listens there, the address can't be served, or the
    /// environment asks for traces that can't be written.
    pub async fn start(self) -> Result<Running, ServeError> {
        let (name, version) = (&self.functions.name, &self.functions.version);
        let tracing = Tracing::from_environment(name, version)?;
        let ways = Ways::open(&self.address, self.tls.as_ref()).await?;
        let pages = match &self.metrics_address {
            Some(address) => Some(bind(address).await.map_err(|error| format!("metrics: {error}"))?),
            None => None,
        };
        let metrics_address = pages.as_ref().and_then(|pages| pages.local_addr().ok());
        log(Level::Info, "serving", &[("plugin", name), ("version", version), ("address", &self.address)]);
        let core = Arc::new(Core::new(self.functions, tracing));
        let mut tasks = Vec::new();
        let pages = pages.map(|pages| tokio::spawn(pages::serve(core.clone(), pages)));
        let sockets = ways.serve(&core, self.tls, &mut tasks)?;
        if core.functions.clock.is_some() {
            tasks.push(tokio::spawn(ring(core.clone())));
        }
        Ok(Running { core, tasks, pages, sockets, grace: self.grace, metrics_address })
    }
}

/// What a plugin listens on.
enum Ways {
    Unix { path: PathBuf, listener: UnixListener, second: Option<(PathBuf, String, UnixListener)> },
    Tcp(TcpListener),
}

impl Ways {
    async fn open(address: &str, tls: Option<&Tls>) -> Result<Self, String> {
        let at = |error: io::Error| format!("{address}: {error}");
        let Some(path) = unix_path(address) else {
            if tls.is_none() {
                return Err(format!("{address}: only unix:/path sockets are served without certificates"));
            }
            return Ok(Ways::Tcp(bind(address).await.map_err(at)?));
        };
        let socket = |path: &Path| UnixListener::from_std(listen(path)?);
        let listener = socket(&path).map_err(at)?;
        let second = match second_socket(&path) {
            Some((path, name)) => {
                Some((path.clone(), name, socket(&path).map_err(|error| format!("{}: {error}", path.display()))?))
            }
            None => None,
        };
        Ok(Ways::Unix { path, listener, second })
    }

    /// Begins to serve, each way in a task; the sockets to take away afterwards.
    fn serve(
        self,
        core: &Arc<Core>,
        tls: Option<Tls>,
        tasks: &mut Vec<JoinHandle<()>>,
    ) -> Result<Vec<PathBuf>, String> {
        let mut stopping = core.stopping.subscribe();
        let stop = async move { stopped(&mut stopping).await };
        match self {
            Ways::Tcp(listener) => {
                let router = router(core, None, tls)?;
                let serving = router.serve_with_incoming_shutdown(TcpListenerStream::new(listener), stop);
                tasks.push(tokio::spawn(async { ended(serving.await) }));
                Ok(Vec::new())
            }
            Ways::Unix { path, listener, second } => {
                let mut sockets = vec![path];
                let mut name = None;
                if let Some((path, socket, listener)) = second {
                    tasks.push(tokio::spawn(ttrpc::serve(core.clone(), listener)));
                    sockets.push(path);
                    name = Some(socket);
                }
                let router = router(core, name, None)?;
                let serving = router.serve_with_incoming_shutdown(UnixListenerStream::new(listener), stop);
                tasks.push(tokio::spawn(async { ended(serving.await) }));
                Ok(sockets)
            }
        }
    }
}

/// Runs timers by the machine's time until the server stops.
async fn ring(core: Arc<Core>) {
    let Some(clock) = &core.functions.clock else { return };
    let mut stopping = core.stopping.subscribe();
    loop {
        tokio::select! { () = clock.rings() => core.with(|_| clock.ring()), () = stopped(&mut stopping) => return }
    }
}

fn router(core: &Arc<Core>, ttrpc_socket: Option<String>, tls: Option<Tls>) -> Result<Router, String> {
    let services = Arc::new(Services { core: core.clone(), ttrpc_socket });
    let mut server = tonic::transport::Server::builder()
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(WINDOW_BYTES);
    if let Some(tls) = tls {
        server = server.tls_config(tls.config).map_err(|error| format!("certificates: {error}"))?;
    }
    macro_rules! bounded {
        ($server:ident) => {
            $server::from_arc(services.clone())
                .max_decoding_message_size(MAX_MESSAGE_BYTES)
                .max_encoding_message_size(MAX_MESSAGE_BYTES)
        };
    }
    Ok(server
        .add_service(bounded!(IdentityServiceServer))
        .add_service(bounded!(StateServiceServer))
        .add_service(bounded!(SchedulingServiceServer))
        .add_service(bounded!(PlacementServiceServer))
        .add_service(bounded!(GroupServiceServer))
        .add_service(bounded!(QueueingServiceServer))
        .add_service(HealthService::server(core)))
}

fn ended(result: Result<(), tonic::transport::Error>) {
    if let Err(error) = result {
        log(Level::Error, "serving ended", &[("error", &error)]);
    }
}

async fn bind(address: &str) -> io::Result<TcpListener> {
    TcpListener::bind(address).await
}

/// A plugin that is being served.
pub struct Running {
    core: Arc<Core>,
    tasks: Vec<JoinHandle<()>>,
    pages: Option<JoinHandle<()>>,
    sockets: Vec<PathBuf>,
    grace: Duration,
    metrics_address: Option<SocketAddr>,
}

impl Running {
    /// Where metrics are shown.
    #[must_use]
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics_address
    }

    /// Turns unready, lets calls that are running end, and writes out spans.
    pub async fn stop(self) {
        let deadline = Instant::now() + self.grace;
        self.core.ready.send_replace(false);
        self.core.stopping.send_replace(true);
        for mut task in self.tasks {
            if timeout_at(deadline, &mut task).await.is_err() {
                task.abort();
            }
        }
        if let Some(pages) = self.pages {
            pages.abort();
        }
        for socket in self.sockets {
            // Another process may have replaced it, or a user taken it away.
            let _ = fs::remove_file(socket);
        }
        let (core, grace) = (self.core, self.grace);
        let written = tokio::task::spawn_blocking(move || core.tracing.shutdown(grace)).await;
        if let Ok(Err(problem)) = written {
            log(Level::Warn, "spans were lost", &[("error", &problem)]);
        }
    }
}
