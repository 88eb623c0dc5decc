//! Who came when against who was served when: a fair lock is a diagonal.

use super::named;
use super::panel::{Axis, Panel, Series, Stroke};
use super::picture::Picture;
use super::scale::Scale;
use crate::model::{ArrivalRow, ContendStep, Name};
use std::collections::BTreeMap;

/// More dots than this only make a larger file.
const MOST_DOTS: usize = 2_000;

/// `None` where nothing was granted.
pub fn order(
    cases: &[(&str, &[ContendStep])],
    arrivals: &BTreeMap<Name, Vec<ArrivalRow>>,
) -> Option<Picture> {
    let panels = cases
        .iter()
        .enumerate()
        .filter_map(|(colour, (case, steps))| panel(case, colour, steps, arrivals.get(*case)?));
    let panels: Vec<Panel> = panels.collect();
    if panels.is_empty() {
        return None;
    }
    let note = "Each dot is a grant of the largest step's busiest key. On the line: first come, \
                first served; below it: served early; above: overtaken.";
    let columns = match panels.len() {
        1 => 1,
        2 | 4 => 2,
        _ => 3,
    };
    Some(Picture {
        title: "Arrival order against acquisition order".to_owned(),
        note: note.to_owned(),
        panels,
        columns,
        // As wide as they are high, more or less.
        panel_height: [460.0, 460.0, 350.0][columns - 1],
    })
}

fn panel(case: &str, colour: usize, steps: &[ContendStep], rows: &[ArrivalRow]) -> Option<Panel> {
    let step = steps.iter().max_by_key(|step| step.contenders)?;
    let granted = rows.iter().filter(|row| row.step == step.contenders);
    let granted: Vec<(&ArrivalRow, u64)> = granted
        .filter_map(|row| Some((row, row.granted_ns?)))
        .collect();
    let mut keys: BTreeMap<&str, usize> = BTreeMap::new();
    for (row, _) in &granted {
        *keys.entry(&row.key).or_default() += 1;
    }
    let (busiest, _) = keys.iter().max_by_key(|(_, count)| **count)?;
    let mut grants: Vec<(u64, u64)> = granted
        .iter()
        .filter(|(row, _)| row.key == **busiest)
        .map(|(row, granted_ns)| (row.intended_ns, *granted_ns))
        .collect();
    grants.sort_unstable();
    let count = grants.len();
    let mut by_grant: Vec<usize> = (0..count).collect();
    by_grant.sort_by_key(|arrival| (grants[*arrival].1, *arrival));
    let places = by_grant.iter().zip(1..);
    let dots = places.map(|(arrival, acquired)| ((arrival + 1) as f64, f64::from(acquired)));
    let every = count.div_ceil(MOST_DOTS).max(1);
    let axis = |label: &str| Axis {
        label: label.to_owned(),
        scale: Scale::up_to(count as f64),
    };
    Some(Panel {
        title: format!("{}, {} contenders", named(case, steps), step.contenders),
        x: axis("place by arrival"),
        y: axis("place by acquisition"),
        series: vec![Series {
            // The panel's title says it.
            name: String::new(),
            colour,
            stroke: Stroke::Cloud,
            points: dots.step_by(every).collect(),
        }],
        marks: Vec::new(),
        diagonal: true,
    })
}
