//! The faster way beside gRPC: calls in ttrpc's frames on a second unix socket.
//!
//! A connection is one task: calls are answered where they are read, and only
//! those that wait get tasks of their own.

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream as Socket;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use prost::Message;
use prost::bytes::{Buf, BufMut, Bytes, BytesMut};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;
use tonic::Code;

use crate::call::{group_calls, placement_calls, scheduling_calls};
use crate::core::{Core, Origin};
use crate::errors::CallError;
use crate::grpc::{at_once, stopped};
use crate::log::{Level, log};
use crate::pb::group_service_server::SERVICE_NAME as GROUP;
use crate::pb::placement_service_server::SERVICE_NAME as PLACEMENT;
use crate::pb::queueing_service_server::SERVICE_NAME as QUEUEING;
use crate::pb::scheduling_service_server::SERVICE_NAME as SCHEDULING;
use crate::pb::{self, TtrpcErrorInfo, TtrpcRequest, TtrpcResponse, TtrpcStatus};
use crate::tracing::TraceParent;

const HEADER_BYTES: usize = 10;
const MAX_MESSAGE_BYTES: usize = 4 << 20;
/// So much may be unwritten before no more is read.
const MAX_UNWRITTEN_BYTES: usize = 8 << 20;
/// So much is read at once: a question about thousands of nodes fits.
const READ_BYTES: usize = 64 << 10;
const REQUEST: u8 = 1;
const RESPONSE: u8 = 2;
const ERROR_INFO: &str = "type.googleapis.com/google.rpc.ErrorInfo";

/// Serves the second socket until the plugin stops.
pub(crate) async fn serve(core: Arc<Core>, listener: UnixListener) {
    let mut stopping = core.stopping.subscribe();
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            Ok((stream, _)) = listener.accept() => {
                connections.spawn(Connection::serve(core.clone(), stream));
            }
            Some(_) = connections.join_next() => {}
            () = stopped(&mut stopping) => break,
        }
    }
    while connections.join_next().await.is_some() {}
}

/// What comes over a socket: its task is woken when there is something to read, and then only.
///
/// Tokio's own streams are woken for writing too. The host would wake the plugin a second
/// time with every answer, by taking it off the socket: a thread switch on the host's way
/// to its decision, for nothing.
struct Incoming {
    socket: AsyncFd<Socket>,
    chunk: Box<[u8]>,
}

