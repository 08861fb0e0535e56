//! What a column is: kind, form and reason of small columns, and the way back to text.

use harmonium_data::{
    CellFormat, Dataset, Finding, Kind, Overrides, Place, ReadOptions, Reason, Table, Values, csv_to,
    describe, load, load_like, read_csv, write_npy,
};

fn found(text: &str, toml: &str) -> (Dataset, Vec<Finding>) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.csv");
    std::fs::write(&path, text).unwrap();
    let overrides = Overrides::from_toml(toml, Place::new("schema.toml")).unwrap();
    let options = ReadOptions { overrides, header: Some(true), ..ReadOptions::default() };
    describe(&path.display().to_string(), &options).unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn written(table: &Table) -> String {
    let mut out = Vec::new();
    csv_to(&mut out, table).unwrap();
    String::from_utf8(out).unwrap()
}

/// A table of one column with these entries, beside one that is data in any case; quoted, so that commas do no harm.
fn column(name: &str, entries: &[&str]) -> String {
    let lines = entries.iter().enumerate().map(|(i, entry)| format!("\"{entry}\",{}.5\n", i * i % 7));
    format!("\"{name}\",beside\n{}", lines.collect::<String>())
}

/// `entries` again and again until there are `rows`.
fn cycled<'a>(entries: &[&'a str], rows: usize) -> Vec<&'a str> {
    entries.iter().copied().cycle().take(rows).collect()
}

use Kind::{Binary, Categorical, Count, Ignore, Label, Real, Spin};

/// Name, entries (repeated up to 30 rows), kind, form, reason.
const REPEATED: [(&str, &[&str], Kind, &str, Reason); 40] = [
    ("sex", &["f", "m", "m"], Binary, "plain", Reason::TwoWords),
    ("smoker", &["yes", "no", "no"], Binary, "plain", Reason::Truth),
    ("flag", &["TRUE", "FALSE"], Binary, "plain", Reason::Truth),
    ("flag", &["T", "f", "F"], Binary, "plain", Reason::Truth),
    ("flag", &["On", "off"], Binary, "plain", Reason::Truth),
    ("flag", &["0", "1", "1"], Binary, "plain", Reason::ZeroOne),
    ("flag", &["0.0", "1.0", ""], Binary, "plain", Reason::ZeroOne),
    ("spin", &["-1", "1", "1"], Spin, "plain", Reason::PlusMinusOne),
    ("class", &["a", "b", "c"], Label, "plain", Reason::LabelName),
    ("town", &["Oslo", "Rome", "Kyiv"], Categorical, "plain", Reason::Words),
    ("size", &["S", "M", "L"], Categorical, "plain", Reason::OrderedWords),
    ("band", &["0-9", "10-19", "100+"], Categorical, "plain", Reason::OrderedWords),
    ("answer", &["1 - never", "2 - rarely", "3 - often"], Categorical, "plain", Reason::OrderedWords),
    ("empty", &["", "NA", "?"], Ignore, "plain", Reason::Empty),
    ("version", &["7"], Ignore, "plain", Reason::Constant),
    ("unit", &["cm"], Ignore, "plain", Reason::Constant),
    ("price", &["$3.20"], Ignore, "plain", Reason::Constant),
    ("zip", &["01234", "20095", "00501"], Categorical, "plain", Reason::Codes),
    ("gear", &["3", "4", "5"], Categorical, "plain", Reason::Levels),
    ("cyl", &["4", "6", "8"], Categorical, "plain", Reason::Levels),
    ("stars", &["1", "2", "3", "4", "5"], Categorical, "plain", Reason::Levels),
    ("angle", &["0", "90", "180", "270"], Categorical, "plain", Reason::Levels),
    ("likert", &["-2", "-1", "0", "1", "2"], Categorical, "plain", Reason::Levels),
    ("kids", &["0", "1", "2", "0", "3", "0", "1", "10"], Count, "plain", Reason::SmallCounts),
    ("visits", &["0", "1", "5", "2", "14", "1", "0", "33"], Count, "plain", Reason::SmallCounts),
    ("year", &["2007", "2008", "2009"], Real, "whole", Reason::Year),
    ("built", &["1890", "1931", "1904", "1955"], Real, "whole", Reason::Year),
    ("height", &["1.71", "1.8", "1.65"], Real, "plain", Reason::Fractions),
    ("small", &["1e-3", "2.5e-2"], Real, "plain", Reason::Fractions),
    ("born", &["2020-01-05", "1999-12-31"], Real, "%Y-%m-%d", Reason::Date),
    ("born", &["05.01.2020", "31.12.1999", "-"], Real, "%d.%m.%Y", Reason::Date),
    ("seen", &["1/5/2020", "2/3/2020"], Real, "%-m/%-d/%Y", Reason::AmbiguousDate),
    ("seen", &["1/5/2020", "12/31/1999"], Real, "%-m/%-d/%Y", Reason::Date),
    ("seen", &["05/01/2020", "31/12/1999"], Real, "%d/%m/%Y", Reason::Date),
    ("day", &["20200105", "19991231"], Real, "%Y%m%d", Reason::Date),
    ("at", &["2020-01-05T10:20:30Z", "2020-01-06T00:00:00Z"], Real, "%Y-%m-%dT%H:%M:%SZ", Reason::Time),
    ("price", &["$1,234.50", "$3.20", "NA"], Real, "$1,234.56", Reason::Money),
    ("share", &["12%", "7.5%"], Real, "1234.#%", Reason::Percent),
    ("people", &["1,234", "999", "20,000"], Real, "1,234", Reason::Separators),
    ("weight", &["7 kg", "8 kg", "9.5 kg", "none"], Real, "1234.# kg", Reason::Unit),
];

