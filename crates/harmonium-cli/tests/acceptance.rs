//! Completion, classification and anomaly detection on held-out digits, by the command line.

#![allow(clippy::print_stdout)] // The figures are worth seeing.

mod common;

use common::Place;

type Images = Vec<Vec<u8>>;

/// Pixels of a csv table; its other columns are left out.
fn pixels(csv: &str) -> Images {
    let mut lines = csv.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let kept: Vec<usize> = (0..names.len()).filter(|&i| names[i] != "label").collect();
    let row = |line: &str| {
        let words: Vec<&str> = line.split(',').collect();
        kept.iter().map(|&i| words[i].bytes().next().map_or(b'?', |b| b - b'0')).collect()
    };
    lines.map(row).collect()
}

fn csv(images: &Images, shown: impl Fn(usize, usize) -> bool) -> String {
    let names: Vec<String> = (0..64).map(|i| format!("v{i}")).collect();
    let mut out = names.join(",") + "\n";
    for (r, image) in images.iter().enumerate() {
        let words = image.iter().enumerate().map(|(i, x)| match shown(r, i) {
            true => x.to_string(),
            false => String::new(),
        });
        out += &(words.collect::<Vec<_>>().join(",") + "\n");
    }
    out
}

/// A number that looks random but is always the same.
fn dice(r: usize, i: usize) -> u64 {
    let mut z = (r as u64) << 32 | i as u64 | 1 << 63;
    for _ in 0..3 {
        z = (z ^ (z >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z ^= z >> 32;
    }
    z
}

/// Fills the pixels that are not shown and compares with the simple ways.
fn fill(place: &Place, name: &str, train: &Images, test: &Images, shown: impl Fn(usize, usize) -> bool) {
    place.write("gaps.csv", csv(test, &shown));
    place.ok("complete run gaps.csv -o full.csv --probabilities p.csv --force --quiet");
    let full = pixels(&place.read("full.csv"));
    let n = train.len() as f64;
    let marginal = |i: usize| (train.iter().map(|x| f64::from(x[i])).sum::<f64>() + 1.0) / (n + 2.0);
    let marginals: Vec<f64> = (0..64).map(marginal).collect();
    let nearest = |r: usize| {
        let gap = |x: &Vec<u8>| (0..64).filter(|&i| shown(r, i) && x[i] != test[r][i]).count();
        train.iter().min_by_key(|x| gap(x)).unwrap()
    };
    let (mut ours, mut theirs, mut wrong, mut copied, mut entries) = (0.0, 0.0, 0, 0, 0);
    let p = place.read("p.csv");
    for line in p.lines().skip(1) {
        let words: Vec<&str> = line.split(',').collect();
        let (r, i): (usize, usize) = (words[0].parse().unwrap(), words[1][1..].parse().unwrap());
        let truth = test[r - 1][i];
        let right = words[2] == truth.to_string();
        let p: f64 = words[3].parse().unwrap();
        ours += (if right { p } else { 1.0 - p }).max(1e-6).ln();
        theirs += (if truth == 1 { marginals[i] } else { 1.0 - marginals[i] }).ln();
        wrong += usize::from(!right);
        entries += 1;
    }
    for (r, image) in test.iter().enumerate() {
        let near = nearest(r);
        copied += (0..64).filter(|&i| !shown(r, i) && near[i] != image[i]).count();
        assert!((0..64).all(|i| !shown(r, i) || full[r][i] == image[i]), "what is known is kept");
    }
    assert_eq!(entries, 32 * test.len());
    let each = 1.0 / test.len() as f64;
    println!(
        "{name}: log-score per image {:.2} (marginals {:.2}), wrong pixels {:.2} (nearest neighbour {:.2})",
        ours * each,
        theirs * each,
        wrong as f64 * each,
        copied as f64 * each
    );
    assert!(ours > theirs && wrong < copied, "{name}");
}

#[test]
fn digits_are_completed_and_spotted() {
    let place = Place::new();
    place.ok("train digits --updates 4000 -o run --quiet");
    let train = pixels(&place.ok("data export digits:train"));
    let test = pixels(&place.ok("data export digits:test"));
    assert_eq!((train.len(), test.len()), (1438, 359));
    fill(&place, "lower half hidden", &train, &test, |_, i| i < 32);
    fill(&place, "right half hidden", &train, &test, |_, i| i % 8 < 4);
    let half = |r: usize| {
        let mut order: Vec<usize> = (0..64).collect();
        order.sort_by_key(|&i| dice(r, i));
        order[..32].to_vec()
    };
    let halves: Vec<Vec<usize>> = (0..test.len()).map(half).collect();
    fill(&place, "a random half hidden", &train, &test, |r, i| halves[r].contains(&i));

    // Digits with a tenth of their pixels flipped.
    let flip =
        |r: usize, i: usize, x: u8| if dice(r + 10_000, i).is_multiple_of(10) { 1 - x } else { x };
    let flipped = test.iter().enumerate().map(|(r, x)| (0..64).map(|i| flip(r, i, x[i])).collect());
    place.write("flipped.csv", csv(&flipped.collect(), |_, _| true));
    let ran = place.run("score run digits:test --against flipped.csv -o scores.csv");
    let auc: f64 = ran.err.split("AUC ").nth(1).unwrap().split(':').next().unwrap().parse().unwrap();
    println!("digits against digits with a tenth of the pixels flipped: AUC {auc}");
    assert!(auc > 0.95, "{auc}");
}

#[test]
fn digits_are_classified_with_default_settings() {
    let place = Place::new();
    place.ok("train digits --machine class -o run --quiet");
    let accuracy = place.json("classify run digits:test")["accuracy"].as_f64().unwrap();
    println!("accuracy on the held-out fifth: {accuracy:.4}");
    assert!(accuracy >= 0.95, "{accuracy}");
}
