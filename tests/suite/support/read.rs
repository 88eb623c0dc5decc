use serde_json::Value;
use std::path::Path;
use std::time::{Duration, Instant};

const POLL_DEADLINE: Duration = Duration::from_secs(60);
const POLL_PAUSE: Duration = Duration::from_millis(5);

#[track_caller]
pub fn json(path: &Path) -> Value {
    let text = std::fs::read_to_string(path);
    let text = text.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the complete rows of a file of JSON lines; a last row that is still being written is
/// left out.
#[track_caller]
pub fn rows(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let whole = text
        .split_inclusive('\n')
        .filter(|line| line.ends_with('\n'));
    let rows = whole.map(serde_json::from_str);
    rows.collect::<Result<_, _>>()
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Polls until there is a result; only for things that send no event.
#[track_caller]
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let give_up_at = Instant::now() + POLL_DEADLINE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < give_up_at, "{what} did not come");
        std::thread::sleep(POLL_PAUSE);
    }
}

/// Returns once a file has such a row.
#[track_caller]
pub fn await_row(path: &Path, wanted: impl Fn(&Value) -> bool) {
    let what = format!("a row in {}", path.display());
    until(&what, || rows(path).iter().any(&wanted).then_some(()));
}
