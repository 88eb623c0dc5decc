//! The scorecard in each output format.

use super::*;
use crate::report::html;
use crate::report::junit;
use crate::report::look::{Color, Look};
use crate::report::markup::{cell, code};
use maud::html;
use std::fmt::Write;

const GENERAL: &str = "True of any lock";

fn parts(card: &Scorecard) -> [(&'static str, Vec<&Row>); 2] {
    let of = |general: bool| {
        let rows = card.rows.iter();
        rows.filter(move |row| row.true_of_any_lock == general)
            .collect()
    };
    [("This lock", of(false)), (GENERAL, of(true))]
}

fn verdict(card: &Scorecard) -> String {
    let required: Vec<&Row> = card.rows.iter().filter(|row| row.required).collect();
    if required.is_empty() {
        return "nothing of this was required".to_owned();
    }
    let missed = required.iter().filter(|row| row.answer != Answer::Yes);
    let missed: Vec<String> = missed
        .map(|row| format!("{} ({})", row.name, row.answer))
        .collect();
    match missed.is_empty() {
        true => "everything that is required holds".to_owned(),
        false => format!("required and not met: {}", missed.join(", ")),
    }
}

pub fn human(card: &Scorecard, look: &Look) -> String {
    let mut text = String::new();
    for (title, rows) in parts(card) {
        if rows.is_empty() {
            continue;
        }
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{title}");
        for row in rows {
            let color = match row.answer {
                Answer::Yes => Color::Good,
                Answer::No if row.required => Color::Bad,
                Answer::No | Answer::Unknown => Color::Doubtful,
                Answer::NotOffered => Color::Calm,
            };
            let answer = format!("{:<11}", row.answer.to_string());
            let answer = look.paint(&answer, color);
            let star = if row.required { "*" } else { " " };
            let _ = writeln!(text, "  {answer} {star} {}", row.asks);
            let _ = writeln!(text, "                {}", row.evidence);
            if matches!(row.answer, Answer::No | Answer::Unknown) {
                let _ = writeln!(text, "                again: {}", row.again);
            }
        }
        text.push('\n');
    }
    let _ = writeln!(text, "{}: {}", card.worker, verdict(card));
    if let Some(folder) = &card.folder {
        let folder = folder.display();
        let _ = writeln!(
            text,
            "page: {folder}/{PAGE}\nevery case: {folder}/report.html"
        );
    }
    text
}

pub fn markdown(card: &Scorecard) -> String {
    let mut text = format!("### {}: {}\n", cell(&card.worker), cell(&verdict(card)));
    for (title, rows) in parts(card) {
        if rows.is_empty() {
            continue;
        }
        let _ = write!(
            text,
            "\n{title}:\n\n| | answer | evidence | again |\n|---|---|---|---|\n"
        );
        for row in rows {
            let answer = match row.required {
                true => format!("**{}**", row.answer),
                false => row.answer.to_string(),
            };
            let (asks, evidence, again) = (cell(row.asks), cell(&row.evidence), code(&row.again));
            let _ = writeln!(text, "| {asks} | {answer} | {evidence} | {again} |");
        }
    }
    text
}

/// A required answer that is not yes is a failure, or an error if it is unknown.
pub fn junit(card: &Scorecard) -> String {
    let tests = card.rows.iter().map(|row| junit::Answer {
        name: row.name.to_owned(),
        outcome: match row.answer {
            Answer::Unknown if row.required => Outcome::Inconclusive,
            answer if row.required && answer != Answer::Yes => Outcome::NotAsExpected,
            _ => Outcome::AsExpected,
        },
        message: format!("{}: {}", row.answer, row.evidence),
        told: format!("{}: {}; {}", row.asks, row.answer, row.evidence),
    });
    junit::document(&[junit::answers(&card.worker, tests)])
}

pub fn page(card: &Scorecard) -> String {
    let body = html! {
        main {
            h1 { (card.worker) }
            p { (verdict(card)) "; " a href="report.html" { "every case" } }
            @for (title, rows) in parts(card) {
                @if !rows.is_empty() {
                    h2 { (title) }
                    div.wide { table {
                        thead { tr { th { "" } th { "answer" } th { "evidence" } th { "again" } } }
                        tbody { @for row in rows { tr {
                            td { (row.asks) }
                            td.name { @if row.required { strong { (row.answer.to_string()) } } @else { (row.answer.to_string()) } }
                            td.prose { (row.evidence) }
                            td { code { (row.again) } }
                        } } }
                    } }
                }
            }
        }
    };
    html::document("scorecard", &html! {}, &body)
}