#[test]
fn repeated_entries() {
    for (name, entries, kind, format, reason) in REPEATED {
        // A unit with few levels is a category; these are not repeated.
        let rows = if reason == Reason::Unit { 4 } else { 30 };
        let (set, findings) = found(&column(name, &cycled(entries, rows)), "");
        let column = &set.train.schema().columns[0];
        let got = (column.kind, column.format.to_string(), findings[0].reason);
        assert_eq!(got, (kind, format.to_owned(), reason), "{name}: {entries:?}");
        if column.kind != Ignore {
            // Every entry that is there comes back as it was written.
            let text = written(&set.train);
            let words: Vec<String> = csv_words(&text);
            for (word, entry) in words.iter().zip(cycled(entries, rows)) {
                let gap = ["", "NA", "-", "none"].contains(&entry);
                let same = gap && word.is_empty()
                    || word == entry
                    || column.format.is_plain() && word.eq_ignore_ascii_case(entry)
                    || matches!((word.parse::<f64>(), entry.parse::<f64>()), (Ok(a), Ok(b)) if a == b);
                assert!(same, "{name}: {entry:?} became {word:?}");
            }
        }
    }
}

/// The first column of a csv text, without its name.
fn csv_words(text: &str) -> Vec<String> {
    let line = |line: &str| match line.strip_prefix('"') {
        Some(rest) => rest.split_once('"').unwrap().0.to_owned(),
        None => line.split_once(',').unwrap().0.to_owned(),
    };
    text.lines().skip(1).map(line).collect()
}

/// Name, the entry of each of 30 rows, kind, form, reason.
#[test]
fn varied_entries() {
    type Entry = fn(usize) -> usize;
    let columns: [(&str, Entry, Kind, &str, Reason); 20] = [
        ("id", |i| 1000 + 7 * (i * i % 31) + i, Ignore, "plain", Reason::Identifier),
        ("PassengerId", |i| 10 + 3 * i * i, Ignore, "plain", Reason::Identifier),
        ("customer_id", |i| 987_654_321 - 13 * i * i, Ignore, "plain", Reason::Identifier),
        ("Unnamed: 0", |i| i, Ignore, "plain", Reason::Identifier),
        ("", |i| i * i + 3, Ignore, "plain", Reason::Identifier),
        ("n", |i| i + 1, Ignore, "plain", Reason::RowNumber),
        ("shuffled", |i| 5 + i * 7 % 30, Ignore, "plain", Reason::RowNumber),
        ("tens", |i| 10 * i, Ignore, "plain", Reason::RowNumber),
        ("left", |i| 2 * i - i % 2, Ignore, "plain", Reason::RowNumber),
        ("year", |i| 1871 + i, Real, "whole", Reason::Year),
        ("time", |i| 1871 + i, Real, "whole", Reason::Year),
        ("age", |i| 18 + i * i * 5 % 73, Real, "whole", Reason::WholeMeasure),
        ("pressure", |i| 80 + i * i * 11 % 127, Real, "whole", Reason::WholeMeasure),
        ("proline", |i| 278 + i * i * 97 % 1403, Real, "whole", Reason::WholeMeasure),
        ("horsepower", |i| 52 + i * i * 17 % 284, Real, "whole", Reason::WholeMeasure),
        ("income", |i| 12_000 + i * i * 1237 % 90_001, Real, "whole", Reason::WholeMeasure),
        ("population", |i| 1_000_003 * (i * i + 1), Real, "whole", Reason::WholeMeasure),
        ("large", |i| (1 << 60) + ((i * i) << 40), Real, "whole", Reason::WholeMeasure),
        ("calls", |i| i * i * 7 % 41, Count, "plain", Reason::SmallCounts),
        ("hour", |i| i * i % 24, Count, "plain", Reason::SmallCounts),
    ];
    for (name, entry, kind, format, reason) in columns {
        let entries: Vec<String> = (0..30).map(|i| entry(i).to_string()).collect();
        let entries: Vec<&str> = entries.iter().map(String::as_str).collect();
        let (set, findings) = found(&column(name, &entries), "");
        let column = &set.train.schema().columns[0];
        let got = (column.kind, column.format.to_string(), findings[0].reason);
        assert_eq!(got, (kind, format.to_owned(), reason), "{name}: {entries:?}");
    }
}

