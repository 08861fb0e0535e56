//! Unprepared tables, without any options: the model must be better than independent columns, or the verdict must say that it
//! is not.

mod common;

use common::Place;
use serde_json::Value;
use std::fmt::Write;

/// Uniform numbers in (0, 1) and normal ones, always the same.
struct Dice(u64);

impl Dice {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

fn table(header: &str, rows: usize, mut row: impl FnMut(usize) -> String) -> String {
    let mut text = format!("{header}\n");
    (0..rows).for_each(|r| writeln!(text, "{}", row(r)).unwrap());
    text
}

/// Trains on `train.csv`, evaluates on `test.csv` of the same text cut at `rows`, and gives the evaluation.
fn learnt(text: &str, rows: usize, options: &str) -> Value {
    let place = Place::new();
    let mut lines = text.lines();
    let header = lines.next().unwrap();
    let lines: Vec<&str> = lines.collect();
    place.write("train.csv", format!("{header}\n{}\n", lines[..rows].join("\n")));
    place.write("test.csv", format!("{header}\n{}\n", lines[rows..].join("\n")));
    let words = format!("train train.csv --test test.csv -o run --threads 1 {options}");
    place.json(&words)["evaluation"].clone()
}

fn mean(e: &Value) -> f64 {
    e["log_likelihood"]["mean"].as_f64().unwrap_or(f64::NAN)
}

fn gain(e: &Value) -> f64 {
    e["gain"]["value"].as_f64().unwrap_or(f64::NAN)
}

/// Rows of a hospital: identifiers, years, measurements, words and gaps.
fn patients(rows: usize) -> String {
    let mut dice = Dice(3);
    table("id,age,sex,smoker,visits,city,blood pressure,year", rows, |r| {
        let age = 50.0 + 15.0 * dice.normal();
        let smoker = dice.uniform() < 0.3;
        let pressure = 90.0 + 0.6 * age + 8.0 * f64::from(u8::from(smoker)) + 6.0 * dice.normal();
        let visits = (-2.0 * dice.uniform().ln()) as u32;
        let city = ["Kyiv", "Lyon", "Oslo"][(3.0 * dice.uniform()) as usize];
        let year = 2010 + (12.0 * dice.uniform()) as u32;
        let sex = if dice.uniform() < 0.5 { "f" } else { "m" };
        let gap =
            |x: String, p: f64, dice: &mut Dice| if dice.uniform() < p { String::new() } else { x };
        let age = gap(format!("{age:.0}"), 0.05, &mut dice);
        let pressure = gap(format!("{pressure:.0}"), 0.05, &mut dice);
        let smoker = if smoker { "yes" } else { "no" };
        format!("{},{age},{sex},{smoker},{visits},{city},{pressure},{year}", 1000 + r)
    })
}

#[test]
fn a_table_of_patients_learns() {
    let e = learnt(&patients(500), 400, "");
    // Age and pressure share about half a nat; a model of the columns alone would gain nothing.
    assert!(gain(&e) > 0.1, "{e}");
    assert!(["exact", "converged"].contains(&e["verdict"].as_str().unwrap()), "{e}");
}

#[test]
fn samples_and_completions_are_in_the_units_of_the_file() {
    let place = Place::new();
    place.write("patients.csv", patients(300));
    place.ok("train patients.csv -o run --split 0 --updates 200 --quiet");
    let samples = place.ok("sample run -n 50 --quiet");
    let years: Vec<f64> = samples
        .lines()
        .skip(1)
        .map(|line| line.rsplit(',').next().unwrap().parse().expect("a whole number"))
        .collect();
    assert!(years.iter().all(|y| y.fract() == 0.0 && (1990.0..2045.0).contains(y)), "{years:?}");
    let filled = place.ok("complete run patients.csv --quiet");
    let pressures = filled.lines().skip(1).map(|line| line.split(',').nth(6).unwrap().parse::<f64>());
    assert!(pressures.map(|p| p.expect("a number")).all(|p| (60.0..220.0).contains(&p)), "{filled}");
}

/// Independent normal columns at any scale have the likelihood of a normal distribution, −ln s√(2πe) each.
#[test]
fn reals_of_any_scale_learn() {
    for scale in [1e-6, 1.0, 1e4, 1e6, 1e39] {
        let mut dice = Dice(5);
        let text = table("x,y", 300, |_| {
            let (x, y) = (dice.normal(), dice.normal());
            format!("{:e},{:e}", scale * (3.0 + x), scale * y)
        });
        let e = learnt(&text, 200, "");
        let truth = -2.0 * (0.5 * (std::f64::consts::TAU * std::f64::consts::E).ln() + f64::ln(scale));
        // 100 test rows of two columns: a standard error of 0.1, and 4 numbers learnt from 200 rows cost 0.01.
        assert!((mean(&e) - truth).abs() < 0.4, "scale {scale}: {} against {truth}", mean(&e));
        assert_eq!(e["verdict"], "exact");
    }
}

#[test]
fn an_outlier_and_heavy_tails_do_no_harm() {
    let mut dice = Dice(9);
    let outlier = table("x,y", 300, |r| match r {
        17 => "1e9,0.3".into(),
        _ => format!("{:.6},{:.6}", dice.normal(), dice.normal()),
    });
    let e = learnt(&outlier, 200, "");
    // A normal column with the outlier in its variance would have −18 nats.
    assert!(mean(&e) > -6.0 && gain(&e) > -0.05, "{e}");
    // Cauchy columns: the ratio of two normal numbers.
    let tails = table("x,y", 300, |_| {
        format!("{:.9},{:.9}", dice.normal() / dice.normal(), dice.normal() / dice.normal())
    });
    let e = learnt(&tails, 200, "");
    // Two Cauchy numbers have −2 ln 4π = −5.06 nats; what the inverse hyperbolic sine misses of them costs some tenths.
    assert!(mean(&e) > -6.5, "{e}");
}

/// Correlated columns: with or without hidden units, of any kind, the normal distribution is reached and nothing is undone.
#[test]
fn couplings_among_reals_reach_the_normal_distribution() {
    let mut dice = Dice(21);
    let text = table("a,b,c", 500, |_| {
        let (x, y, z) = (dice.normal(), dice.normal(), dice.normal());
        format!("{:.6},{:.6},{:.6}", 10.0 + x, 500.0 * (0.9 * x + 0.44 * y), 0.01 * (0.5 * y + z))
    });
    // ½ ln det(2πe Σ) of the lines above, whose matrix is triangular: 1 · 500·0.44 · 0.01.
    let entropy =
        1.5 * (std::f64::consts::TAU * std::f64::consts::E).ln() + (500.0 * 0.44 * 0.01f64).ln();
    for options in ["", "--machine fully-visible", "--machine semi-restricted", "--hidden-kind gaussian"]
    {
        let e = learnt(&text, 400, options);
        // 100 rows: the standard error of the mean is √(3/2)/10 = 0.12; 9 numbers from 400 rows cost 0.01.
        assert!((mean(&e) + entropy).abs() < 0.4, "{options:?}: {} against {}", mean(&e), -entropy);
        assert!(gain(&e) > 0.5, "{options:?}: {e}");
    }
}

/// Thirty copies of one coin: chains freeze on one side, which the pseudo-likelihood does not see.
#[test]
fn copies_of_a_coin_stay_above_independent_columns() {
    let mut dice = Dice(2);
    let header: Vec<String> = (0..30).map(|i| format!("c{i}")).collect();
    let text = table(&header.join(","), 400, |_| {
        let side = if dice.uniform() < 0.5 { "0" } else { "1" };
        [side; 30].join(",")
    });
    let e = learnt(&text, 300, "--updates 3000");
    assert!(gain(&e) > 5.0, "{e}");
}

/// A model that is worse than nothing is called so, in words, in JSON and by the exit code.
#[test]
fn a_bad_model_is_called_bad() {
    let place = Place::new();
    let mut dice = Dice(8);
    let header = "a,b,c,d,e,f,g,h";
    let noise = |dice: &mut Dice, rows: usize| {
        table(header, rows, |_| {
            let bit = |d: &mut Dice| if d.uniform() < 0.5 { "0" } else { "1" };
            (0..8).map(|_| bit(dice)).collect::<Vec<_>>().join(",")
        })
    };
    place.write("train.csv", noise(&mut dice, 40));
    place.write("test.csv", noise(&mut dice, 400));
    // Forty rows of noise, learnt by heart.
    let words = "train train.csv --test test.csv -o run --hidden 60 --updates 3000 --quiet --json";
    let ran = place.run(words);
    let e: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(e["evaluation"]["verdict"], "worse than independent columns", "{}", ran.out);
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert!(ran.err.contains("not to be used"), "{}", ran.err);
    let again = place.ok("evaluate run --quick --quiet");
    assert!(again.starts_with("verdict: worse than independent columns"), "{again}");
}

/// A category and a count that no training row had make a test row impossible: it is counted, and the others are scored.
#[test]
fn values_that_training_did_not_have_are_no_error() {
    let mut dice = Dice(11);
    let mut text = table("grade,visits", 120, |_| {
        let grade = ["good", "fair", "poor"][(3.0 * dice.uniform()) as usize];
        format!("{grade},{}", (3.0 * dice.uniform()) as u32)
    });
    text += "good,1\nfair,2\nawful,1\npoor,99\n";
    let e = learnt(&text, 120, "--updates 20");
    assert_eq!((e["rows"].as_u64(), e["impossible_rows"].as_u64()), (Some(2), Some(2)));
    assert!(e["reasons"].to_string().contains("2 rows have a category or a count"), "{e}");
    // Those of the two rows that are left, and 3 × 3 equally frequent values.
    assert!((mean(&e) + 9f64.ln()).abs() < 0.5, "{e}");

    let place = Place::new();
    let lines: Vec<&str> = text.lines().collect();
    place.write("train.csv", lines[..121].join("\n"));
    place.write("test.csv", format!("{}\n{}\n", lines[0], lines[121..].join("\n")));
    place.json("train train.csv --updates 20 --split 0 -o run");
    let scores = place.json("score run test.csv");
    let ranks: Vec<u64> = (0..4).map(|r| scores["rows"][r]["rank"].as_u64().unwrap()).collect();
    assert_eq!(ranks[2..], [1, 2], "the impossible rows are the most anomalous: {scores}");
    let told = |r: usize| scores["rows"][r]["log_likelihood"]["value"].as_f64();
    assert!(told(0).is_some() && told(2).is_none());
    let evaluated = place.json("evaluate run test.csv --quick");
    assert_eq!(evaluated["impossible_rows"].as_u64(), Some(2));
    // Elsewhere an unknown category is an error.
    place.fails("complete run test.csv", 1, &["one of the categories"]);
}

/// A total beside its parts, a column in two units, parts of a hundred: of such columns one is known given the others. A
/// model that knows it to a twentieth of its standard deviation gains ln 20 nats, about 3.
#[test]
fn columns_that_depend_on_others_learn() {
    let mut dice = Dice(17);
    let totals = table("a,b,total", 500, |_| {
        let (a, b) = (dice.normal(), dice.normal());
        format!("{a:.6},{b:.6},{:.6}", a + b)
    });
    let units = table("celsius,fahrenheit,humidity", 500, |_| {
        let celsius = 20.0 + 5.0 * dice.normal();
        format!("{celsius:.2},{:.3},{:.1}", 32.0 + 1.8 * celsius, 50.0 + 10.0 * dice.normal())
    });
    let hundred = table("clay,silt,sand", 500, |_| {
        let (a, b) = (20.0 + 5.0 * dice.normal(), 30.0 + 6.0 * dice.normal());
        format!("{a:.1},{b:.1},{:.1}", 100.0 - a - b)
    });
    for text in [totals, units, hundred] {
        let e = learnt(&text, 400, "");
        assert!(gain(&e) > 20f64.ln(), "{e}");
    }
}

/// Answers of two kinds of people to twelve questions, and their ages. `empty` of the first rows miss an answer.
fn answers(rows: usize, empty: usize) -> String {
    let mut dice = Dice(23);
    let header: Vec<String> = (1..=12).map(|i| format!("q{i}")).collect();
    table(&format!("{},age", header.join(",")), rows, |r| {
        let glad = dice.uniform() < 0.5;
        let answer = |u: f64| match (glad, u < 0.7) {
            (true, true) => "good",
            (false, true) => "bad",
            _ => "fair",
        };
        let mut cells: Vec<&str> = (0..12).map(|_| answer(dice.uniform())).collect();
        if r < empty {
            cells[r % 12] = "";
        }
        let age = 50.0 + 10.0 * dice.normal() + if glad { 5.0 } else { -5.0 };
        format!("{},{age:.1}", cells.join(","))
    })
}

/// A few empty cells cost little, whichever score the run can follow.
#[test]
fn empty_cells_do_not_stop_learning() {
    let whole = gain(&learnt(&answers(600, 0), 450, ""));
    let gaps = gain(&learnt(&answers(600, 30), 450, ""));
    // Twelve answers that tell two kinds apart with near certainty: the dependence is worth several nats.
    assert!(whole > 3.0 && gaps > 0.9 * whole, "{whole} {gaps}");
}

/// Three medal winners, and flowers of two to nine rows: below five rows nothing is learnt, and from there on what rows say that
/// were left out is told.
#[test]
fn a_handful_of_rows_is_not_learnt_by_heart() {
    let place = Place::new();
    let flower = |dice: &mut Dice| {
        let size = dice.normal();
        format!("{:.1},{:.1},{:.1}", 5.8 + 0.8 * size, 3.0 - 0.2 * dice.normal(), 3.7 + 1.6 * size)
    };
    let mut tables =
        vec!["nation,gold,silver,bronze\nKorea,24,13,11\nChina,10,15,8\nCanada,9,12,12\n".into()];
    for rows in [2, 4, 5, 9] {
        let mut dice = Dice(29 + rows as u64);
        tables.push(table("a,b,c", rows, |_| flower(&mut dice)));
    }
    for text in tables {
        place.write("few.csv", &text);
        let told = place.json("train few.csv -o run --force --threads 1");
        let e = &told["evaluation"];
        let rows = e["rows"].as_u64().unwrap();
        assert!(rows >= 5 || told["updates"] == 0, "{told}");
        assert!(mean(e).is_finite() && gain(e) > -0.5, "{told}");
        let left_out = &told["left_out"];
        assert_eq!(left_out.is_null(), rows < 5, "{told}");
        assert!(left_out.is_null() || left_out["log_likelihood"].as_f64() < Some(mean(e)), "{told}");
    }
}

/// The only honest figure of a small table is that of rows which took no part.
#[test]
fn left_out_rows_speak_where_no_rows_are_held_out() {
    let place = Place::new();
    let mut dice = Dice(31);
    let linked = table("a,b,c,d", 120, |_| {
        let on = dice.uniform() < 0.5;
        let tell = |dice: &mut Dice| if (dice.uniform() < 0.9) == on { "yes" } else { "no" };
        let words = [tell(&mut dice), tell(&mut dice), tell(&mut dice), tell(&mut dice)];
        words.join(",")
    });
    place.write("linked.csv", linked);
    let told = place.json("train linked.csv -o run --threads 1");
    let (found, trained) = (&told["left_out"], mean(&told["evaluation"]));
    let (left_out, gained) =
        (found["log_likelihood"].as_f64().unwrap(), found["gain"].as_f64().unwrap());
    // Four reports of one coin, each right in nine of ten cases, have an entropy of 1.939 nats; independent ones have 0.833 more.
    // The standard error of either with 120 rows is 0.1.
    assert!((-2.3..-1.7).contains(&left_out) && left_out < trained + 0.1, "{left_out} {trained}");
    assert!((0.5..1.0).contains(&gained), "{gained}");
    let spoken = place.ok("train linked.csv -o again --threads 1");
    assert!(
        spoken.contains(&format!("rows that were left out in turn: about {left_out:.3}")),
        "{spoken}"
    );
}
