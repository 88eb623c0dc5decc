use super::*;

/// A generator that needs more of a core than this causes a warning, even if it kept up.
const MUCH_OF_A_CORE: f64 = 0.3;

/// Returns one value of a distribution. An empty distribution is not shown as 0.
pub fn latency(of: &Latency, micros: u64) -> String {
    match of.count {
        0 => "-".to_owned(),
        _ => time(micros as f64),
    }
}

/// Returns a share or a cost per acquisition, or `-` if there were no acquisitions.
pub fn each(step: &ContendStep, words: String) -> String {
    if step.acquisitions == 0 {
        "-".to_owned()
    } else {
        words
    }
}

/// Returns what a reader has to know before believing a step's numbers.
pub fn warnings(step: &ContendStep) -> Vec<String> {
    let mut all = Vec::new();
    let cpu = percent(step.generator.cpu_share);
    if let Some(bottleneck) = &step.generator.bottleneck {
        let lag = latency(&step.generator.lag, step.generator.lag.p99_us);
        all.push(format!(
            "the generator was the bottleneck ({cpu} of a core, lag p99 {lag}): {bottleneck}"
        ));
    } else if step.generator.cpu_share > MUCH_OF_A_CORE {
        all.push(format!("making the load took {cpu} of one core"));
    }
    for (words, count) in &step.errors {
        all.push(format!("{count} x {words}"));
    }
    if step.timeouts > 0 {
        all.push(format!(
            "{} timed out and count in no percentile",
            step.timeouts
        ));
    }
    if step.still_waiting > 0 {
        all.push(format!(
            "{} were still waiting at the end and count in no percentile",
            step.still_waiting
        ));
    }
    all
}

/// Shortens a name to at most this many characters.
pub fn cut(name: &str, most: usize) -> String {
    match name.chars().count() <= most {
        true => name.to_owned(),
        false => name.chars().take(most - 2).chain("..".chars()).collect(),
    }
}
