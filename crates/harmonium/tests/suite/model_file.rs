//! Model files: bit-exact round trips, and a typed error for every damaged or malicious file.

use crate::common::{Dice, fill_weights, layer};
use harmonium::io::{Precision, Provenance, inspect};
use harmonium::{Bits, Coupling, Error, Kind, Machine, Member, Role};
use ndarray::Array2;
use proptest::prelude::*;
use serde_json::{Value, json};

/// Every kind, every role, couplings between and inside layers, masks on both sorts, awkward names.
fn zoo() -> Machine<f64> {
    let mut dice = Dice(7);
    let roles = [Role::Visible, Role::Hidden, Role::Condition];
    let names = ["v", "v-h", "h", "h-v", "größe", "a/b", "", "theta", "n", "nu_0"];
    let members = Kind::ALL.into_iter().enumerate().map(|(l, kind)| Member {
        name: names[l].into(),
        role: roles[l % 3],
        layer: layer(kind, 2 + l % 3, &mut dice),
    });
    let members: Vec<_> = members.collect();
    let width = |l: usize| members[l].layer.width();
    let pairs = [(0, 3), (1, 2), (0, 2), (2, 2), (1, 1), (0, 7), (3, 4), (2, 5), (5, 6)];
    let couplings = pairs.map(|(a, b)| {
        let c = Coupling::new(a, b, Array2::zeros((width(a), width(b)))).unwrap();
        match (a, b) {
            (0, 2) | (1, 1) => {
                c.with_mask(Bits::from_fn(width(a), width(b), |i, j| (i + j) % 3 != 1)).unwrap()
            }
            _ => c,
        }
    });
    let mut machine = Machine::new(members.clone(), couplings.into()).unwrap();
    fill_weights(&mut machine, &mut dice);
    machine
}

fn provenance() -> Provenance {
    let details = [("data".into(), "“digits”, 8×8".into()), ("note".into(), "a\nb".into())];
    Provenance { seed: Some(u64::MAX), details: details.into(), ..Provenance::default() }
}

#[test]
fn either_precision_comes_back_bit_for_bit() {
    let machine = zoo();
    let bytes = machine.to_bytes(&provenance()).unwrap();
    let back = Machine::<f64>::from_bytes(&bytes).unwrap();
    assert_eq!(back, machine);
    assert_eq!(back.to_bytes(&provenance()).unwrap(), bytes);
    let single = machine.cast::<f32>();
    let bytes = single.to_bytes(&provenance()).unwrap();
    assert_eq!(Machine::<f32>::from_bytes(&bytes).unwrap(), single);
}

#[test]
fn either_precision_loads_the_other() {
    let machine = zoo();
    let double = machine.to_bytes(&provenance()).unwrap();
    assert_eq!(Machine::<f32>::from_bytes(&double).unwrap(), machine.cast());
    let single = machine.cast::<f32>().to_bytes(&provenance()).unwrap();
    assert_eq!(Machine::<f64>::from_bytes(&single).unwrap(), machine.cast::<f32>().cast());
    // Numbers beyond single precision are refused, not made infinite.
    let mut large = machine;
    large.layer_mut(0).params_mut()[[0, 0]] = 1e300;
    let large = large.to_bytes(&provenance()).unwrap();
    assert!(Machine::<f64>::from_bytes(&large).is_ok());
    assert!(matches!(Machine::<f32>::from_bytes(&large), Err(Error::Format { .. })));
}

#[test]
fn save_load_inspect() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("machine.safetensors");
    let machine = zoo();
    machine.save(&path, &Provenance::default()).unwrap();
    machine.save(&path, &provenance()).unwrap();
    assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 1, "no temporary file stays");
    assert_eq!(Machine::<f64>::load(&path).unwrap(), machine);

    let description = inspect(&path).unwrap();
    assert_eq!(description, machine.describe(&provenance()));
    assert_eq!(description.precision, Precision::F64);
    assert_eq!(description.layers[2].kind, Kind::Potts { q: 3 });
    assert_eq!(description.provenance.seed, Some(u64::MAX));
    assert!(description.provenance.library.starts_with("harmonium "));
    assert_eq!(description.provenance.details, provenance().details);
    let couplings: Vec<_> = description.couplings.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(couplings[..4], ["v-h-v", "v-h-h", "v-h", "h-h"]);

    let missing = directory.path().join("missing");
    assert!(matches!(Machine::<f32>::load(&missing), Err(Error::Io { path, .. }) if path == missing));
    assert!(matches!(inspect(&missing), Err(Error::Io { .. })));
    std::fs::write(&path, b"hello").unwrap();
    assert!(matches!(inspect(&path), Err(Error::Format { path: p, .. }) if p == path));
    assert!(matches!(Machine::<f32>::load(directory.path()), Err(Error::Io { .. })));
}

