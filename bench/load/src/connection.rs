//! One kept connection: a request, its answer, the next one.
//!
//! It must never count a request as answered before its whole answer was read.

use std::{io, net::SocketAddr, time::Duration};

use ichido_verify::Timestamp;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{Instant, sleep},
};

use crate::{plan::Plan, report::Tally, template::Template};

/// Most headers of an answer.
const ANSWER_HEADERS_MAX: usize = 32;
/// Pause before a broken connection is made anew.
const PAUSE: Duration = Duration::from_millis(20);

/// Sends what the plan has, until it has no more.
pub(crate) async fn run(
    address: SocketAddr,
    plan: &Plan,
    template: &Template,
    tally: &Tally,
) -> anyhow::Result<()> {
    let mut stream = connect(address).await?;
    let (mut request, mut answer) = (Vec::new(), Vec::with_capacity(4096));
    while let Some(turn) = plan.next().await {
        template.write(turn.event, Timestamp::now(), &mut request)?;
        // As fast as it goes, signing is not the server's time; at a fixed rate, being late is.
        let from = if plan.is_paced() { turn.due } else { Instant::now() };
        tally.sent(request.len());
        if let Ok(status) = exchange(&mut stream, &request, &mut answer).await {
            tally.answered(status, from.elapsed());
        } else {
            tally.broken();
            sleep(PAUSE).await;
            stream = connect(address).await?;
        }
    }
    Ok(())
}

async fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

async fn exchange(stream: &mut TcpStream, request: &[u8], answer: &mut Vec<u8>) -> io::Result<u16> {
    stream.write_all(request).await?;
    answer.clear();
    loop {
        if stream.read_buf(answer).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if let Some(status) = whole(answer)? {
            return Ok(status);
        }
    }
}

/// The status of an answer that is there to its last byte.
fn whole(answer: &[u8]) -> io::Result<Option<u16>> {
    let bad = |what| io::Error::new(io::ErrorKind::InvalidData, what);
    let mut headers = [httparse::EMPTY_HEADER; ANSWER_HEADERS_MAX];
    let mut parsed = httparse::Response::new(&mut headers);
    let head = match parsed.parse(answer).map_err(|_| bad("not HTTP/1.1"))? {
        httparse::Status::Partial => return Ok(None),
        httparse::Status::Complete(head) => head,
    };
    let length = parsed.headers.iter().find(|h| h.name.eq_ignore_ascii_case("content-length"));
    let length = length.ok_or_else(|| bad("no content-length"))?.value;
    let length = std::str::from_utf8(length).ok().and_then(|text| text.parse::<usize>().ok());
    let length = length.ok_or_else(|| bad("unreadable content-length"))?;
    Ok(parsed.code.filter(|_| answer.len() >= head + length))
}

#[cfg(test)]
mod tests {
    use super::whole;

    #[test]
    fn an_answer_counts_when_its_last_byte_is_there() {
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc";
        for cut in 1..answer.len() {
            assert_eq!(whole(&answer[..cut]).expect("HTTP"), None, "{cut}");
        }
        assert_eq!(whole(answer).expect("HTTP"), Some(200));
    }

    #[test]
    fn an_answer_of_unknown_length_is_refused() {
        assert!(whole(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
    }
}
