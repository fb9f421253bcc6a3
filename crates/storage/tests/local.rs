//! Tests of local files and directories: reads return the bytes that were written, whatever the alignment, a rename
//! never replaces a file, and a listing skips files that vanish.

#![allow(clippy::unwrap_used, reason = "test helpers fail as tests do")]

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use futures::FutureExt;
use loadstone_storage::fs::local::{Direct, Local, LocalOptions};
use loadstone_storage::fs::{
    ALIGNMENT, AlignedBuffer, CreateOptions, FileKind, FileSystem, FsError, FsErrorKind, OpenOptions, Reader, Writer,
};
use proptest::prelude::*;

/// The result of a call to a local file system. Such calls are ready immediately.
fn wait_for<T>(answer: impl Future<Output = Result<T, FsError>>) -> Result<T, FsError> {
    answer.now_or_never().unwrap()
}

fn local(direct: Direct, uring_depth: Option<usize>) -> Local {
    Local::new(LocalOptions { direct, uring_depth })
}

fn path(directory: &tempfile::TempDir, name: &str) -> String {
    directory.path().join(name).to_str().unwrap().to_owned()
}

/// Whether the kernel uses O_DIRECT for the file that is open at this path (proc(5): fdinfo).
fn bypasses_the_page_cache(path: &str) -> bool {
    let open = fs::read_dir("/proc/self/fd").unwrap().map(|entry| entry.unwrap().path());
    let own = open.filter(|fd| fs::read_link(fd).is_ok_and(|to| to.to_str() == Some(path))).collect::<Vec<_>>();
    let [fd] = &own[..] else { panic!("{path} is open {} times", own.len()) };
    let facts = fs::read_to_string(format!("/proc/self/fdinfo/{}", fd.file_name().unwrap().to_str().unwrap())).unwrap();
    let flags = facts.lines().find_map(|line| line.strip_prefix("flags:")).unwrap();
    i32::from_str_radix(flags.trim(), 8).unwrap() & libc::O_DIRECT != 0
}

/// A pattern of bytes in aligned memory.
fn pattern(bytes: usize) -> AlignedBuffer {
    let mut buffer = AlignedBuffer::new(bytes).unwrap();
    buffer.iter_mut().enumerate().for_each(|(i, byte)| *byte = (i * 31 % 251) as u8);
    buffer
}

fn any_engine() -> impl Strategy<Value = Option<usize>> {
    prop_oneof![Just(None), Just(Some(1)), Just(Some(3))]
}

/// Lengths of whole blocks, and other lengths.
fn any_lengths() -> impl Strategy<Value = Vec<usize>> {
    let any = prop_oneof![1usize..3 * ALIGNMENT, (1usize..4).prop_map(|blocks| blocks * ALIGNMENT)];
    prop::collection::vec(any, 1..8)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn reads_return_the_bytes_written(
        lengths in any_lengths(), shift in prop_oneof![Just(0usize), 1usize..ALIGNMENT],
        direct in prop_oneof![Just(Direct::Off), Just(Direct::IfPossible)], uring in any_engine(),
        reads in prop::collection::vec((0usize..40_000, 1usize..12_000, 0usize..2), 1..8),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let (system, file) = (local(direct, uring), path(&directory, "file"));
        let (all, total) = (pattern(shift + lengths.iter().sum::<usize>()), lengths.iter().sum::<usize>());
        let options = CreateOptions { buffer_bytes: 4 * ALIGNMENT, ..CreateOptions::default() };
        let mut writer = wait_for(system.create(&file, &options)).unwrap();
        let mut at = shift;
        for length in lengths {
            wait_for(writer.write_copy(&all[at..at + length])).unwrap();
            at += length;
        }
        wait_for(writer.sync()).unwrap();
        wait_for(writer.close()).unwrap();
        let expected = &all[shift..shift + total];
        prop_assert!(fs::read(&file).unwrap() == expected);
        let mut reader = wait_for(system.open(&file, OpenOptions::default())).unwrap();
        for (offset, bytes, aligned) in reads {
            let (offset, bytes) = if aligned == 1 { (offset / ALIGNMENT * ALIGNMENT, bytes.next_multiple_of(ALIGNMENT)) } else { (offset, bytes) };
            let mut buffer = AlignedBuffer::new(bytes).unwrap();
            let read = wait_for(reader.read_at(offset as u64, &mut buffer[..bytes])).unwrap();
            let slice = &expected[offset.min(total)..(offset + bytes).min(total)];
            prop_assert!(&buffer[..read] == slice, "{offset} {bytes}: {read}");
            prop_assert!(wait_for(reader.fetch_bytes(offset as u64, bytes)).unwrap() == slice);
        }
    }
}