#[test]
fn words_that_differ_are_ignored_and_dates_that_differ_are_not() {
    let names: Vec<String> = (0..30).map(|i| format!("n{}", i * 7 % 30)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (_, findings) = found(&column("name", &names), "");
    assert_eq!(findings[0].reason, Reason::DistinctWords);
    let zips: Vec<String> = (0..30).map(|i| format!("0{}", 1000 + i)).collect();
    let zips: Vec<&str> = zips.iter().map(String::as_str).collect();
    let (set, findings) = found(&column("zip", &zips), "");
    assert_eq!(
        (set.train.schema().columns[0].kind, findings[0].reason),
        (Ignore, Reason::DistinctWords)
    );
    let days: Vec<String> = (1..=30).map(|day| format!("2020-06-{day:02}")).collect();
    let days: Vec<&str> = days.iter().map(String::as_str).collect();
    let (set, findings) = found(&column("day", &days), "");
    assert_eq!((set.train.schema().columns[0].kind, findings[0].reason), (Real, Reason::Date));
    assert_eq!(findings[0].range, Some([18_414.0, 18_443.0]));
}

#[test]
fn categories_stand_in_their_order() {
    for (entries, expected) in [
        (&["high", "low", "medium"][..], &["low", "medium", "high"][..]),
        (&["XL", "S", "L", "M"], &["S", "M", "L", "XL"]),
        (&["10-19", "100-109", "0-9"], &["0-9", "10-19", "100-109"]),
        (&["item10", "item9", "item1"], &["item1", "item9", "item10"]),
        (&["8", "4", "6"], &["4", "6", "8"]),
        (&["on", "OFF", "Off", "ON"], &["OFF", "ON"]),
        (&["True", "False"], &["False", "True"]),
    ] {
        let (set, _) = found(&column("c", &cycled(entries, 30)), "");
        assert_eq!(&set.train.schema().columns[0].categories[..], expected);
    }
    // Other spellings of the same two words are read as these.
    let (set, _) = found(&column("c", &["on", "OFF", "Off", "ON"]), "");
    assert_eq!(csv_words(&written(&set.train)), ["ON", "OFF", "OFF", "ON"]);
}

/// A table with columns of many kinds: identifier, year, measurements, words and gaps.
#[test]
fn patients() {
    let mut text = "id,age,sex,smoker,visits,city,blood pressure,year\n".to_owned();
    for i in 0..60usize {
        let age = if i % 13 == 5 { String::new() } else { (18 + i * i * 5 % 71).to_string() };
        let pressure = if i % 17 == 3 { "NA".to_owned() } else { (80 + i * i * 7 % 113).to_string() };
        let sex = ["f", "m"][i * i % 3 % 2];
        let smoker = ["no", "yes"][i / 2 % 2];
        let city = ["Oslo", "Rome", "Kyiv", "Lima"][i % 4];
        let (visits, year) = (i * i % 11 / 2 * (i % 3), 2001 + i * i % 19);
        text += &format!("{},{age},{sex},{smoker},{visits},{city},{pressure},{year}\n", i + 1);
    }
    let (set, findings) = found(&text, "");
    let columns = &set.train.schema().columns;
    let kinds: Vec<Kind> = columns.iter().map(|column| column.kind).collect();
    assert_eq!(kinds, [Ignore, Real, Binary, Binary, Count, Categorical, Real, Real]);
    let whole: Vec<bool> = columns.iter().map(|column| column.format == CellFormat::WHOLE).collect();
    assert_eq!(whole, [false, true, false, false, false, false, true, true]);
    assert_eq!(findings[0].reason, Reason::Identifier);
    assert_eq!(findings[7].reason, Reason::Year);
    assert_eq!(set.train.missing(), 5 + 4);
    // Everything comes back: the same text, and the same table from the schema's own TOML.
    assert_eq!(written(&set.train), text.replace(",NA,", ",,"));
    assert_eq!(found(&text, &set.train.schema().to_toml()).0, set);
}

/// Ranges of scikit-learn's wine data; only magnesium and proline are whole numbers.
#[test]
fn wine() {
    let mut text = "alcohol,magnesium,colour,proline,target\n".to_owned();
    for i in 0..178usize {
        let (alcohol, colour) =
            (11.03 + (i * i % 380) as f64 / 100.0, 1.28 + (i * 7 % 1172) as f64 / 100.0);
        let (magnesium, proline) = (70 + i * i * 3 % 93, 278 + i * i * 31 % 1403);
        text += &format!("{alcohol:.2},{magnesium},{colour:.2},{proline},{}\n", i / 60);
    }
    let (set, _) = found(&text, "");
    let kinds: Vec<Kind> = set.train.schema().columns.iter().map(|column| column.kind).collect();
    assert_eq!(kinds, [Real, Real, Real, Real, Label]);
}

#[test]
fn a_given_kind_keeps_the_form() {
    let text = column("day", &cycled(&["2020-01-05", "1999-12-31"], 6));
    for toml in
        ["[columns]\nday = \"real\"", "default = \"real\"", "[columns]\nday = { format = \"%Y-%m-%d\" }"]
    {
        let (set, findings) = found(&text, toml);
        let column = &set.train.schema().columns[0];
        assert_eq!((column.kind, column.format.to_string().as_str()), (Real, "%Y-%m-%d"), "{toml}");
        assert_eq!(
            (findings[0].reason, set.train.blocks()[0].number(0, 0)),
            (Reason::Given, Some(18_266.0))
        );
    }
    let (set, _) = found(&text, "[columns]\nday = \"categorical\"");
    assert_eq!(&set.train.schema().columns[0].categories[..], ["1999-12-31", "2020-01-05"]);
    // Months first is a guess that a schema can overrule.
    let text = column("day", &["01/02/2020", "03/04/2020"]);
    let (set, _) = found(&text, "[columns]\nday = { kind = \"real\", format = \"%d/%m/%Y\" }");
    assert_eq!(set.train.blocks()[0].number(0, 0), Some(18_293.0));
    let (set, _) = found(&column("zip", &["007", "012", "100"]), "[columns]\nzip = \"count\"");
    assert_eq!(set.train.blocks()[0].codes().unwrap().values(), [7, 12, 100]);
}

#[test]
fn a_second_table_is_read_in_the_same_form() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("second.csv");
    let name = path.display().to_string();
    let (set, _) = found(&column("price", &["$3.20", "$1,250.00", "$7.10"]), "");
    let schema = set.train.schema();
    std::fs::write(&path, column("price", &["$9.99", "-", "12"])).unwrap();
    let second = load_like(&name, schema, &ReadOptions::default()).unwrap();
    assert_eq!(csv_words(&written(&second)), ["$9.99", "", "$12.00"]);
    std::fs::write(&path, column("price", &["9.99", "cheap"])).unwrap();
    let message = load_like(&name, schema, &ReadOptions::default()).unwrap_err().to_string();
    let parts = ["row 2 (line 3), column \"price\"", "got \"cheap\"", "an entry of the form $1,234.56"];
    assert!(parts.iter().all(|part| message.contains(part)), "{message}");
}