#[test]
fn couplings_that_sound_alike_keep_apart() {
    let mut dice = Dice(3);
    let member = |name: &str, dice: &mut Dice| Member {
        name: name.into(),
        role: Role::Visible,
        layer: layer(Kind::Spin, 2, dice),
    };
    let members = ["a", "b-c", "a-b", "c"].map(|name| member(name, &mut dice));
    let zeros = || Array2::zeros((2, 2));
    let couplings = [(0, 1), (2, 3)].map(|(a, b)| Coupling::new(a, b, zeros()).unwrap());
    let mut machine = Machine::new(members.into(), couplings.into()).unwrap();
    fill_weights(&mut machine, &mut dice);
    let bytes = machine.to_bytes(&provenance()).unwrap();
    assert_eq!(Machine::<f64>::from_bytes(&bytes).unwrap(), machine);
}

#[cfg(unix)]
#[test]
fn links_and_permissions_survive_a_replacement() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let directory = tempfile::tempdir().unwrap();
    let (path, link) = (directory.path().join("machine"), directory.path().join("link"));
    zoo().save(&path, &provenance()).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    symlink(&path, &link).unwrap();
    zoo().save(&link, &Provenance::default()).unwrap();
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(inspect(&path).unwrap().provenance.seed, None);
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
}

fn small() -> Machine<f64> {
    let mut dice = Dice(5);
    let (v, h) = (layer(Kind::Potts { q: 3 }, 2, &mut dice), layer(Kind::Gaussian, 2, &mut dice));
    let mut machine = Machine::semi_restricted(v, h);
    fill_weights(&mut machine, &mut dice);
    machine
}

#[test]
fn every_truncation_and_every_flipped_bit_is_found() {
    let bytes = small().to_bytes(&provenance()).unwrap();
    let refused = |b: &[u8]| matches!(Machine::<f64>::from_bytes(b), Err(Error::Format { .. }));
    for i in 0..bytes.len() {
        assert!(refused(&bytes[..i]), "cut at {i}");
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[i] ^= 1 << bit;
            assert!(refused(&damaged), "bit {bit} of byte {i}");
        }
    }
    assert!(refused(&[&bytes[..], &[0]].concat()));
}

/// A file as others would write it, without checksum, after a change of its header and data.
fn crafted(change: impl Fn(&mut Value, &mut Vec<u8>)) -> Vec<u8> {
    let bytes = small().to_bytes(&provenance()).unwrap();
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let mut header: Value = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
    header.as_object_mut().unwrap().remove("__checksum__").unwrap();
    let mut data = bytes[8 + length..bytes.len() - 8].to_vec();
    change(&mut header, &mut data);
    assemble(&header.to_string(), &data)
}

fn assemble(header: &str, data: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), data].concat()
}

/// Changes one of the JSON texts in the metadata.
fn text(header: &mut Value, key: &str, change: impl Fn(&mut Value)) {
    let text = &mut header["__metadata__"][key];
    let mut value: Value = serde_json::from_str(text.as_str().unwrap()).unwrap();
    change(&mut value);
    *text = value.to_string().into();
}

#[test]
fn a_checksum_is_not_required_of_others() {
    assert_eq!(Machine::<f64>::from_bytes(&crafted(|_, _| ())).unwrap(), small());
    let without = |h: &mut Value, _: &mut Vec<u8>| {
        h["__metadata__"].as_object_mut().unwrap().remove("provenance").unwrap();
        h["__metadata__"]["other tool"] = "its own business".into();
    };
    assert_eq!(Machine::<f64>::from_bytes(&crafted(without)).unwrap(), small());
}

