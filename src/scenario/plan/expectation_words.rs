use crate::model::Expectations;

pub fn of(expect: &Expectations) -> String {
    let named = |name: &str, range: &dyn ToString| {
        let name = name.replace('_', " ");
        format!("{name} {}", range.to_string())
    };
    let mut words: Vec<String> = Vec::new();
    let kinds = expect.violations_by_kind.iter();
    words.extend(kinds.map(|(kind, range)| format!("{kind} {range}")));
    let all = expect.violations.iter();
    words.extend(all.map(|range| named(Expectations::VIOLATIONS, range)));
    let excused = expect.excused_by_kind.iter();
    words.extend(excused.map(|(kind, range)| format!("excused {kind} {range}")));
    let excused = expect.excused.iter();
    words.extend(excused.map(|range| named(Expectations::EXCUSED, range)));
    let counts = expect.counts.iter();
    words.extend(counts.map(|(count, range)| named(count.name(), range)));
    let measures = expect.measures.iter();
    words.extend(measures.map(|(measure, range)| named(measure.name(), range)));
    if !expect.order.is_empty() {
        words.push(format!("in this order: {}", expect.order_in_words()));
    }
    match words.is_empty() {
        // Only a case without writes may expect nothing in particular.
        true => "that it is done to its end".to_owned(),
        false => words.join(", "),
    }
}
