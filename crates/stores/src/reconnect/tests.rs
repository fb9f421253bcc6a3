use super::*;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

const MS: Duration = Duration::from_millis(1);

fn read(text: &str) -> Result<Reconnect, EngineError> {
    let properties = [("reconnect".to_owned(), text.to_owned())].into();
    Reconnect::read(&Options { properties, ..Options::default() })
}

/// Runs a test on a clock that jumps from one timer to the next.
fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, test);
}

fn new_refusal() -> Failure {
    Failure::new(Status::ServiceUnavailable, "refused").connecting(ConnectError::Other)
}

/// A server that answers attempts according to a script, and the times of the attempts.
#[derive(Clone)]
struct Server {
    start: Instant,
    answer: Rc<dyn Fn(Duration) -> Option<Result<(), Failure>>>,
    attempts: Rc<RefCell<Vec<Duration>>>,
}

impl Server {
    fn new(answer: impl Fn(Duration) -> Option<Result<(), Failure>> + 'static) -> Self {
        Self { start: Instant::now(), answer: Rc::new(answer), attempts: Rc::default() }
    }

    /// `None` in the script means no answer within a second.
    fn open(&self) -> impl AsyncFn() -> Result<(), Failure> + 'static {
        let server = self.clone();
        async move || {
            let at = server.start.elapsed();
            server.attempts.borrow_mut().push(at);
            if let Some(answer) = (server.answer)(at) {
                return answer;
            }
            tokio::time::sleep(1_000 * MS).await;
            Err(Failure::new(Status::Timeout, "silent"))
        }
    }
}

#[test]
fn policies_are_parsed_or_refused() {
    assert_eq!(Reconnect::read(&Options::default()), Ok(Reconnect::Constant(500 * MS)));
    assert_eq!(read("constant(20ms)"), Ok(Reconnect::Constant(20 * MS)));
    let exponential = read(" exponential( 1s , 1m ) ").unwrap();
    assert_eq!(exponential, Reconnect::Exponential(1_000 * MS, 60_000 * MS));
    assert_eq!(exponential.to_string(), "exponential(1000 ms, 60000 ms)");
    for bad in ["constant", "constant(0s)", "constant(1)", "constant(1s,2s)", "exponential(2s,1s)", "linear(1s)"] {
        let error = read(bad).unwrap_err();
        assert!(error.is_usage() && error.hint.is_some() && error.message.contains(bad), "{bad}");
    }
}

#[test]
fn delays_double_up_to_the_longest() {
    let policy = Reconnect::Exponential(1_000 * MS, 5_000 * MS);
    let nominal = |failures| policy.delay(failures, 0.5).as_millis();
    assert_eq!([1, 2, 3, 4, 200].map(nominal), [1_000, 2_000, 4_000, 5_000, 5_000]);
    assert_eq!(Reconnect::default().delay(9, 0.0), 425 * MS);
    assert!(Reconnect::default().delay(9, 1.0) <= 575 * MS);
}

#[test]
fn sessions_of_a_refusing_node_share_attempts() {
    run(async {
        let node = Node::new(Reconnect::default());
        let server = Server::new(|at| Some(if at < 2_000 * MS { Err(new_refusal()) } else { Ok(()) }));
        node.lose_connection(0);
        let failures = Rc::new(Cell::new(0u32));
        let clients = (0..1_000).map(|_| {
            let (node, open, failures) = (Arc::clone(&node), server.clone(), Rc::clone(&failures));
            tokio::task::spawn_local(async move {
                // There is one operation every 100 ms.
                while node.connect(open.open(), 1_000 * MS).await.is_err() {
                    failures.set(failures.get() + 1);
                    tokio::time::sleep(100 * MS).await;
                }
                open.start.elapsed()
            })
        });
        for client in clients.collect::<Vec<_>>() {
            assert!(client.await.unwrap() < 2_700 * MS, "used again within a second");
        }
        let attempts = server.attempts.borrow();
        let during: Vec<_> = attempts.iter().filter(|&&at| at < 2_000 * MS).collect();
        assert!((5..=7).contains(&during.len()), "{during:?}");
        assert!(
            during[1..].windows(2).all(|two| (425 * MS..=576 * MS).contains(&two[1].abs_diff(*two[0]))),
            "{during:?}"
        );
        assert_eq!(
            node.attempts(),
            ConnectionAttempts { attempted: attempts.len() as u64, failed: during.len() as u64 }
        );
        assert!((20_000..=26_000).contains(&failures.get()), "each operation failed immediately: {}", failures.get());
    });
}

