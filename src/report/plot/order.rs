//! The order of arrivals against the order of grants: a fair lock is a diagonal.

use super::*;

/// The most dots of a panel; more would only make a larger file.
const MOST_DOTS: usize = 2_000;

/// Returns the plot; `None` if nothing was granted.
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
    let columns = match panels.len() {
        1 => 1,
        2 | 4 => 2,
        _ => 3,
    };
    Some(Picture {
        title: "Arrival order against acquisition order",
        note: "Each dot is a grant of the largest step's busiest key. On the line: first come, \
               first served; below it: served early; above: overtaken.",
        panels,
        columns,
        // The panels are roughly square.
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
    let axis = |label| Axis::new(label, Scale::up_to(count as f64));
    let title = format!("{}, {} contenders", named(case, steps), step.contenders);
    // The panel's title names the case, so the legend need not.
    let series = Series::new("", colour, Stroke::Cloud, dots.step_by(every));
    let (x, y) = (axis("place by arrival"), axis("place by acquisition"));
    Some(Panel {
        diagonal: true,
        ..Panel::new(title, x, y, vec![series])
    })
}
