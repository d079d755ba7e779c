//! A plugin as a program.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use lexopt::prelude::*;
use tokio::runtime;
use tokio::signal::unix::{SignalKind, signal};

use crate::log::{Level, log, set_level};
use crate::plugin::Plugin;
use crate::serving::{ServeError, Server, Tls};
use crate::tracing::given;

const USAGE: &str = "\
  --address ADDRESS           unix:/path/to/socket, or host:port with certificates (BERTH_PLUGIN_ADDRESS)
  --metrics-address HOST:PORT GET /metrics and GET /state there (BERTH_METRICS_ADDRESS)
  --grace SECONDS             how long running calls may take to end; 5
  --tls-certificate FILE      the plugin's certificate, for host:port
  --tls-key FILE              its key
  --tls-authority FILE        who signs the scheduler's certificate
  --log-level LEVEL           debug, info, warn or error; info
";

/// A plugin program: it reads flags and the environment, serves the plugin until
/// SIGTERM or SIGINT, and gives the process' exit code; 2 where it can't be served.
///
/// Flags that are not given come from `BERTH_PLUGIN_ADDRESS` and `BERTH_METRICS_ADDRESS`.
#[must_use]
pub fn main<S: Send + 'static>(plugin: Plugin<S>) -> ExitCode {
    let name = plugin.functions.name.clone();
    let choices = match Choices::parse(std::env::args_os()) {
        Ok(Some(choices)) => choices,
        Ok(None) => {
            println!("{name}: a Berth plugin\n\n{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(error) => return complain(&name, &error),
    };
    // One thread answers, the other takes what comes meanwhile.
    let runtime = match runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return complain(&name, &error),
    };
    match runtime.block_on(serve(plugin, choices)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => complain(&name, &error),
    }
}

#[derive(Default)]
struct Choices {
    address: Option<String>,
    metrics_address: Option<String>,
    grace: Option<Duration>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    authority: Option<PathBuf>,
}

impl Choices {
    /// What the command line says; none: help is asked for.
    fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Option<Self>, lexopt::Error> {
        let mut choices = Choices::default();
        let mut parser = lexopt::Parser::from_iter(arguments);
        while let Some(argument) = parser.next()? {
            match argument {
                Long("help") | Short('h') => return Ok(None),
                Long("address") => choices.address = Some(parser.value()?.string()?),
                Long("metrics-address") => choices.metrics_address = Some(parser.value()?.string()?),
                Long("grace") => choices.grace = Some(parser.value()?.parse_with(seconds)?),
                Long("tls-certificate") => choices.certificate = Some(parser.value()?.into()),
                Long("tls-key") => choices.key = Some(parser.value()?.into()),
                Long("tls-authority") => choices.authority = Some(parser.value()?.into()),
                Long("log-level") => set_level(parser.value()?.parse::<Level>()?),
                other => return Err(other.unexpected()),
            }
        }
        Ok(Some(choices))
    }

    /// The certificates, where any is given.
    fn tls(&self) -> Result<Option<Tls>, ServeError> {
        match (&self.certificate, &self.key, &self.authority) {
            (None, None, None) => Ok(None),
            (Some(certificate), Some(key), Some(authority)) => Tls::read(certificate, key, authority).map(Some),
            _ => Err("--tls-certificate, --tls-key and --tls-authority go together".to_string().into()),
        }
    }
}

async fn serve<S: Send + 'static>(plugin: Plugin<S>, choices: Choices) -> Result<(), ServeError> {
    let tls = choices.tls()?;
    let address = choices.address.or_else(|| given("BERTH_PLUGIN_ADDRESS"));
    let address = address.ok_or_else(|| "no address: give one, or set BERTH_PLUGIN_ADDRESS".to_string())?;
    let name = plugin.functions.name.clone();
    let mut server = Server::new(plugin, address)?;
    if let Some(tls) = tls {
        server = server.tls(tls);
    }
    if let Some(address) = choices.metrics_address {
        server = server.metrics(address);
    }
    if let Some(grace) = choices.grace {
        server = server.grace(grace);
    }
    let unavailable = |error: std::io::Error| error.to_string();
    let mut terminate = signal(SignalKind::terminate()).map_err(unavailable)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(unavailable)?;
    let running = server.start().await?;
    tokio::select! { _ = terminate.recv() => {}, _ = interrupt.recv() => {} }
    log(Level::Info, "stopping", &[("plugin", &name)]);
    running.stop().await;
    Ok(())
}

/// Seconds, as a number with an optional "s".
fn seconds(text: &str) -> Result<Duration, String> {
    let number: f64 = text.strip_suffix('s').unwrap_or(text).parse().map_err(|_| format!("{text:?} is no time"))?;
    Duration::try_from_secs_f64(number).map_err(|error| error.to_string())
}

fn complain(name: &str, error: &dyn std::fmt::Display) -> ExitCode {
    eprintln!("{name}: {error}");
    ExitCode::from(2)
}
