use super::*;

fn thaw(node: &str) -> Debt {
    let node = node.into();
    Debt::Thaw { node }
}

fn head_of_somebody_dead() -> String {
    let label = Owner::current().to_label();
    let own_pid = format!("/{}/", std::process::id());
    let head = Line::Head {
        run: "r1".into(),
        owner: label.replace(&own_pid, "/2147483647/"),
        attached: BTreeMap::new(),
    };
    serde_json::to_string(&head).unwrap()
}

fn left(path: &Path) -> Left {
    Left::read(path).unwrap().unwrap()
}

#[test]
fn a_journal_says_what_is_still_owed_and_is_gone_when_nothing_is() {
    let folder = tempfile::tempdir().unwrap();
    let journal = Journal::new(folder.path(), &"r1".into());
    journal.owe(1, &[thaw("a")]).unwrap();
    journal.owe(2, &[thaw("b")]).unwrap();
    journal.paid(1);
    let path = folder.path().join("r1.jsonl");
    assert_eq!(Left::read(&path), Ok(None), "its owner lives");

    // The same journal, written by somebody who has died.
    let text = fs::read_to_string(&path).unwrap();
    let (_, rest) = text.split_once('\n').unwrap();
    let head = head_of_somebody_dead();
    fs::write(&path, format!("{head}\n{rest}{{\"id\":3,\"deb")).unwrap();
    assert_eq!(left(&path).debts, [thaw("b")]);

    journal.close();
    assert!(!path.exists());
}

#[test]
fn a_journal_is_for_this_user_alone() {
    use std::os::unix::fs::PermissionsExt;
    let state = tempfile::tempdir().unwrap();
    let folder = state.path().join("faults");
    Journal::new(&folder, &"r1".into())
        .owe(1, &[thaw("a")])
        .unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    assert_eq!(mode(&folder.join("r1.jsonl")), 0o600);
}

#[test]
fn what_a_journal_would_not_say_is_not_believed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r1.jsonl");
    let head = head_of_somebody_dead();
    let owed = serde_json::to_string(&Line::Owed {
        id: 1,
        debts: vec![thaw("a")],
    });
    let owed = owed.unwrap();
    for text in [
        format!("{head}\n{owed}\n{{\"undo\":\"everything\"}}\n"),
        format!("{owed}\n{head}\n"),
        "somebody's notes\n".to_owned(),
    ] {
        fs::write(&path, &text).unwrap();
        assert!(Left::read(&path).is_err(), "{text}");
    }
    fs::remove_file(&path).unwrap();
    let elsewhere = folder.path().join("elsewhere");
    fs::write(&elsewhere, format!("{head}\n{owed}\n")).unwrap();
    assert_eq!(left(&elsewhere).debts, [thaw("a")]);
    std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
    assert!(Left::read(&path).is_err(), "a link is not followed");
}

#[test]
fn a_journal_that_was_never_begun_goes_when_it_is_old() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r1.jsonl");
    let file = File::create(&path).unwrap();
    assert_eq!(Left::read(&path), Ok(None));
    assert!(!was_never_begun(&path), "it may just be begun");
    let then = std::time::SystemTime::now() - 2 * UNFINISHED_FOR;
    file.set_modified(then).unwrap();
    assert!(was_never_begun(&path));
}

#[test]
fn what_is_no_name_is_not_read() {
    for line in [
        r#"{"run":"../x","owner":""}"#,
        r#"{"id":1,"debts":[{"undo":"filters","node":"/../somebody-elses"}]}"#,
        r#"{"id":1,"debts":[{"undo":"links","source":"a/b"}]}"#,
    ] {
        assert!(serde_json::from_str::<Line>(line).is_err(), "{line}");
    }
}