#[test]
fn unaligned_access_ends_direct_io() {
    let directory = tempfile::tempdir().unwrap();
    let (system, file) = (local(Direct::IfPossible, None), path(&directory, "file"));
    let bytes = pattern(3 * ALIGNMENT);
    let mut writer = wait_for(system.create(&file, &CreateOptions::default())).unwrap();
    wait_for(writer.write_copy(&bytes[..2 * ALIGNMENT])).unwrap();
    assert!(bypasses_the_page_cache(&file));
    wait_for(writer.write_copy(&bytes[..100])).unwrap();
    assert!(!bypasses_the_page_cache(&file));
    wait_for(writer.write_copy(&bytes[..ALIGNMENT])).unwrap();
    wait_for(writer.close()).unwrap();
    assert_eq!(fs::read(&file).unwrap(), [&bytes[..2 * ALIGNMENT], &bytes[..100], &bytes[..ALIGNMENT]].concat());
    let mut buffer = AlignedBuffer::new(2 * ALIGNMENT).unwrap();
    let mut reader = wait_for(system.open(&file, OpenOptions::default())).unwrap();
    assert_eq!(wait_for(reader.read_at(0, &mut buffer)).unwrap(), 2 * ALIGNMENT);
    assert_eq!(wait_for(reader.read_at(2 * ALIGNMENT as u64, &mut buffer)).unwrap(), 100 + ALIGNMENT);
    assert!(bypasses_the_page_cache(&file));
    assert_eq!(wait_for(reader.read_at(1, &mut buffer[..10])).unwrap(), 10);
    assert!(!bypasses_the_page_cache(&file));
    assert_eq!(buffer[..10], bytes[1..11]);
}

#[test]
fn required_direct_io_never_uses_the_cache() {
    let directory = tempfile::tempdir().unwrap();
    for uring in [None, Some(2)] {
        let (system, file) = (local(Direct::Required, uring), path(&directory, "file"));
        let bytes = pattern(2 * ALIGNMENT);
        let mut writer = wait_for(system.create(&file, &CreateOptions::default())).unwrap();
        // The buffer is at an unaligned address.
        wait_for(writer.write_copy(&bytes[1..=ALIGNMENT])).unwrap();
        wait_for(writer.write_copy(&bytes[..100])).unwrap();
        assert!(bypasses_the_page_cache(&file));
        let error = wait_for(writer.write_copy(&bytes[..ALIGNMENT])).unwrap_err();
        assert!(error.kind == FsErrorKind::Invalid && error.message.contains("only the last buffer"), "{error}");
        wait_for(writer.close()).unwrap();
        assert_eq!(fs::read(&file).unwrap(), [&bytes[1..=ALIGNMENT], &bytes[..100]].concat());
        let mut reader = wait_for(system.open(&file, OpenOptions::default())).unwrap();
        let mut buffer = AlignedBuffer::new(ALIGNMENT).unwrap();
        assert_eq!(wait_for(reader.read_at(1, &mut buffer[..10])).unwrap(), 10);
        assert_eq!(buffer[..10], bytes[2..12]);
        assert!(bypasses_the_page_cache(&file));
    }
}

