//! The connection through which a block is written to its data nodes: each data node forwards everything to the next
//! data node.

use std::io::{self, IoSlice};
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::Instant;

use super::messages::{invalid, read_delimited};
use super::packets::{BATCH, Packets, heartbeat};
use super::write_messages::{Acknowledgement, PipelineAnswer, WriteBlock};

/// Maximum time that a server may take to accept a connection.
pub(super) const REACH: Duration = Duration::from_secs(5);

/// `DataTransferProtocol.DATA_TRANSFER_VERSION`, followed by `Op.WRITE_BLOCK`.
pub(super) const WRITE_BLOCK: [u8; 3] = [0, 28, 80];
/// Size of the receive buffer, bytes: space for about two hundred acknowledgements.
const RECEIVE_BYTES: usize = 4 << 10;
/// Time to wait for acknowledgements after a failure.
const RECEIVE_PAUSE: Duration = Duration::from_millis(20);
/// Minimum bytes of an acknowledgement: for its length and the packet's number, and for the reply of each data node.
/// After a failure, an acknowledgement has the replies of only two data nodes.
const LENGTH_AND_NUMBER: usize = 3;
const REPLY: usize = 2;

/// A failure of a pipeline, with the position of the data node that is assumed to have caused it.
#[derive(Debug)]
pub(super) struct PipelineFault {
    pub node: usize,
    pub error: io::Error,
}

impl From<io::Error> for PipelineFault {
    /// A failure of the connection. The faulty node is unknown, so the fault is attributed to the first node.
    fn from(error: io::Error) -> Self {
        Self { node: 0, error }
    }
}

/// The sending side of a pipeline, shared by its writer and the heartbeats.
#[derive(Debug)]
pub(super) struct Socket {
    stream: OwnedWriteHalf,
    sending: Mutex<Sending>,
}

#[derive(Debug)]
struct Sending {
    /// Whether a packet was sent partially, or the last packet was sent. In both cases, no heartbeat may be sent.
    closed: bool,
    /// Time of the last send.
    at: Instant,
}

impl Socket {
    /// Sends as much as the kernel accepts.
    fn send_slices(&self, slices: &[IoSlice<'_>], last: bool) -> io::Result<usize> {
        let mut sending = self.sending.lock().unwrap_or_else(PoisonError::into_inner);
        let sent = self.stream.try_write_vectored(slices)?;
        let bytes: usize = slices.iter().map(|slice| slice.len()).sum();
        *sending = Sending { closed: last || sent < bytes, at: Instant::now() };
        Ok(sent)
    }

    /// Sends a heartbeat if nothing has been sent for this long, because a data node drops a silent client.
    pub fn keep_alive(&self, silence: Duration) {
        let mut sending = self.sending.lock().unwrap_or_else(PoisonError::into_inner);
        if sending.closed || sending.at.elapsed() < silence {
            return;
        }
        let packet = heartbeat();
        // Errors are ignored: if the socket's buffer is full, data is being sent, and if the connection has failed, the
        // writer notices it.
        if let Ok(sent) = self.stream.try_write(&packet) {
            // The remainder of a partially sent packet cannot be sent. The writer then receives no more
            // acknowledgements, and recovers.
            *sending = Sending { closed: sent < packet.len(), at: Instant::now() };
        }
    }
}

/// The pipeline of a block.
#[derive(Debug)]
pub(super) struct Pipeline {
    socket: Arc<Socket>,
    acknowledgements: OwnedReadHalf,
    /// Number of data nodes.
    nodes: usize,
    /// Maximum number of packets in flight.
    window: usize,
    /// Maximum time without a message from the pipeline.
    timeout: Duration,
    received: Vec<u8>,
    /// The end of the received bytes, which do not yet form a complete acknowledgement.
    end: usize,
    acknowledgement: Acknowledgement,
    /// Size of the last acknowledgement, in bytes.
    acknowledgement_bytes: usize,
    /// Minimum number of received bytes for which the kernel wakes the reader.
    awaited: usize,
}

impl Pipeline {
    /// Connects to the first data node and asks it to set up the pipeline. `addresses` are the addresses under which
    /// the data nodes know each other.
    pub async fn connect(
        address: &str,
        addresses: &[String],
        request: &WriteBlock,
        window: usize,
        timeout: Duration,
    ) -> Result<Self, PipelineFault> {
        let connecting = tokio::time::timeout(timeout.min(REACH), TcpStream::connect(address));
        let mut stream = connecting.await.map_err(io::Error::from)??;
        stream.set_nodelay(true)?;
        let request = [WRITE_BLOCK.as_slice(), &request.encode_length_delimited_to_vec()].concat();
        stream.write_all(&request).await?;
        let answer = tokio::time::timeout(timeout, read_delimited(&mut stream)).await;
        let answer: PipelineAnswer = answer.map_err(io::Error::from)??;
        if answer.status != 0 {
            let bad = answer.first_bad.filter(|bad| !bad.is_empty());
            let node = bad.and_then(|bad| addresses.iter().position(|address| *address == bad)).unwrap_or(0);
            let status = format!("status {}", answer.status);
            let message = answer.message.filter(|message| !message.is_empty()).unwrap_or(status);
            return Err(PipelineFault { node, error: invalid(format!("the pipeline was refused: {message}")) });
        }
        let sending = Mutex::new(Sending { closed: false, at: Instant::now() });
        let (acknowledgements, stream) = stream.into_split();
        Ok(Self {
            socket: Arc::new(Socket { stream, sending }),
            acknowledgements,
            nodes: addresses.len(),
            window,
            timeout,
            received: vec![0; RECEIVE_BYTES],
            end: 0,
            acknowledgement: Acknowledgement::default(),
            acknowledgement_bytes: 0,
            awaited: 1,
        })
    }

