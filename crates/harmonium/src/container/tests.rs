//! Tests of the container: interoperability and crafted headers.

use super::*;

fn small() -> Vec<u8> {
    let mut out = Writer::new([("who".into(), "“me”".into())].into());
    out.put("b/x", Dtype::F64, &[2, 1], [1.0f64, -2.0].map(f64::to_le_bytes).into_iter());
    out.put("a", Dtype::Bool, &[3], [[1u8], [0], [1]].into_iter());
    out.put("c", Dtype::F32, &[], [0.5f32].map(f32::to_le_bytes).into_iter());
    out.finish().unwrap()
}

#[test]
fn any_safetensors_reader_reads_it() {
    let bytes = small();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let x = file.tensor("b/x").unwrap();
    assert_eq!(x.shape(), [2, 1]);
    assert_eq!(x.data(), [1.0f64.to_le_bytes(), (-2.0f64).to_le_bytes()].concat());
    assert_eq!(file.tensor("a").unwrap().data(), [1, 0, 1]);
    let (n, header) = safetensors::SafeTensors::read_metadata(&bytes).unwrap();
    assert_eq!(n % 8, 0);
    assert_eq!(header.metadata().as_ref().unwrap()["who"], "“me”");
}

/// A file with this header and so many bytes of data.
fn crafted(json: &str, data: usize) -> Vec<u8> {
    let mut bytes = (json.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(json.as_bytes());
    bytes.resize(bytes.len() + data, 0);
    bytes
}

fn refused(json: &str, data: usize, why: &str) {
    match Reader::new(&crafted(json, data)) {
        Err(e) => assert!(e.contains(why), "{json}: `{e}` does not say `{why}`"),
        Ok(_) => panic!("{json} was accepted"),
    }
}

#[test]
fn crafted_headers_are_refused() {
    let u8s = |name: &str, shape: &str, a: usize, b: usize| {
        format!(r#""{name}":{{"dtype":"U8","shape":{shape},"data_offsets":[{a},{b}]}}"#)
    };
    let all = |entries: &[String]| format!("{{{}}}", entries.join(","));
    refused("", 0, "cannot be read");
    refused("[]", 0, "cannot be read");
    refused("{", 0, "cannot be read");
    refused(r#"{"a":1}"#, 0, "cannot be read");
    refused(r#"{"a":{"dtype":"F16","shape":[],"data_offsets":[0,2]}}"#, 2, "F16");
    refused(&u8s("a", "[2]", 0, 2).replace("U8", "u8"), 2, "cannot be read");
    refused(&all(&[u8s("a", "[-1]", 0, 1)]), 1, "cannot be read");
    refused(&all(&[u8s("a", "[1.5]", 0, 1)]), 1, "cannot be read");
    refused(&all(&[u8s("a", "[2]", 0, 3)]), 3, "does not fit");
    refused(&all(&[u8s("a", "[2]", 2, 0)]), 2, "does not fit");
    let wide = format!("[{0},{0}]", u64::MAX);
    refused(&all(&[u8s("a", &wide, 0, 1)]), 1, "does not fit");
    refused(&all(&[u8s("a", "[99999999999999]", 0, 99_999_999_999_999)]), 4, "bytes");
    refused(&all(&[u8s("a", "[2]", 0, 2), u8s("a", "[2]", 0, 2)]), 2, "twice");
    refused(&all(&[u8s("a", "[0]", 0, 0), u8s("a", "[0]", 0, 0)]), 0, "twice");
    refused(&all(&[u8s("a", "[2]", 0, 2), u8s("b", "[2]", 1, 3)]), 3, "expected");
    refused(&all(&[u8s("a", "[2]", 0, 2), u8s("b", "[2]", 3, 5)]), 5, "expected");
    refused(&all(&[u8s("a", "[2]", 0, 2)]), 3, "but it has 3");
    refused(&all(&[u8s("a", "[2]", 0, 2)]), 1, "but it has 1");
    refused(r#"{"__metadata__":{"a":"1","a":"2"}}"#, 0, "twice");
    refused(r#"{"__metadata__":{},"__metadata__":{}}"#, 0, "twice");
    refused(r#"{"__metadata__":{"a":1}}"#, 0, "cannot be read");
    refused(&"[".repeat(100_000), 0, "cannot be read");
    refused(&format!(r#"{{"a":{}"#, "[".repeat(100_000)), 0, "cannot be read");
    let sum = u8s("__checksum__", "[8]", 0, 8);
    refused(&all(std::slice::from_ref(&sum)), 8, "checksum is wrong");
    refused(&all(&[sum, u8s("z", "[1]", 8, 9)]), 9, "last array");
    refused(&all(&[u8s("__checksum__", "[2]", 0, 2)]), 2, "last array");
}

#[test]
fn an_absurd_header_length_is_refused_before_anything_is_allocated() {
    for length in [1, 1 << 20, 1 << 40, u64::MAX] {
        assert!(Reader::new(&length.to_le_bytes()).is_err());
    }
}

#[test]
fn versions_and_formats_are_told_apart() {
    let text =
        |f: &str, v: &str| BTreeMap::from([("format".into(), f.into()), ("version".into(), v.into())]);
    assert_eq!(check_version(&text("x", "2"), "x", 2), Ok(2));
    assert_eq!(check_version(&text("x", "1"), "x", 2), Ok(1));
    for (f, v) in [("x", "3"), ("x", "0"), ("x", "NaN"), ("x", ""), ("y", "1")] {
        assert!(check_version(&text(f, v), "x", 2).is_err(), "{f} {v}");
    }
    assert!(check_version(&BTreeMap::new(), "x", 2).is_err());
}
