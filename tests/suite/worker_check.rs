//! `fencepost worker-check` on workers that do not speak the protocol: it says which line is wrong.

use crate::support::*;

/// Says lines with the time that the protocol wants.
const SAY: &str = r#"import json, sys, time
def say(event, **more):
    print(json.dumps({"at_ns": time.clock_gettime_ns(time.CLOCK_MONOTONIC), "event": event, **more}), flush=True)
"#;

fn checked(program: &str) -> Ended {
    let program = format!("{SAY}{program}");
    let local = local();
    start(local.command(["worker-check", "python3", "-c", &program])).wait()
}

#[test]
fn the_wrong_line_is_named_with_what_was_expected() {
    let hold = r#"round=1, key="check-start", token=1, owner="me""#;
    for (program, line, problem, expected) in [
        (
            "print('hello')".to_owned(),
            "line 1 of stdout: hello",
            "not an event",
            "`ready`, or `refused` with a `reason`, as one JSON object",
        ),
        (
            "say('ready', lacks=['everything'])".to_owned(),
            "line 1 of stdout",
            "unknown variant `everything`",
            "`ready`",
        ),
        (
            format!("say('ready'); say('acquired', {hold})"),
            "line 2 of stdout",
            "`acquired` has no place here",
            "`at_gate` with \"gate\": \"start\"",
        ),
        (
            "say('ready'); say('at_gate', gate='start', round=7)".to_owned(),
            "line 2 of stdout",
            "`at_gate` is of round 7",
            "\"round\": 0",
        ),
        (
            "say('ready'); say('at_gate', gate='start', round=0); say('done', rounds=0)".to_owned(),
            "line 3 of stdout",
            "`done` comes while the gate start is closed",
            "nothing until the line",
        ),
        (
            "sys.exit('no module my_lock')".to_owned(),
            "stdout: no line",
            "the process ended",
            "stderr:   no module my_lock",
        ),
    ] {
        let ended = checked(&format!("{program}\nsys.stdin.read()"));
        let ended = ended.expect_code(1);
        ended.expect_said(&[
            line,
            problem,
            expected,
            "does not speak the worker protocol",
        ]);
    }
}

#[test]
fn a_worker_that_refuses_the_plainest_task_was_not_checked() {
    let ended = checked("say('refused', reason='only on Tuesdays')").expect_code(2);
    ended.expect_said(&["only on Tuesdays"]);
}
