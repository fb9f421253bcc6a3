mod hse_fake;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use loadstone_load::{Row, Status, Wanted};
use loadstone_stores::hse::Hse;
use loadstone_stores::{Durability, Session, Store};
fn now<T>(f: impl Future<Output = T>) -> T { match pin!(f).poll(&mut Context::from_waker(Waker::noop())) { Poll::Ready(v) => v, Poll::Pending => panic!() } }
#[test]
fn full() {
    for durability in [Durability::None] {
        let lib = hse_fake::Library::new();
        let home = std::path::Path::new("/tmp/hse-mine/small").join(durability.name());
        let mut o = lib.options(&home);
        o.durability = durability;
        let store = match Hse::open(&o) { Ok(s) => s, Err(e) => { println!("open: {e:?}"); continue } };
        let mut s = store.session().unwrap();
        let mut row = Row::default();
        row.push(b"field0", &[b'x'; 10_000]);
        let mut failed = 0;
        for i in 0..200_000u32 {
            let st = now(s.insert(format!("user{i:010}").as_bytes(), &row));
            if st != Status::Ok { failed += 1; println!("{} put {i}: {st:?} {:?}", durability.name(), s.last_error()); if failed == 3 { let st = now(s.read(b"user0000000000", Wanted::All, &mut row)); println!("read {st:?} {:?}", s.last_error()); break } }
        }
        drop(s);
        println!("settle {:?}", store.settle());
        println!("close {:?}", store.close());
        println!("reopen {:?}", Hse::open(&o).map(|s| s.close()));
    }
}
