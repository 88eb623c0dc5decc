//! The comparison as tables, the same on the screen, on the page and in Markdown.

use super::*;
use crate::report::markup::cell;

/// A table with one row for each service. The head of the first column says what it is about.
pub struct ComparisonTable {
    pub heads: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

const INDENT: &str = "  ";
/// Stands for what was not measured.
const NOTHING: &str = "-";

const COST: [Column<ServiceFigures>; 5] = [
    ("uncontended", |one| one.service.clone()),
    ("acquire+release p50", |one| {
        uncontended(one, |of| time(of.p50_us as f64))
    }),
    ("p99", |one| uncontended(one, |of| time(of.p99_us as f64))),
    ("floor p50", |one| {
        uncontended(one, |of| time(of.floor_p50_us as f64))
    }),
    ("x floor", |one| {
        uncontended(one, |of| {
            or_nothing(of.ratio, |ratio| format!("{ratio:.2}"))
        })
    }),
];

const FAULTS: [Column<ServiceFigures>; 6] = [
    ("faults", |one| one.service.clone()),
    ("killed: blocked", |one| {
        or_nothing(one.blocked.as_ref(), |of| time(of.for_ms as f64 * 1e3))
    }),
    ("TTL", |one| {
        or_nothing(one.blocked.as_ref(), |of| time(of.ttl_ms as f64 * 1e3))
    }),
    ("paused, no fence", |one| paused(&one.paused_unfenced)),
    ("paused, fenced", |one| paused(&one.paused_fenced)),
    ("clock set forward", |one| {
        or_nothing(one.clock_breaks_exclusion, |breaks| {
            let words = if breaks { "two holders" } else { "one holder" };
            words.to_owned()
        })
    }),
];

const ORIGINS: [Column<ServiceFigures>; 4] = [
    ("origins", |one| one.service.clone()),
    ("floor", |one| uncontended(one, |of| of.floor.clone())),
    ("tokens", |one| one.tokens.clone()),
    ("tokens only grew", |one| {
        or_nothing(one.tokens_only_grew, |grew| {
            let words = if grew { "yes" } else { "NO" };
            words.to_owned()
        })
    }),
];

/// Returns the tables of a run; none if it does not compare services.
pub fn tables(run: &RunRecord) -> Vec<ComparisonTable> {
    let services = of(run);
    if services.is_empty() {
        return Vec::new();
    }
    let table = |columns: &[Column<ServiceFigures>]| ComparisonTable {
        heads: columns.iter().map(|(head, _)| (*head).to_owned()).collect(),
        rows: services
            .iter()
            .map(|one| columns.iter().map(|(_, cell)| cell(one)).collect())
            .collect(),
    };
    vec![
        table(&COST),
        hot_key(&services),
        table(&FAULTS),
        table(&ORIGINS),
    ]
}

fn hot_key(services: &[ServiceFigures]) -> ComparisonTable {
    let steps = services.iter().flat_map(|one| one.hot_key.keys().copied());
    let steps: BTreeSet<u32> = steps.collect();
    let mut heads = vec!["hot key".to_owned()];
    for step in &steps {
        let counts = format!("{step}: hand-offs/s");
        heads.extend([counts, "out of order".to_owned(), "Jain".to_owned()]);
    }
    let row = |one: &ServiceFigures| {
        let mut row = vec![one.service.clone()];
        for step in &steps {
            let of = one.hot_key.get(step);
            row.push(or_nothing(of, |of| figure(of.hand_offs_per_s)));
            row.push(or_nothing(of, |of| percent(of.out_of_order)));
            row.push(or_nothing(of, |of| format!("{:.3}", of.jain)));
        }
        row
    };
    ComparisonTable {
        heads,
        rows: services.iter().map(row).collect(),
    }
}

/// Returns lines of at most this many columns, where they can be wrapped.
pub fn text(run: &RunRecord, width: usize) -> String {
    let tables = tables(run).into_iter().map(|table| {
        let heads: Vec<&str> = table.heads.iter().map(String::as_str).collect();
        let mut grid = Grid::new(&heads);
        table.rows.into_iter().for_each(|row| grid.row(row));
        grid.text(INDENT, width) + "\n"
    });
    tables.collect()
}

/// Returns the same for documents.
pub fn markdown(run: &RunRecord) -> String {
    let line = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|words| cell(words)).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let tables = tables(run).into_iter().map(|table| {
        let numbers = "--:|".repeat(table.heads.len() - 1);
        let rows: String = table.rows.iter().map(|row| line(row)).collect();
        format!("{}|---|{numbers}\n{rows}", line(&table.heads))
    });
    joined(tables, "\n")
}

fn or_nothing<T>(value: Option<T>, words: impl FnOnce(T) -> String) -> String {
    value.map_or(NOTHING.to_owned(), words)
}

fn uncontended(one: &ServiceFigures, words: fn(&UncontendedFigures) -> String) -> String {
    or_nothing(one.uncontended.as_ref(), words)
}

fn paused(of: &Option<PausedFigures>) -> String {
    or_nothing(of.as_ref(), |of| match of {
        PausedFigures {
            violations: 0,
            another_was_granted: false,
            ..
        } => "all others wait".to_owned(),
        PausedFigures {
            violations: 0,
            refused,
            ..
        } => format!("none, {refused} refused"),
        PausedFigures { violations: 1, .. } => "1 violation".to_owned(),
        PausedFigures { violations, .. } => format!("{violations} violations"),
    })
}