#[test]
fn decimal_commas_between_semicolons() {
    let text = "name;length;weight\na;3,5;1.250,5\nb;0,25;17,0\nc;-7;3,1\nd;12,125;1.000,0\n";
    let (set, findings) = found(text, "");
    let forms: Vec<String> = set.train.schema().columns.iter().map(|c| c.format.to_string()).collect();
    assert_eq!(forms, ["plain", "1234,###", "1.234,5"]);
    assert_eq!(findings[2].range, Some([3.1, 1250.5]));
    assert_eq!(set.train.blocks()[0].reals().unwrap().row(0), [3.5, 1250.5]);
    let lines: Vec<String> = written(&set.train).lines().map(str::to_owned).collect();
    assert_eq!(lines[1..3], ["a,\"3,5\",\"1.250,5\"", "b,\"0,25\",\"17,0\""]);
}

#[test]
fn words_for_missing_entries() {
    // Among numbers they are missing, among words a category; what a schema lists is one in any case.
    let (set, _) = found(&column("x", &["1.5", "-", "unknown", "2.5", "None", "?"]), "");
    assert_eq!((set.train.schema().columns[0].kind, set.train.missing()), (Real, 4));
    let (set, _) = found(&column("x", &cycled(&["a", "-", "none", "?"], 12)), "");
    assert_eq!(&set.train.schema().columns[0].categories[..], ["-", "a", "none"]);
    assert_eq!(set.train.missing(), 3);
    let toml = "[columns]\nx = { kind = \"categorical\", categories = [\"a\", \"NA\", \"?\"] }";
    let (set, _) = found(&column("x", &["a", "NA", "?", "", "null"]), toml);
    assert_eq!(csv_words(&written(&set.train)), ["a", "NA", "?", "", ""]);
}