#[test]
fn silent_node_blocks_sessions_for_their_limit() {
    run(async {
        let node = Node::new(Reconnect::default());
        let server = Server::new(|at| (at >= 5_000 * MS).then_some(Ok(())));
        node.lose_connection(0);
        let clients: Vec<_> = (0..100)
            .map(|_| {
                let (node, open) = (Arc::clone(&node), server.clone());
                tokio::task::spawn_local(async move {
                    let mut waits = Vec::new();
                    loop {
                        let start = Instant::now();
                        let opened = node.connect(open.open(), 1_500 * MS).await;
                        waits.push((opened.map_err(|failure| failure.status), start.elapsed()));
                        if waits.last().is_some_and(|(opened, _)| opened.is_ok()) {
                            return waits;
                        }
                    }
                })
            })
            .collect();
        for client in clients {
            let waits = client.await.unwrap();
            let timed_out = waits.iter().filter(|(opened, _)| *opened == Err(Status::Timeout));
            assert!(timed_out.clone().all(|(_, wait)| (1_000 * MS..=1_502 * MS).contains(wait)), "{waits:?}");
            assert!((3..=5).contains(&timed_out.count()), "{waits:?}");
        }
        let silent = server.attempts.borrow().iter().filter(|&&at| at < 5_000 * MS).count();
        assert!(silent <= 5, "one attempt at a time: {silent}");
    });
}

#[test]
fn one_broken_connection_costs_one_attempt() {
    run(async {
        let node = Node::new(Reconnect::default());
        let server = Server::new(|_| Some(Ok(())));
        let losses = node.losses();
        node.lose_connection(0);
        assert_ne!(node.losses(), losses);
        assert!(node.connect(server.open(), MS).await.is_ok());
        assert_eq!(node.attempts(), ConnectionAttempts { attempted: 1, failed: 0 });
        assert!(node.refusal().is_none());
        // A session that was idle during the outage is the last session to notice it.
        node.lose_connection(0);
        assert!(node.take_turn().is_ok_and(|turn| !turn.exclusive));
    });
}

#[test]
fn served_clients_keep_a_refused_one_from_failing() {
    run(async {
        let node = Node::new(Reconnect::default());
        // The first attempt is reset, and the next attempt succeeds.
        let attempts = Cell::new(0);
        let server = Server::new(move |_| Some(if attempts.replace(1) == 0 { Err(new_refusal()) } else { Ok(()) }));
        node.lose_connection(0);
        assert!(node.connect(server.open(), 1_000 * MS).await.is_err());
        assert!(node.refusal().is_none(), "operations wait for the second attempt");
        assert!(node.connect(server.open(), 1_000 * MS).await.is_ok());
        assert!(server.start.elapsed() < 10 * MS, "without a delay after the first failure");
        // Both attempts in an outage fail, but the connection of a different session is open.
        let server = Server::new(|_| Some(Err(new_refusal())));
        node.lose_connection(node.generation());
        assert!(node.connect(server.open(), 1_000 * MS).await.is_err());
        assert!(node.connect(server.open(), 1_000 * MS).await.is_err());
        assert!(node.refusal().is_some());
        node.confirm_connection(node.losses());
        assert!(node.refusal().is_none());
    });
}

#[test]
fn dropped_attempt_passes_its_turn_on() {
    run(async {
        let node = Node::new(Reconnect::default());
        node.lose_connection(0);
        let first = node.wait_for_turn().await;
        assert!(node.take_turn().is_err_and(|next| next.is_none()), "an attempt is in flight");
        drop(first);
        node.wait_for_turn().await.end(Ok(()));
        assert!(node.take_turn().is_ok());
    });
}
