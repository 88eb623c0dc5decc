//! Compares the reader by hand with serde, on lines as they are written and on odd ones.

use super::line::Letters;
use super::*;
use crate::model::{BodyHash, FencingToken, LogRow, RowOutcome, RowValue};
use fastrand::Rng;

const LINES: usize = 20_000;
const ROW: &str = r#"{"seq":1,"at_ns":1,"key":"k","outcome":"accepted"}"#;

/// Reads the line both ways. The reader by hand must give the same result as serde, to
/// the word.
fn read_alike(line: &str) -> Option<LogRow> {
    let by_serde = serde_json::from_str::<LogRow>(line);
    // The reader by hand leaves the end of a file to serde.
    let by_hand = Log::read_jsonl(format!("{line}\n{ROW}\n").into_bytes());
    match (by_serde, by_hand) {
        (Ok(row), Ok(file)) => {
            assert!(!file.torn);
            let last = serde_json::from_str(ROW).unwrap();
            assert_eq!(rows_of(&file.log), [row.clone(), last], "{line}");
            Some(row)
        }
        (Err(error), Err(bad)) => {
            let reason = error.to_string();
            assert_eq!(bad, BadRow { line: 1, reason }, "{line}");
            None
        }
        (by_serde, by_hand) => panic!("{line}\nserde: {by_serde:?}\nby hand: {by_hand:?}"),
    }
}

fn rows_of(log: &Log) -> Vec<LogRow> {
    log.rows.iter().map(|row| log.written(row)).collect()
}

fn pick<'a>(random: &mut Rng, from: &[&'a str]) -> &'a str {
    from[random.usize(..from.len())]
}

fn number(random: &mut Rng) -> u64 {
    let bits = random.u32(1..=64);
    random.u64(..) >> (64 - bits)
}

fn any_row(random: &mut Rng) -> LogRow {
    const NAMES: [&str; 9] = [
        "account-6",
        "a",
        "",
        "кот",
        "\"quoted\"",
        "back\\slash",
        "line\nbreak\u{1}",
        "exactly8",
        "🦀 in a longer name",
    ];
    const VALUES: [&str; 5] = [
        "",
        "{\"by\":\"x-6\",\"count\":1}",
        "ß\u{7f}\t",
        "\u{0}",
        "🦀/",
    ];
    let maybe = |random: &mut Rng| random.bool().then(|| number(random));
    LogRow {
        seq: number(random),
        at_ns: number(random),
        key: pick(random, &NAMES).to_owned(),
        outcome: [
            RowOutcome::Accepted,
            RowOutcome::Rejected,
            RowOutcome::Duplicate,
        ][random.usize(..3)],
        token: maybe(random).map(FencingToken),
        token_seq: maybe(random).unwrap_or(0),
        seen: maybe(random).map(FencingToken),
        owner: random.bool().then(|| pick(random, &NAMES).to_owned()),
        based_on: maybe(random),
        body: maybe(random).map(BodyHash),
        value: match random.u32(..3) {
            0 => None,
            1 => Some(RowValue::Text(pick(random, &VALUES).to_owned())),
            _ => Some(RowValue::Bytes(vec![0xff; random.usize(..3)])),
        },
    }
}

#[test]
fn rows_as_they_are_written_are_read_back() {
    let mut random = Rng::with_seed(1);
    let rows: Vec<LogRow> = (0..LINES).map(|_| any_row(&mut random)).collect();
    let lines: Vec<String> = rows
        .iter()
        .map(|row| serde_json::to_string(row).unwrap() + "\n")
        .collect();
    let file = Log::read_jsonl(lines.concat().into_bytes()).unwrap();
    assert_eq!(rows_of(&file.log), rows);
    assert_eq!(rows_of(&Log::from_rows(rows.clone())), rows);
}

#[test]
fn numbers_of_names_follow_first_rows() {
    let row = |key: &str, owner: &str| LogRow {
        owner: Some(owner.to_owned()),
        key: key.to_owned(),
        ..any_row(&mut Rng::with_seed(2))
    };
    let rows = [row("b", "x"), row("a", "y"), row("b", "y"), row("\"", "x")];
    let lines = rows
        .each_ref()
        .map(|row| serde_json::to_string(row).unwrap() + "\n");
    let read = Log::read_jsonl(lines.concat().into_bytes()).unwrap().log;
    for log in [read, Log::from_rows(rows)] {
        let keys: Vec<u32> = log.rows.iter().map(|row| row.key.0).collect();
        assert_eq!(keys, [0, 1, 0, 2]);
        let owners: Vec<u32> = log.rows.iter().map(|row| row.owner.unwrap().0).collect();
        assert_eq!(owners, [0, 1, 1, 0]);
        assert_eq!((log.key_count(), log.owner_count()), (3, 2));
        assert_eq!(log.key_named("\""), Some(Key(2)));
        assert_eq!(log.owner_named("y"), Some(Owner(1)));
        assert_eq!(log.owner_named("b"), None);
        assert_eq!(log.key_of(&log.rows[2]), "b");
        assert_eq!(log.owner_of(&log.rows[2]), Some("y"));
    }
}