#[test]
fn numbers_that_are_not_finite_are_named() {
    for word in ["inf", "-Infinity", "1e400"] {
        let text = column("x", &["1.5", "2.5", word]);
        let message =
            read_csv(text.as_bytes(), "t.csv", &ReadOptions::default()).unwrap_err().to_string();
        assert!(message.contains("row 3 (line 4), column \"x\": got"), "{message}");
        assert!(message.contains("expected a finite number"), "{message}");
    }
    let (set, _) = found(&column("x", &["1.5", "-nan", "2.5"]), "");
    assert_eq!(set.train.missing(), 1);
}

#[test]
fn large_numbers_stay_double() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.npy");
    let name = path.display().to_string();
    let single = ReadOptions { single: true, ..ReadOptions::default() };
    for (entries, double) in [
        (["1.5", "-2.5", "3.25"], false),
        (["1e39", "-2.5", "3.25"], true),
        (["1600000000.5", "1600000001.5", "1600000002.25"], true),
    ] {
        let text = format!("x\n{}\n", entries.join("\n"));
        let table = read_csv(text.as_bytes(), "t", &single).unwrap().train;
        assert!(
            matches!(table.blocks()[0].values, Values::Reals(_)),
            "text is read in double precision"
        );
        write_npy(&path, &table).unwrap();
        let back = load(&name, &single).unwrap().train;
        assert_eq!(matches!(back.blocks()[0].values, Values::Reals(_)), double, "{entries:?}");
        let numbers = |t: &Table| (0..3).map(|r| t.blocks()[0].number(r, 0)).collect::<Vec<_>>();
        assert_eq!(numbers(&back), numbers(&table));
    }
}

#[test]
fn samples_are_whole_where_the_data_are() {
    let entries: Vec<String> = (0..30).map(|i| (80 + i * i * 11 % 127).to_string()).collect();
    let entries: Vec<&str> = entries.iter().map(String::as_str).collect();
    let (mut set, _) = found(&column("pressure", &entries), "");
    let Values::Reals(reals) = &mut set.train.blocks_mut()[0].values else { panic!("reals") };
    reals.set(0, 0, 119.6);
    assert_eq!(csv_words(&written(&set.train))[0], "120");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.npy");
    write_npy(&path, &set.train).unwrap();
    let back = load(&path.display().to_string(), &ReadOptions::default()).unwrap().train;
    assert_eq!(back.blocks()[0].number(0, 0), Some(120.0));
}

#[test]
fn reasons_are_told_in_words() {
    let mut text = String::from("row,day,blood pressure,year,q0,q1\n");
    for i in 0..40 {
        let (day, month) = (i % 28 + 1, i % 12 + 1);
        let pressure = 80 + i * i % 97;
        text +=
            &format!("{i},{day}.{month}.2020,{pressure},{},{},{}\n", 1990 + i % 30, i % 2, i / 2 % 2);
    }
    let (set, findings) = found(&text, "");
    let told = set.train.schema().explain(&findings);
    for part in [
        "ignore: 0 to 39; named like an identifier, and different in every row  [--column row=real]",
        "real: 1.1.2020 to 24.12.2020; a date, as days since 1970-01-01  [--column day=ignore]",
        "real: 80 to 176; whole numbers, measured rather than counted  [--column \"blood pressure=count\"]",
        "real: 1990 to 2019; whole numbers, a year  [--column year=count]",
        "q0 … q1             2  binary; 0 and 1  [--column q0..q1=categorical]",
    ] {
        assert!(told.contains(part), "no {part:?} in\n{told}");
    }
    let (set, findings) = found(&text, "[columns]\nyear = \"count\"");
    assert!(set.train.schema().explain(&findings).contains("count: 1990 to 2019; as the schema says\n"));
}
