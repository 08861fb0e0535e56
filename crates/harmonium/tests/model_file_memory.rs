//! Reading a file takes a small multiple of its size in memory, whatever its header claims.
#![allow(missing_docs)]

use harmonium::io::Provenance;
use harmonium::{Archive, Kind, Layer, Machine};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    static NOW: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.get() + layout.size();
        NOW.set(now);
        PEAK.set(PEAK.get().max(now));
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, p: *mut u8, layout: Layout) {
        NOW.set(NOW.get().saturating_sub(layout.size()));
        // SAFETY: `p` came from `alloc` above with this layout.
        unsafe { System.dealloc(p, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn peak<A>(f: impl FnOnce() -> A) -> usize {
    NOW.set(0);
    PEAK.set(0);
    let out = f();
    let peak = PEAK.get();
    drop(out);
    peak
}

/// Room for messages and other small things.
const SMALL: usize = 64 << 10;

fn bounded(what: &str, bytes: &[u8]) {
    let machine = peak(|| Machine::<f64>::from_bytes(bytes));
    let archive = peak(|| Archive::from_bytes(bytes));
    let bound = 8 * bytes.len() + SMALL;
    assert!(machine.max(archive) <= bound, "{what}: {machine}, {archive} > {bound}");
}

fn file(header: &str, data: usize) -> Vec<u8> {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(header.as_bytes());
    bytes.resize(bytes.len() + data, 0);
    bytes
}

#[test]
fn reading_takes_a_small_multiple_of_the_input() {
    let (v, h) = (Layer::new(Kind::Binary, 300), Layer::new(Kind::Potts { q: 5 }, 40));
    let valid = Machine::<f32>::rbm(v, h).to_bytes(&Provenance::default()).unwrap();
    assert!(Machine::<f64>::from_bytes(&valid).is_ok());
    bounded("a valid file", &valid);

    for length in [1u64 << 20, 1 << 32, 1 << 60, u64::MAX] {
        bounded("an absurd header length", &length.to_le_bytes());
    }
    let huge = r#""shape":[1000000000000],"data_offsets":[0,8000000000000]"#;
    bounded("an absurd shape", &file(&format!(r#"{{"a":{{"dtype":"F64",{huge}}}}}"#), 64));
    let shape = vec!["0"; 100_000].join(",");
    let long = format!(r#"{{"a":{{"dtype":"U8","shape":[{shape}],"data_offsets":[0,0]}}}}"#);
    bounded("a long shape", &file(&long, 0));
    let entry =
        |i: usize| format!(r#""{i}":{{"dtype":"U8","shape":[],"data_offsets":[{i},{}]}}"#, i + 1);
    let entries: Vec<_> = (0..20_000).map(entry).collect();
    bounded("many arrays", &file(&format!("{{{}}}", entries.join(",")), 20_000));
    bounded("deep nesting", &file(&"[{\"a\":".repeat(50_000), 0));

    let layer = r#"{\"name\":\"\",\"role\":\"hidden\",\"kind\":\"spin\",\"units\":4000000000}"#;
    let layers = vec![layer; 10_000].join(",");
    let text = r#""format":"harmonium model","version":"1","precision":"\"F32\"","couplings":"[]""#;
    let header = format!(r#"{{"__metadata__":{{{text},"layers":"[{layers}]"}}}}"#);
    bounded("many huge layers", &file(&header, 0));
}
