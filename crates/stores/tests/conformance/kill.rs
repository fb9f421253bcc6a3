//! Cases in which a process is killed while it writes.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use loadstone_load::{Projection, Row, Status};
use loadstone_stores::key_value::KeyValue;
use loadstone_stores::{Durability, Store};

use crate::subject::{Calls, Subject, open};

const DIRECTORY: &str = "LOADSTONE_TEST_DIRECTORY";
const DURABILITY: &str = "LOADSTONE_TEST_DURABILITY";
const START: &str = "LOADSTONE_TEST_START";
const ACKNOWLEDGED: &str = "acknowledged ";

/// Keys ascend. After every 2,000 keys or so, they start again at the lowest values and fall between the earlier keys,
/// so that trees are split in the middle.
fn key(n: usize) -> Vec<u8> {
    format!("user{:08}", n.wrapping_mul(48_271) % 99_999_989).into_bytes()
}

fn value(n: usize) -> Row {
    let mut row = Row::default();
    row.push_field(b"n", n.to_string().as_bytes());
    row.push_with(b"filling", 50 + n % 1_500, |bytes| bytes.fill(n as u8));
    row
}

/// The process that is killed. It inserts records numbered from START on, and prints the number of each inserted
/// record.
pub fn victim<K: KeyValue>(subject: &Subject) {
    let Ok(directory) = std::env::var(DIRECTORY) else {
        return;
    };
    let mut options = subject.options(&directory);
    options.durability = Durability::parse(&std::env::var(DURABILITY).expect(DURABILITY)).expect("a level");
    let start = std::env::var(START).expect(START).parse::<usize>().expect("a number");
    options.create = start == 0;
    let store = open::<K>(&options);
    let mut session = store.session().expect("a session");
    for n in start.. {
        assert_eq!(session.insert_row(&key(n), &value(n)), Status::Ok);
        // Each complete line is written to the pipe, so that the line, like the record, survives the process.
        writeln!(std::io::stdout(), "{ACKNOWLEDGED}{n}").expect("the parent reads it");
    }
}

/// Starts a victim, kills it after `count` inserts, and returns the first number that was not acknowledged.
fn kill_victim(subject: &Subject, directory: &str, durability: Durability, start: usize, count: usize) -> usize {
    let mut child = Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", &format!("{}::victim", subject.name), "--ignored", "--nocapture", "--test-threads=1"])
        .env(DIRECTORY, directory)
        .env(DURABILITY, durability.name())
        .env(START, start.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .expect("this test, again");
    let mut next = start;
    // Lines still arrive after the kill if the victim had already written them to the pipe.
    for line in BufReader::new(child.stdout.take().expect("a pipe")).lines().map_while(Result::ok) {
        // The test harness prints before the first line, and the kill may truncate a line.
        if let Some((_, n)) = line.split_once(ACKNOWLEDGED)
            && n.parse() == Ok(next)
        {
            next += 1;
            if next == start + count {
                child.kill().expect("a kill");
            }
        }
    }
    let ended = child.wait().expect("an end");
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&ended), Some(9), "it exited before the signal: {ended}");
    assert!(next >= start + count);
    next
}

/// Kills a process three times in succession, each time on the files that the previous process left.
fn kill_and_reopen<K: KeyValue>(subject: &Subject, durability: Durability, counts: [usize; 3]) {
    let mut place = subject.place();
    place.options.durability = durability;
    place.options.create = false;
    let directory = subject.directory(&place.options).display().to_string();
    let mut next = 0;
    for count in counts {
        let acknowledged = kill_victim(subject, &directory, durability, next, count);
        let store = open::<K>(&place.options);
        let mut session = store.session().expect("a session");
        // A write that was not acknowledged may or may not be in the store.
        let (status, stored) = session.scan_rows(b"", acknowledged + 1);
        assert_eq!(status, Status::Ok, "the remaining records are readable");
        // The store must provide the level that it reports. For `none`, LMDB provides more than requested, and reports
        // this.
        if store.guarantee().durability > Durability::None {
            assert!(stored.len() >= acknowledged);
            for n in 0..acknowledged {
                let read = session.read_row(&key(n), Projection::All);
                assert_eq!(
                    read,
                    (Status::Ok, value(n)),
                    "record {n} of {acknowledged}, acknowledged at {durability:?}"
                );
            }
        }
        assert_eq!(session.insert_row(b"after", &value(0)), Status::Ok, "the store still works");
        assert_eq!(session.delete_row(b"after"), Status::Ok);
        drop(session);
        store.close().expect("a clean close");
        next = acknowledged;
    }
}

pub fn none_opens_after_a_kill<K: KeyValue>(subject: &Subject) {
    kill_and_reopen::<K>(subject, Durability::None, [2_000, 1, 500]);
}

pub fn os_outlives_a_kill<K: KeyValue>(subject: &Subject) {
    kill_and_reopen::<K>(subject, Durability::Os, [2_000, 1, 500]);
}

pub fn device_outlives_a_kill<K: KeyValue>(subject: &Subject) {
    kill_and_reopen::<K>(subject, Durability::Device, [100, 1, 50]);
}