impl Incoming {
    /// Reads what is there; nothing: the host hung up.
    async fn read(&mut self) -> io::Result<&[u8]> {
        let length = loop {
            let mut ready = self.socket.readable().await?;
            match ready.get_inner().read(&mut self.chunk) {
                Ok(length) => {
                    if length < self.chunk.len() {
                        // There is no more: what comes from now on wakes anew.
                        ready.clear_ready();
                    }
                    break length;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => ready.clear_ready(),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        };
        Ok(&self.chunk[..length])
    }
}

/// What goes over a socket.
struct Outgoing {
    socket: Socket,
    /// Wakes the task when there is room again; only while there is none.
    full: Option<AsyncFd<Socket>>,
}

impl Outgoing {
    /// Writes some of it, and takes that off.
    async fn write(&mut self, unwritten: &mut BytesMut) -> io::Result<()> {
        loop {
            match self.socket.write(unwritten) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(length) => {
                    unwritten.advance(length);
                    self.full = None;
                    return Ok(());
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            let full = match self.full.take() {
                Some(full) => full,
                None => woken_for(self.socket.try_clone()?, Interest::WRITABLE)?,
            };
            self.full.insert(full).writable().await?.clear_ready();
        }
    }
}

/// A socket whose task is woken for that alone.
// Deprecated for what may give up its descriptor on the way; a socket of std does not.
#[allow(deprecated)]
fn woken_for(socket: Socket, interest: Interest) -> io::Result<AsyncFd<Socket>> {
    AsyncFd::with_interest(socket, interest)
}

struct Connection {
    core: Arc<Core>,
    incoming: Incoming,
    outgoing: Outgoing,
    read: BytesMut,
    unwritten: BytesMut,
    later: JoinSet<Bytes>,
}

impl Connection {
    fn new(core: Arc<Core>, stream: UnixStream) -> io::Result<Self> {
        let socket = stream.into_std()?;
        Ok(Connection {
            core,
            outgoing: Outgoing { socket: socket.try_clone()?, full: None },
            incoming: Incoming { socket: woken_for(socket, Interest::READABLE)?, chunk: vec![0; READ_BYTES].into() },
            read: BytesMut::new(),
            unwritten: BytesMut::new(),
            later: JoinSet::new(),
        })
    }

    async fn serve(core: Arc<Core>, stream: UnixStream) {
        let talked = match Connection::new(core, stream) {
            Ok(mut connection) => connection.talk().await,
            Err(error) => Err(error.to_string()),
        };
        if let Err(problem) = talked {
            log(Level::Warn, "ttrpc connection ended", &[("error", &problem)]);
        }
    }

    /// Answers calls until the host hangs up or the plugin stops.
    ///
    /// # Errors
    /// What broke the connection, or ttrpc's rules.
    async fn talk(&mut self) -> Result<(), String> {
        let mut stopping = self.core.stopping.subscribe();
        let mut ending = false;
        while !ending || !self.later.is_empty() || !self.unwritten.is_empty() {
            let may_read = !ending && self.unwritten.len() <= MAX_UNWRITTEN_BYTES;
            tokio::select! {
                biased;
                written = self.outgoing.write(&mut self.unwritten), if !self.unwritten.is_empty() => {
                    written.map_err(|error| error.to_string())?;
                }
                Some(Ok(answer)) = self.later.join_next() => self.unwritten.extend_from_slice(&answer),
                bytes = self.incoming.read(), if may_read => {
                    let bytes = bytes.map_err(|error| error.to_string())?;
                    if bytes.is_empty() {
                        return Ok(());
                    }
                    self.read.extend_from_slice(bytes);
                    while let Some((stream_id, request)) = next_request(&mut self.read)? {
                        match at_once(answered(self.core.clone(), stream_id, request)) {
                            Ok(answer) => self.unwritten.extend_from_slice(&answer),
                            Err(future) => { self.later.spawn(future); }
                        }
                    }
                }
                () = stopped(&mut stopping), if !ending => ending = true,
            }
        }
        Ok(())
    }
}

/// The next whole frame of what was read.
///
/// # Errors
/// It does not belong there, or is no request.
fn next_request(read: &mut BytesMut) -> Result<Option<(u32, TtrpcRequest)>, String> {
    let Some(mut header) = read.get(..HEADER_BYTES) else { return Ok(None) };
    let length = header.get_u32() as usize;
    let (stream_id, kind) = (header.get_u32(), header.get_u8());
    if length > MAX_MESSAGE_BYTES {
        return Err(format!("a frame of {length} bytes, at most {MAX_MESSAGE_BYTES} are taken"));
    }
    if kind != REQUEST {
        return Err(format!("a frame of type {kind}, requests are {REQUEST}"));
    }
    if read.len() < HEADER_BYTES + length {
        read.reserve(HEADER_BYTES + length - read.len());
        return Ok(None);
    }
    read.advance(HEADER_BYTES);
    let request = TtrpcRequest::decode(read.split_to(length).freeze());
    Ok(Some((stream_id, request.map_err(|error| format!("a request that can't be read: {error}"))?)))
}

/// The frame that answers a request.
async fn answered(core: Arc<Core>, stream_id: u32, request: TtrpcRequest) -> Bytes {
    let timeout = u64::try_from(request.timeout_nano).ok().filter(|nano| *nano > 0).map(Duration::from_nanos);
    let origin = Origin::new(trace_parent(&request), "ttrpc", timeout);
    let answer = payload(&core, &request, &origin).await.and_then(|payload| {
        let response = TtrpcResponse { status: None, payload };
        match response.encoded_len() {
            length if length <= MAX_MESSAGE_BYTES => Ok(response),
            length => {
                let text = format!("an answer of {length} bytes, at most {MAX_MESSAGE_BYTES} are sent");
                Err(CallError::new(Code::ResourceExhausted, text))
            }
        }
    });
    frame(stream_id, &answer.unwrap_or_else(|error| failure(&error)))
}

fn frame(stream_id: u32, response: &TtrpcResponse) -> Bytes {
    let length = response.encoded_len();
    let mut frame = BytesMut::with_capacity(HEADER_BYTES + length);
    // It was held to the bound above, which fits.
    frame.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
    frame.put_u32(stream_id);
    frame.put_u8(RESPONSE);
    frame.put_u8(0);
    response.encode_raw(&mut frame);
    frame.freeze()
}

fn failure(error: &CallError) -> TtrpcResponse {
    let info = TtrpcErrorInfo { reason: error.reason.into(), domain: "berth".into() };
    let detail = prost_types::Any { type_url: ERROR_INFO.into(), value: info.encode_to_vec() };
    let details = if error.reason.is_empty() { Vec::new() } else { vec![detail] };
    let status = TtrpcStatus { code: error.code as i32, message: error.short_text(), details };
    TtrpcResponse { status: Some(status), payload: Bytes::new() }
}

fn trace_parent(request: &TtrpcRequest) -> TraceParent {
    let value = |key| request.metadata.iter().find(|pair| pair.key == key).map(|pair| pair.value.clone());
    TraceParent { traceparent: value("traceparent"), tracestate: value("tracestate") }
}

fn decoded<M: Message + Default>(request: &TtrpcRequest) -> Result<M, CallError> {
    M::decode(request.payload.clone())
        .map_err(|error| CallError::invalid(format!("{} can't be read: {error}", request.method)))
}

macro_rules! by_name {
    ($answer:ident $_service:ident; $($name:ident $method:ident $request:ident $response:ident,)*) => {
        /// The answer to a call of that service, by the method's name.
        async fn $answer(core: &Core, request: &TtrpcRequest, origin: &Origin) -> Result<Bytes, CallError> {
            match request.method.as_str() {
                $(stringify!($name) => {
                    let question: pb::$request = decoded(request)?;
                    // In a box of its own, a call costs the others no room.
                    let answer: Pin<Box<dyn Future<Output = Result<pb::$response, CallError>> + Send + '_>> =
                        Box::pin(core.ask(&question, origin));
                    Ok(answer.await?.encode_to_vec().into())
                })*
                _ => Err(unknown(request)),
            }
        }
    };
}

scheduling_calls!(by_name);
placement_calls!(by_name);
group_calls!(by_name);

/// The answer to a call, by its service's and method's names.
async fn payload(core: &Core, request: &TtrpcRequest, origin: &Origin) -> Result<Bytes, CallError> {
    match (request.service.as_str(), request.method.as_str()) {
        (SCHEDULING, _) => scheduling(core, request, origin).await,
        (PLACEMENT, _) => placement(core, request, origin).await,
        (GROUP, _) => group(core, request, origin).await,
        (QUEUEING, "QueueingHints") => Ok(core.hints(&decoded(request)?, &origin.parent)?.encode_to_vec().into()),
        (QUEUEING, "SortKeys") => Ok(core.sort_keys(&decoded(request)?, &origin.parent)?.encode_to_vec().into()),
        _ => Err(unknown(request)),
    }
}

fn unknown(request: &TtrpcRequest) -> CallError {
    CallError::new(Code::Unimplemented, format!("there is no {}/{}", request.service, request.method))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcomes::Reason;
    use crate::plugin::Plugin;
    use crate::testing::{Host, node, pod};

    fn host() -> Host {
        Host::run(Plugin::new("p", ()).filter(|(), _, _| Err(Reason::new("node(s) were full"))), [node("n")])
    }

    fn connected(host: &Host) -> Socket {
        let path = host.address.strip_prefix("unix:").expect("a unix socket");
        Socket::connect(format!("{path}.ttrpc")).expect("the second socket")
    }

    /// A request as it is sent, of that type of frame.
    fn sent(kind: u8, stream_id: u32, method: &str, payload: &impl Message) -> Vec<u8> {
        let payload = payload.encode_to_vec().into();
        let request =
            TtrpcRequest { service: SCHEDULING.into(), method: method.into(), payload, ..Default::default() };
        let mut frame = Vec::new();
        frame.put_u32(u32::try_from(request.encoded_len()).expect("a short request"));
        frame.put_u32(stream_id);
        frame.put_slice(&[kind, 0]);
        frame.put_slice(&request.encode_to_vec());
        frame
    }

    fn answer(socket: &mut Socket) -> (u32, TtrpcResponse) {
        let mut header = [0; HEADER_BYTES];
        socket.read_exact(&mut header).expect("a header");
        let mut fields = header.as_slice();
        let (length, stream_id) = (fields.get_u32(), fields.get_u32());
        assert_eq!([RESPONSE, 0], fields);
        let mut message = vec![0; length as usize];
        socket.read_exact(&mut message).expect("a message");
        (stream_id, TtrpcResponse::decode(message.as_slice()).expect("a response"))
    }

    #[test]
    fn calls_are_answered_as_over_grpc() {
        let host = host();
        let mut socket = connected(&host);
        let question = pb::FilterRequest { call: Some(host.call(pod("q"))), candidates: None };
        let mut both = sent(REQUEST, 1, "Filter", &question);
        both.extend(sent(REQUEST, 3, "NoSuchCall", &question));

        // In pieces: frames need not end where reads do.
        for piece in both.chunks(7) {
            socket.write_all(piece).expect("a connection");
        }
        let (first, second) = (answer(&mut socket), answer(&mut socket));

        let filtered = pb::FilterResponse::decode(first.1.payload).expect("an answer");
        assert_eq!(
            (1, "node(s) were full"),
            (first.0, filtered.verdicts.expect("verdicts").reasons[0].text.as_str())
        );
        assert_eq!((3, Code::Unimplemented as i32), (second.0, second.1.status.expect("a status").code));
    }

    #[test]
    fn a_refusal_says_what_to_do_next() {
        let host = host();
        let mut socket = connected(&host);
        let mut call = host.call(pod("q"));
        call.pod.get_or_insert_default().object = None;

        let question = pb::FilterRequest { call: Some(call), candidates: None };
        socket.write_all(&sent(REQUEST, 1, "Filter", &question)).expect("a connection");
        let status = answer(&mut socket).1.status.expect("a status");

        let info = TtrpcErrorInfo::decode(status.details[0].value.as_slice()).expect("details");
        assert_eq!((Code::FailedPrecondition as i32, ERROR_INFO), (status.code, status.details[0].type_url.as_str()));
        assert_eq!(("POD_UNKNOWN", "berth"), (info.reason.as_str(), info.domain.as_str()));
    }

    #[test]
    fn what_is_no_request_ends_the_connection_and_no_other() {
        let host = host();
        let question = pb::FilterRequest { call: Some(host.call(pod("q"))), candidates: None };
        let mut too_long = sent(REQUEST, 1, "Filter", &question);
        too_long[0] = 1;
        for wrong in [sent(3, 1, "Filter", &question), too_long] {
            let (mut bad, mut good) = (connected(&host), connected(&host));

            bad.write_all(&wrong).expect("a connection");
            assert!(matches!(bad.read(&mut [0; 1]), Ok(0) | Err(_)), "the connection ended");

            good.write_all(&sent(REQUEST, 1, "Filter", &question)).expect("a connection");
            assert_eq!(1, answer(&mut good).0);
        }
    }

    #[test]
    fn answers_that_do_not_fit_into_the_socket_are_sent_when_they_do() {
        const CALLS: u32 = 3_000;
        let host = host();
        let mut socket = connected(&host);
        let question = pb::FilterRequest { call: Some(host.call(pod("q"))), candidates: None };

        // None is read before all are asked: the socket is full of answers meanwhile.
        for number in 0..CALLS {
            socket.write_all(&sent(REQUEST, 2 * number + 1, "Filter", &question)).expect("a connection");
        }

        for number in 0..CALLS {
            assert_eq!(2 * number + 1, answer(&mut socket).0);
        }
    }

    #[test]
    fn a_call_that_waits_for_its_generation_holds_up_no_other() {
        let mut host = host();
        let mut socket = connected(&host);
        let mut ahead = host.call(pod("q"));
        ahead.generation += 1;
        let [ahead, now] =
            [ahead, host.call(pod("q"))].map(|call| pb::FilterRequest { call: Some(call), candidates: None });

        socket.write_all(&sent(REQUEST, 1, "Filter", &ahead)).expect("a connection");
        socket.write_all(&sent(REQUEST, 3, "Filter", &now)).expect("a connection");
        let first = answer(&mut socket).0;
        host.cluster.put_node(node("late"));
        host.update();
        let second = answer(&mut socket);

        let filtered = pb::FilterResponse::decode(second.1.payload).expect("an answer");
        assert_eq!((3, 1, 2), (first, second.0, filtered.generation));
    }
}