    /// The socket of the pipeline.
    pub fn socket(&self) -> &Arc<Socket> {
        &self.socket
    }

    /// Sends all packets, and waits until at most `left` are unacknowledged.
    pub async fn drive_packets(&mut self, packets: &mut Packets, left: usize) -> Result<(), PipelineFault> {
        loop {
            let batch = packets.count_unsent().min(BATCH).min(self.window);
            let in_flight = packets.count_unacknowledged() - packets.count_unsent();
            let ready = if batch > 0 && in_flight + batch <= self.window {
                self.send_packets(packets, batch).await
            } else if batch == 0 && packets.count_unacknowledged() <= left {
                return Ok(());
            } else {
                let needed =
                    if batch > 0 { in_flight + batch - self.window } else { packets.count_unacknowledged() - left };
                self.receive_answers(in_flight, needed).await
            };
            match ready {
                Ok(received) => self.accept_answers(received, packets)?,
                Err(error) => return Err(self.fault_behind(error, packets).await),
            }
        }
    }

    /// Finds the cause of a failed connection: an acknowledgement that has not been received yet may name the faulty
    /// data node.
    async fn fault_behind(&mut self, error: io::Error, packets: &mut Packets) -> PipelineFault {
        if self.wait_for(1).is_err() {
            return error.into();
        }
        loop {
            let free = &mut self.received[self.end..];
            let Ok(Ok(received @ 1..)) = tokio::time::timeout(RECEIVE_PAUSE, self.acknowledgements.read(free)).await
            else {
                return error.into();
            };
            if let Err(fault) = self.accept_answers(received, packets) {
                return fault;
            }
        }
    }

    /// Sends the next packets. Receives nothing, so it returns 0 as the number of received bytes.
    async fn send_packets(&mut self, packets: &mut Packets, batch: usize) -> io::Result<usize> {
        let last = packets.is_at_end();
        let (mut slices, used) = packets.next_batch(batch);
        let mut rest = &mut slices[..used];
        while !rest.is_empty() {
            match self.socket.send_slices(rest, last) {
                Ok(sent) => IoSlice::advance_slices(&mut rest, sent),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    // While the task waits to send, acknowledgements must not wake it.
                    self.wait_for(RECEIVE_BYTES)?;
                    tokio::time::timeout(self.timeout, self.socket.stream.writable()).await??;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(0)
    }

    /// Receives acknowledgements, of which `needed` are required. Returns the number of bytes.
    async fn receive_answers(&mut self, in_flight: usize, needed: usize) -> io::Result<usize> {
        // Waits for several acknowledgements at once, but never for more bytes than are certain to arrive.
        let at_least = in_flight * (LENGTH_AND_NUMBER + REPLY * self.nodes.min(2));
        self.wait_for((needed * self.acknowledgement_bytes).min(at_least).saturating_sub(self.end))?;
        let free = &mut self.received[self.end..];
        match tokio::time::timeout(self.timeout, self.acknowledgements.read(free)).await {
            Ok(Ok(0)) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(received) => received,
            Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "no acknowledgement arrived in time")),
        }
    }

    /// Makes the kernel wait until this many bytes have arrived before it reports them.
    fn wait_for(&mut self, bytes: usize) -> io::Result<()> {
        let bytes = bytes.clamp(1, RECEIVE_BYTES / 2);
        if bytes == self.awaited {
            return Ok(());
        }
        let value = bytes as libc::c_int;
        let descriptor = self.acknowledgements.as_ref().as_raw_fd();
        // SAFETY: the socket is open, and the option's value is an int.
        let set = unsafe {
            let length = size_of::<libc::c_int>() as libc::socklen_t;
            libc::setsockopt(descriptor, libc::SOL_SOCKET, libc::SO_RCVLOWAT, (&raw const value).cast(), length)
        };
        if set != 0 {
            return Err(io::Error::last_os_error());
        }
        self.awaited = bytes;
        Ok(())
    }

    /// Processes the received acknowledgements.
    fn accept_answers(&mut self, received: usize, packets: &mut Packets) -> Result<(), PipelineFault> {
        self.end += received;
        let mut start = 0;
        while let Some((begin, end)) = message_bounds(&self.received[start..self.end])? {
            let acknowledgement = &mut self.acknowledgement;
            acknowledgement.clear();
            acknowledgement.merge(&self.received[start + begin..start + end]).map_err(io::Error::from)?;
            if let Some((node, status)) = acknowledgement.find_failure() {
                return Err(PipelineFault { node, error: invalid(format!("it acknowledged with status {status}")) });
            }
            // Acknowledgements of heartbeats contain no information.
            if acknowledgement.number != -1 {
                packets.acknowledge_packet(acknowledgement.number)?;
                self.acknowledgement_bytes = end;
            }
            start += end;
        }
        self.received.copy_within(start..self.end, 0);
        self.end -= start;
        Ok(())
    }
}

/// The start and end of the first message, without its length prefix; `None` if it is incomplete.
fn message_bounds(received: &[u8]) -> io::Result<Option<(usize, usize)>> {
    let Some(last) = received.iter().position(|byte| *byte < 0x80) else {
        return if received.len() < 10 { Ok(None) } else { Err(invalid("an acknowledgement without a length")) };
    };
    let end = last + 1 + prost::decode_length_delimiter(received)?;
    if end > RECEIVE_BYTES {
        return Err(invalid(format!("an acknowledgement of {end} bytes")));
    }
    Ok((end <= received.len()).then_some((last + 1, end)))
}
