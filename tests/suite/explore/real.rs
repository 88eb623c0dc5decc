//! Searches on real servers, as processes of this machine.

use super::*;
use std::time::Duration;

/// Some plays, also on a busy machine.
const TEN_MINUTES: Duration = Duration::from_secs(600);
/// Its tokens run backwards in the second play of all, which is the first try, and in no other.
const ONLY_ONCE: &str = r#"
import os, sys
sys.path.insert(0, os.environ["KIT"])
import fencepost_kit

class OnlyOnce(fencepost_kit.Lock):
    def __init__(self, task):
        super().__init__(task)
        self.token, self.step = 100, 1
        plays = len(os.listdir(os.environ["MARKS"]))
        os.mkdir(os.path.join(os.environ["MARKS"], str(plays)))
        if plays == 1:
            self.step = -1

    def acquire(self, owner, timeout):
        self.token += self.step
        return self.token

    def release(self):
        pass

fencepost_kit.run(OnlyOnce)
"#;

/// Explores on local processes with these options; returns what was told.
fn explored_here(local: &Local, name: &str, code: i32, options: &[&str]) -> Value {
    let results = fresh_folder(&format!("explore-{name}"));
    let folder = results.to_str().expect("a plain path");
    let here = ["--runtime", "local", "--results", folder];
    let arguments = [&["explore"], options, &here, &["--format", "json"]].concat();
    let ended = local.start(&arguments).wait_within(TEN_MINUTES);
    let ended = ended.expect_code(code);
    assert_eq!(local.left(), [""; 0]);
    serde_json::from_str(&ended.stdout).expect("JSON")
}

#[test]
fn what_does_not_come_again_is_kept_and_marked() {
    let local = local();
    let folder = fresh_folder("explore-only-once-subject");
    let place = |name: &str| folder.join(name).display().to_string();
    let kit = project().join("kits/python").display().to_string();
    let (worker, marks) = (place("worker.py"), place("marks"));
    fs::create_dir(&marks).expect("a folder of ours");
    fs::write(&worker, ONLY_ONCE).expect("a folder of ours");
    let subject = format!(
        "name: only-once
about: Tokens run backwards, but only once.
topology: redis
lock: {{ backend: redis, ttl: 10s, wait: spin }}
workers: {{ a: {{ key: k, rounds: 3, work: 10ms }} }}
worker: {{ command: [python3, {worker}], env: {{ KIT: {kit}, MARKS: {marks} }} }}
cases: {{ found: {{ fence: on, expect: {{ violations: 0 }} }} }}
"
    );
    let file = place("only-once.yml");
    fs::write(&file, subject).expect("a folder of ours");
    // Whatever is drawn, it has to be what this worker can do, and more than one grant.
    let fixed = [
        "timeline=[]",
        "lock.wait=spin",
        "lock.fence_floor=none",
        "workers.a.rounds=3",
        "workers.a.work=10ms",
        "workers.a.lock.ttl=10s",
        "workers.a.nested=1",
        "workers.a.renew=false",
    ];
    let fixed = fixed.iter().flat_map(|it| ["--set", it]);
    let options: Vec<&str> = [file.as_str(), "--tries", "1"]
        .into_iter()
        .chain(fixed)
        .collect();
    let told = explored_here(&local, "only-once", 1, &options);
    let found = finding(&told, "token_not_growing");
    assert_eq!((&found["came"], &found["plays"]), (&0.into(), &3.into()));
    let text = found["scenario"].as_str().expect("a text");
    let head = "# Found by fencepost explore --seed 1, try 0; it came in 0 of 3 plays: it did not come again.";
    assert!(text.starts_with(head), "{text}");
    assert!(text.contains("rounds: 3"), "it was made smaller: {text}");
}