fn refused(why: &str, change: impl Fn(&mut Value, &mut Vec<u8>)) {
    match Machine::<f64>::from_bytes(&crafted(change)) {
        Err(Error::Format { why: found, .. }) => {
            assert!(found.contains(why), "`{found}` does not say `{why}`");
        }
        other => panic!("{why}: {other:?}"),
    }
}

#[test]
fn crafted_descriptions_are_refused() {
    let meta = |key: &'static str, value: &'static str| {
        move |h: &mut Value, _: &mut Vec<u8>| h["__metadata__"][key] = value.into()
    };
    refused("version 2", meta("version", "2"));
    refused("version", meta("version", "-1"));
    refused("version", meta("version", "1.5"));
    refused("`pt` file", meta("format", "pt"));
    refused("precision", meta("precision", "\"F16\""));
    refused("precision", meta("precision", "NaN"));
    refused("F64 [6, 2], expected F32", meta("precision", "\"F32\""));
    refused("layers", meta("layers", "[NaN]"));
    refused("layers", meta("layers", ""));
    refused("belongs to no layer", meta("couplings", "[]"));
    refused("provenance", meta("provenance", "{\"seed\":1e400}"));
    refused("provenance", meta("provenance", "{\"details\":{\"a\":1}}"));
    for key in ["format", "version", "precision", "layers", "couplings"] {
        refused(key, |h, _| drop(h["__metadata__"].as_object_mut().unwrap().remove(key)));
    }

    let layers =
        |change: fn(&mut Value)| move |h: &mut Value, _: &mut Vec<u8>| text(h, "layers", change);
    refused("unknown variant", layers(|l| l[0]["kind"] = json!("quantum")));
    refused("unknown variant", layers(|l| l[0]["role"] = json!("boss")));
    refused("no state", layers(|l| l[0]["kind"] = json!({"potts": {"q": 0}})));
    refused("no state", layers(|l| l[0]["kind"] = json!({"binomial": {"n": 0}})));
    refused("too large", layers(|l| l[0]["units"] = json!(u64::MAX)));
    refused("expected F64 [3000000000000, 2]", layers(|l| l[0]["units"] = json!(1_000_000_000_000u64)));
    refused("expected F64 [8, 2]", layers(|l| l[0]["kind"] = json!({"potts": {"q": 4}})));
    refused("expected F64 [2, 2]", layers(|l| l[0]["kind"] = json!("binary")));
    refused("missing", layers(|l| l[1]["kind"] = json!("drelu")));
    refused("missing", layers(|l| l[1]["name"] = json!("g")));
    refused("twice", layers(|l| l[1]["name"] = json!("v")));
    refused("unknown field", layers(|l| l[0]["scale"] = json!(2.0)));
    refused("invalid value", layers(|l| l[0]["units"] = json!(-2)));
    refused(
        "5000 layers",
        layers(|l| {
            let one = l[0].clone();
            *l = (0..5000).map(|_| one.clone()).collect();
        }),
    );
    refused("at least one", |h, data| {
        text(h, "layers", |l| *l = json!([]));
        text(h, "couplings", |c| *c = json!([]));
        h.as_object_mut().unwrap().retain(|name, _| name == "__metadata__");
        data.clear();
    });

    let couplings =
        |change: fn(&mut Value)| move |h: &mut Value, _: &mut Vec<u8>| text(h, "couplings", change);
    refused("not there", couplings(|c| c[0]["ends"] = json!([0, 2])));
    refused("first layer ≤ second", |h, _| {
        text(h, "couplings", |c| c[0]["ends"] = json!([1, 0]));
        h["couplings/v-h/w"]["shape"] = json!([2, 6]);
    });
    refused("twice", couplings(|c| c[1] = c[0].clone()));
    refused("missing", couplings(|c| c[0]["name"] = json!("x")));
    refused("mask", couplings(|c| c[0]["mask"] = json!(true)));
    refused("one coupling for each pair", |h, data| {
        text(h, "couplings", |c| c[1] = json!({"name": "again", "ends": [0, 1], "mask": false}));
        let mut w = h.as_object_mut().unwrap().remove("couplings/v-v/w").unwrap();
        let (start, end) =
            (w["data_offsets"][0].as_u64().unwrap(), w["data_offsets"][1].as_u64().unwrap());
        // v-v has 36 weights, v-h has 12: keep the first 12 and move what follows.
        let cut = (end - start - 96) as usize;
        data.drain(start as usize + 96..end as usize);
        w["shape"] = json!([6, 2]);
        w["data_offsets"] = json!([start, start + 96]);
        for info in h.as_object_mut().unwrap().values_mut().filter(|i| i.get("data_offsets").is_some()) {
            let offsets = info["data_offsets"].clone();
            if offsets[0].as_u64() >= Some(end) {
                let moved = [0, 1].map(|i| offsets[i].as_u64().unwrap() - cut as u64);
                info["data_offsets"] = json!(moved);
            }
        }
        h["couplings/again/w"] = w;
    });
}

