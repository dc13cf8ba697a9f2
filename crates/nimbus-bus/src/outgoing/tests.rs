//! Answers that nobody reads.

use std::collections::VecDeque;

use super::*;

/// A stream of messages; when there are no more, the next may come any time.
struct Says(VecDeque<usize>);

impl http_body::Body for Says {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        match self.0.pop_front() {
            // There is nothing yet.
            None | Some(0) => Poll::Pending,
            Some(bytes) => Poll::Ready(Some(Ok(Frame::data(vec![7; bytes].into())))),
        }
    }
}

/// The next bytes, if there are some; an error if there never will be.
fn read(body: &mut Body) -> Option<Result<usize, Status>> {
    match Pin::new(body).poll_frame(&mut Context::from_waker(Waker::noop())) {
        Poll::Pending => None,
        Poll::Ready(frame) => Some(match frame.expect("it has no end").unwrap().into_data() {
            Ok(data) => Ok(data.len()),
            Err(trailers) => Err(Status::from_header_map(trailers.trailers_ref().unwrap()).unwrap()),
        }),
    }
}

/// Of a stream, only the first message was held to the limit: hundreds who watched an agent with much to say, and read nothing,
/// made the bus keep as many copies of what it said.
#[test]
fn each_message_of_a_stream_is_held_to_the_limit_and_the_one_that_was_given_first_goes() {
    let limits = Limits { outgoing_bytes: 150_000, ..Limits::default() };
    let outgoing = Outgoing::new(&limits, Metrics::default());
    let hold = |says: &[usize]| outgoing.hold(http::Response::new(Body::new(Says(says.to_vec().into())))).into_body();
    // The first message comes at once, or later, or follows a small one.
    for (says, before) in [(&[100_000][..], 0), (&[0, 100_000][..], 0), (&[0, 10, 100_000][..], 10)] {
        let mut first = hold(says);
        if before > 0 {
            assert_eq!(read(&mut first).unwrap().unwrap(), before);
        }
        assert_eq!(read(&mut first).unwrap().unwrap(), PIECE, "{says:?}");
        assert_eq!(outgoing.bytes(), 100_000 - PIECE, "{says:?}");
        let mut second = hold(&[0, 100_000]);
        assert_eq!(read(&mut second).unwrap().unwrap(), PIECE);
        assert_eq!(outgoing.bytes(), 100_000 - PIECE, "{says:?}: there is room for one");
        assert!(read(&mut first).unwrap().unwrap_err().message().contains("limited to 150000"), "{says:?}");
        let mut left = PIECE;
        while let Some(more) = read(&mut second) {
            left += more.unwrap();
        }
        assert_eq!((left, outgoing.bytes()), (100_000, 0), "{says:?}: who reads gets everything");
    }
}

/// Eight who watched an agent with much to say took all the room there is. Whoever had begun before them went for it, though it
/// was a list of a few bytes that was about to be read.
#[test]
fn who_has_little_does_not_give_way_for_those_who_have_much() {
    let limits = Limits { outgoing_bytes: 150_000, ..Limits::default() };
    let outgoing = Outgoing::new(&limits, Metrics::default());
    let hold = |bytes| outgoing.hold(http::Response::new(Body::new(Says([bytes].into())))).into_body();
    let mut little = hold(5_000);
    let mut much: Vec<_> = (0..8).map(|_| hold(140_000)).collect();
    assert_eq!(read(&mut little).unwrap().unwrap(), 5_000);
    let ends = much.iter_mut().map(|body| read(body).unwrap().is_err());
    assert_eq!(ends.filter(|is_over| *is_over).count(), 7, "there is room for one");
}