/// Without this, a reader that leaves everything to serde would pass.
#[test]
fn rows_without_odd_names_are_read_by_hand() {
    let lines = [
        r#"{"seq":1,"at_ns":1134449020655,"key":"account-6","outcome":"accepted","token":8,"token_seq":1,"seen":8,"owner":"81c2ac78-64ef-48cc-8bf9-e279692ef04f","based_on":0,"body":"5891b5b522d5df08","value":"{\"by\":\"x-6\",\"count\":1,\"token\":8}"}"#,
        r#" { "outcome": "rejected" , "key": "кот" , "at_ns": 0 , "seq": 9999999999999999999 , "owner": null }"#,
        r#"{"seq":1,"at_ns":1,"key":"","outcome":"duplicate","value":"\u0000\u00FF\ud7ff\/\b\f\n\r\t\\\""}"#,
        r#"{"seq":1,"at_ns":1,"key":"k","outcome":"accepted","value":[0, 255 ,7],"new":"x","b":true,"n":null,"m":false,"l":12}"#,
        r#"{"seq":1,"at_ns":1,"key":"k","outcome":"accepted","value":[]}"#,
        "{\"seq\":1,\"at_ns\":1,\"key\":\"k\",\t\"outcome\":\"accepted\"}\r",
    ];
    for line in lines {
        assert!(read_alike(line).is_some(), "{line}");
        let text = format!("{line}\n{ROW}\n");
        let (_, end) = line::read(text.as_bytes(), 0, Letters::Any).expect(line);
        assert_eq!(end, line.len() + 1, "{line}");
    }
}

/// Puts odd JSON in place of one field's value, or adds it as a field.
fn with_odd_field(random: &mut Rng, fields: &mut Vec<(String, String)>) {
    const SHORT: [&str; 26] = [
        "0", "-0", "-1", "00", "01", "1.0", "1e2", "1E400", "1.", ".5", "255", "256", "null",
        "nul", "true", "false", "\"\"", "\"text\"", "\"\\x\"", "\"\t\"", "[]", "[1,2,3]",
        "[1,256]", "[-1]", "[1,]", "{}",
    ];
    const LONG: [&str; 18] = [
        "truefalse",
        "\"\\u12\"",
        "\"tail\t\"",
        "18446744073709551615",
        "18446744073709551616",
        "99999999999999999999999",
        "\"accepted\"",
        "\"Accepted\"",
        "\"5891B5b522d5df08\"",
        "\"+891b5b522d5df0\"",
        "\"\\u0061ccepted\"",
        "\"\\ud83e\\udd80\"",
        "\"\\ud83e\"",
        "\"\\udd80\\ud83e\"",
        "\"\\u12g4\"",
        "\"unfinished",
        "{\"accepted\":null}",
        "{\"deep\":[{\"er\":[1,2,{}]}]}",
    ];
    let names = "new seq value token token_seq owner \\u0073eq Seq";
    let names: Vec<&str> = names.split(' ').collect();
    let odd = pick(random, &[&SHORT[..], &LONG].concat()).to_owned();
    if random.bool() {
        let at = random.usize(..fields.len());
        fields[at].1 = odd;
    } else {
        let at = random.usize(..=fields.len());
        fields.insert(at, (pick(random, &names).to_owned(), odd));
    }
}

fn any_line(random: &mut Rng) -> String {
    let row = serde_json::to_value(any_row(random)).unwrap();
    let fields = row.as_object().unwrap().iter();
    let mut fields: Vec<(String, String)> = fields
        .map(|(name, value)| (name.clone(), value.to_string()))
        .collect();
    random.shuffle(&mut fields);
    match random.u32(..8) {
        0..3 => with_odd_field(random, &mut fields),
        3 => drop(fields.pop()),
        _ => {}
    }
    let space = |random: &mut Rng| match random.u32(..12) {
        0 => " ",
        1 => "\t",
        2 => " \r ",
        _ => "",
    };
    let mut line = format!("{}{{", space(random));
    for (at, (name, value)) in fields.iter().enumerate() {
        let comma = if at > 0 { "," } else { "" };
        line += &format!("{comma}{}\"{name}\"{}:", space(random), space(random));
        line += &format!("{}{value}{}", space(random), space(random));
    }
    line + "}" + space(random)
}

#[test]
fn odd_lines_are_read_as_serde_reads_them() {
    let mut random = Rng::with_seed(3);
    let rows = (0..LINES).filter(|_| read_alike(&any_line(&mut random)).is_some());
    let rows = rows.count();
    assert!((LINES / 4..LINES * 3 / 4).contains(&rows), "{rows}");
}

