//! What a plugin shows over HTTP: `GET /metrics` and `GET /state`.

use std::convert::Infallible;
use std::sync::Arc;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;

use crate::core::Core;
use crate::errors::guarded;
use crate::metrics::text_of;

/// Serves the pages until the task is ended.
pub(crate) async fn serve(core: Arc<Core>, listener: TcpListener) {
    loop {
        // A connection that broke before it was taken concerns no other.
        let Ok((stream, _)) = listener.accept().await else { continue };
        let core = core.clone();
        let answer = move |request: Request<Incoming>| {
            let response = page(&core, request.method(), request.uri().path());
            async move { Ok::<_, Infallible>(response) }
        };
        let connection =
            http1::Builder::new().timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), service_fn(answer));
        tokio::spawn(connection);
    }
}

fn page(core: &Core, method: &Method, path: &str) -> Response<Full<Bytes>> {
    match (method, path) {
        (&Method::GET, "/metrics") => {
            response(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", metrics(core))
        }
        (&Method::GET, "/state") => match state(core) {
            Ok(text) => response(StatusCode::OK, "application/json", text),
            Err(problem) => response(StatusCode::INTERNAL_SERVER_ERROR, "text/plain", problem),
        },
        _ => response(StatusCode::NOT_FOUND, "text/plain", "there are /metrics and /state\n".into()),
    }
}

/// What the SDK counts, then what the plugin counts itself.
fn metrics(core: &Core) -> String {
    let own = core.functions.metrics.as_ref().map(|own| core.with(|_| guarded("metrics", own)));
    let own = own.and_then(Result::ok).unwrap_or_default();
    core.meter.text() + &text_of(&own)
}

fn state(core: &Core) -> Result<String, String> {
    let Some(own) = &core.functions.state else { return Ok("{}\n".into()) };
    let value = core.with(|_| guarded("state", own))?;
    Ok(format!("{value:#}\n"))
}

fn response(status: StatusCode, content_type: &'static str, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