#[test]
fn only_one_concurrent_rename_succeeds() {
    let directory = tempfile::tempdir().unwrap();
    let (system, to) = (local(Direct::Off, None), path(&directory, "to"));
    for round in 0..200 {
        let own = [path(&directory, "a"), path(&directory, "b")];
        for own in &own {
            // rename(2) replaces a file or an empty directory.
            if round % 2 == 0 { fs::create_dir(own).unwrap() } else { fs::write(own, "x").unwrap() }
        }
        let together = Barrier::new(2);
        let rename = |own: &String| {
            together.wait();
            wait_for(system.rename(own, &to))
        };
        let ended = std::thread::scope(|scope| {
            let rename = &rename;
            let both = own.each_ref().map(|own| scope.spawn(move || rename(own)));
            both.map(|thread| thread.join().unwrap())
        });
        let lost = ended.iter().position(Result::is_err).unwrap();
        assert_eq!(ended[lost].as_ref().unwrap_err().kind, FsErrorKind::AlreadyExists);
        assert!(ended[1 - lost].is_ok() && fs::exists(&own[lost]).unwrap());
        for left in [&to, &own[lost]] {
            assert!(wait_for(system.delete(left)).unwrap());
        }
    }
}

#[test]
fn nothing_is_renamed_over_what_is_there() {
    let directory = tempfile::tempdir().unwrap();
    let (system, from) = (local(Direct::Off, None), path(&directory, "from"));
    fs::write(&from, "x").unwrap();
    symlink("/nowhere", path(&directory, "link")).unwrap();
    fs::write(path(&directory, "file"), "y").unwrap();
    for there in ["link", "file"] {
        let error = wait_for(system.rename(&from, &path(&directory, there))).unwrap_err();
        assert_eq!(error.kind, FsErrorKind::AlreadyExists, "{error}");
    }
    assert_eq!(fs::read_to_string(path(&directory, "file")).unwrap(), "y");
}

#[test]
fn file_does_not_recreate_a_removed_directory() {
    let directory = tempfile::tempdir().unwrap();
    let (system, file) = (local(Direct::Off, None), path(&directory, "gone/file"));
    let options = CreateOptions { overwrite: false, parents: false, ..CreateOptions::default() };
    let error = wait_for(system.create(&file, &options)).unwrap_err();
    assert_eq!(error.kind, FsErrorKind::NotFound, "{error}");
    assert!(!fs::exists(path(&directory, "gone")).unwrap());
    wait_for(system.create(&file, &CreateOptions { parents: true, ..options.clone() })).unwrap();
    assert_eq!(wait_for(system.create(&file, &options)).unwrap_err().kind, FsErrorKind::AlreadyExists);
}

#[test]
fn listing_follows_links_and_states_types() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(path(&directory, "c"), "four").unwrap();
    fs::create_dir(path(&directory, "d")).unwrap();
    for (name, to) in [("a", "c"), ("b", "d"), ("e", "/nowhere"), ("f", "f")] {
        symlink(to, path(&directory, name)).unwrap();
    }
    let _socket = UnixListener::bind(path(&directory, "g")).unwrap();
    let listed = wait_for(local(Direct::Off, None).list_folder(directory.path().to_str().unwrap())).unwrap();
    let (file, dir, other) = (FileKind::File, FileKind::Directory, FileKind::Other);
    let kinds: Vec<_> = listed.iter().map(|entry| (entry.name(), entry.kind)).collect();
    assert_eq!(kinds, [("a", file), ("b", dir), ("c", file), ("d", dir), ("e", other), ("f", other), ("g", other)]);
    assert_eq!((listed[0].bytes, listed[2].bytes), (4, 4));
}

#[test]
fn what_vanishes_while_it_is_listed_is_skipped() {
    let directory = tempfile::tempdir().unwrap();
    let done = AtomicBool::new(false);
    fs::write(path(&directory, "stays"), "").unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Relaxed) {
                for name in ["a", "b", "c", "d"] {
                    fs::write(path(&directory, name), "").unwrap();
                    fs::remove_file(path(&directory, name)).unwrap();
                }
            }
        });
        let system = local(Direct::Off, None);
        let listed: Vec<_> =
            (0..3_000).map(|_| wait_for(system.list_folder(directory.path().to_str().unwrap()))).collect();
        done.store(true, Relaxed);
        for entries in listed {
            assert!(entries.unwrap().iter().any(|entry| entry.name() == "stays"));
        }
    });
}