#[test]
fn damaged_lines_are_read_as_serde_reads_them() {
    let mut random = Rng::with_seed(4);
    let mut rows = 0;
    for _ in 0..LINES {
        let mut chars: Vec<char> = any_line(&mut random).chars().collect();
        let at = random.usize(..chars.len());
        let other = chars[random.usize(..chars.len())];
        match random.u32(..4) {
            0 => chars.truncate(at),
            1 => drop(chars.remove(at)),
            2 => chars.insert(at, other),
            _ => chars[at] = other,
        }
        let line: String = chars.into_iter().collect();
        rows += usize::from(read_alike(&line).is_some());
    }
    assert!((LINES / 50..LINES / 2).contains(&rows), "{rows}");
}

#[test]
fn lines_that_are_not_objects_are_read_as_serde_reads_them() {
    let deep = "[".repeat(200);
    let deep = format!(r#"{{"x":{deep},"seq":1,"at_ns":1,"key":"k","outcome":"accepted"}}"#);
    for line in [
        "",
        " ",
        "\u{feff}{}",
        "{}",
        "{",
        "null",
        "7",
        "{} {}",
        r#"[1,2,"k","accepted",null,0,null,null,null,null,null]"#,
        r#"[1,2,"k","accepted"]"#,
        r#"{"seq":1,"at_ns":1,"key":"k","outcome":"accepted"} x"#,
        r#"{"seq":1,"at_ns":1,"key":"k","outcome":"accepted",}"#,
        r#"{"seq":1 "at_ns":1,"key":"k","outcome":"accepted"}"#,
        &deep,
    ] {
        read_alike(line);
    }
}

#[test]
fn the_first_bad_row_is_named_by_its_line() {
    let mut random = Rng::with_seed(5);
    for _ in 0..500 {
        let lines: Vec<String> = (0..random.usize(..6))
            .map(|_| any_line(&mut random))
            .collect();
        let by_serde = lines
            .iter()
            .map(|line| serde_json::from_str::<LogRow>(line));
        let bad = by_serde.enumerate().find_map(|(at, row)| {
            row.err().map(|error| BadRow {
                line: at + 1,
                reason: error.to_string(),
            })
        });
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        assert_eq!(Log::read_jsonl(text.into_bytes()).err(), bad, "{lines:?}");
    }
}

#[test]
fn rows_take_little_more_room_than_there_are_of_them() {
    let long = format!(r#"{{"x":"{}",{}"#, "x".repeat(400), &ROW[1..]);
    let odd = format!(r#"{{"x":{{}},{}"#, &ROW[1..]);
    for (first, then) in [
        (ROW, ROW),
        (&long, ROW),
        (ROW, &long),
        (ROW, &odd),
        (&odd, ROW),
    ] {
        let lines = [format!("{first}\n"), format!("{then}\n")];
        let text = lines.map(|line| line.repeat(30_000)).concat();
        let rows = Log::read_jsonl(text.into_bytes()).unwrap().log.rows;
        assert_eq!(rows.len(), 60_000);
        let room = rows.capacity() as f64 / rows.len() as f64;
        assert!(room < 1.1, "{room}: {first}, then {then}");
    }
}

#[test]
fn a_last_line_without_its_end_is_torn_and_not_a_row() {
    for (text, rows, torn) in [
        (String::new(), 0, false),
        (format!("{ROW}\n{ROW}\n"), 2, false),
        (format!("{ROW}\n{ROW}"), 1, true),
        (format!("{ROW}\n{{\"seq\""), 1, true),
        (ROW.to_owned(), 0, true),
    ] {
        let file = Log::read_jsonl(text.clone().into_bytes()).unwrap();
        assert_eq!((file.log.len(), file.torn), (rows, torn), "{text}");
        assert_eq!(file.log.is_empty(), rows == 0);
    }
    // The text may be torn within a character, too.
    let file = Log::read_jsonl([ROW.as_bytes(), b"\n\xd0"].concat()).unwrap();
    assert_eq!((file.log.len(), file.torn), (1, true));
}

#[test]
fn a_row_that_is_not_utf8_is_named_by_its_line() {
    let whole =
        r#"{"?":"?","seq":1,"at_ns":1,"key":"?","outcome":"accepted","owner":"?","value":"?"}"#;
    let mut broken = 0;
    for (at, _) in whole.match_indices('?') {
        let mut line = whole.as_bytes().to_vec();
        line[at] = 0xff;
        let text = [ROW.as_bytes(), b"\n", &line, b"\n", ROW.as_bytes(), b"\n"].concat();
        let reason = format!("invalid UTF-8 at line 1 column {}", at + 1);
        let bad = Log::read_jsonl(text).unwrap_err();
        assert_eq!(bad, BadRow { line: 2, reason });
        let text = [b"nonsense\n", &line[..], b"\n"].concat();
        assert_eq!(Log::read_jsonl(text).unwrap_err().line, 1);
        broken += 1;
    }
    assert_eq!(broken, 5);
}