#[test]
fn crafted_arrays_are_refused() {
    let set = |name: &'static str, at: usize, x: f64| {
        move |h: &mut Value, data: &mut Vec<u8>| {
            let start = h[name]["data_offsets"][0].as_u64().unwrap() as usize + 8 * at;
            data[start..start + 8].copy_from_slice(&x.to_le_bytes());
        }
    };
    for x in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        refused("finite", set("layers/v/theta", 1, x));
        refused("finite", set("couplings/v-h/w", 3, x));
    }
    refused("positive", set("layers/h/gamma", 1, 0.0));
    refused("symmetric", set("couplings/v-v/w", 3, 9.0));
    refused("on itself", set("couplings/v-v/w", 0, 9.0));
    refused("U64", |h, _| h["couplings/v-h/w"]["dtype"] = json!("U64"));
    refused("BF16", |h, _| h["couplings/v-h/w"]["dtype"] = json!("BF16"));
    refused("expected F64 [6, 2]", |h, _| h["couplings/v-h/w"]["shape"] = json!([2, 6]));
    refused("expected F64 [6, 2]", |h, _| h["couplings/v-h/w"]["shape"] = json!([12]));
    refused("does not fit", |h, _| h["couplings/v-h/w"]["shape"] = json!([1u64 << 40, 1u64 << 40]));
    refused("does not fit", |h, _| h["couplings/v-h/w"]["data_offsets"] = json!([0, 8]));
    refused("expected", |h, _| {
        h["layers/h/theta"]["data_offsets"] = h["layers/h/gamma"]["data_offsets"].clone()
    });
    refused("missing", |h, data| {
        let name = "layers/v/theta";
        let end = h[name]["data_offsets"][1].as_u64().unwrap() as usize;
        assert_eq!(end, data.len(), "the last array");
        data.truncate(end - 48);
        h.as_object_mut().unwrap().remove(name).unwrap();
    });
    refused("belongs to no layer", |h, _| {
        h["stowaway"] = json!({"dtype": "F64", "shape": [0], "data_offsets": [0, 0]});
    });
}

#[test]
fn masks_are_checked() {
    let machine = zoo();
    let bytes = machine.to_bytes(&provenance()).unwrap();
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let mut header: Value = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
    header.as_object_mut().unwrap().remove("__checksum__").unwrap();
    let data = &bytes[8 + length..bytes.len() - 8];
    let with = |name: &str, at: usize, byte: u8| {
        let mut data = data.to_vec();
        data[header[name]["data_offsets"][0].as_u64().unwrap() as usize + at] = byte;
        Machine::<f64>::from_bytes(&assemble(&header.to_string(), &data))
    };
    let why = |found| match found {
        Err(Error::Format { why, .. }) => why,
        other => panic!("{other:?}"),
    };
    assert_eq!(with("couplings/v-h/mask", 0, 1).unwrap(), machine);
    assert!(why(with("couplings/v-h/mask", 0, 2)).contains("2 in its mask"));
    assert!(why(with("couplings/v-h/mask", 0, 0)).contains("no such weight"));
    assert!(why(with("couplings/v-h-v-h/mask", 1, 1)).contains("symmetric"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Without a checksum, damage reaches all later checks: the result is a machine or an error, never a panic.
    #[test]
    fn damage_without_a_checksum_never_panics(
        flips in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in proptest::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = crafted(|_, _| ());
        for (at, byte) in flips {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        if let Ok(machine) = Machine::<f64>::from_bytes(&bytes) {
            let again = machine.to_bytes(&Provenance::default()).unwrap();
            prop_assert_eq!(Machine::<f64>::from_bytes(&again).unwrap(), machine);
        }
    }
}
