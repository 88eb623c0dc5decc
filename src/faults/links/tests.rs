use super::*;

fn link(from: &str, to: &str) -> Link {
    let (from, to) = (from.into(), to.into());
    Link { from, to }
}

fn pattern(from: Option<&str>, to: Option<&str>) -> LinkScope {
    LinkScope::Matching(vec![LinkPattern {
        from: from.map(str::to_owned),
        to: to.map(str::to_owned),
    }])
}

#[test]
fn a_partition_cuts_what_crosses_it_and_spares_the_bridge() {
    let group = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    let scope = LinkScope::Between(vec![group(&["a", "e1"]), group(&["b", "e2"])]);
    let cut = |from, to| !streams_of(&link(from, to), &to.into(), &scope, Streams::Both).is_empty();
    assert!(cut("a", "e2") && cut("b", "e1") && cut("e1", "e2") && cut("e2", "e1"));
    assert!(!cut("a", "e1") && !cut("a", "e3") && !cut("e3", "e2"));
}

#[test]
fn data_of_one_direction_goes_over_connections_of_both() {
    let scope = pattern(Some("e1"), Some("e2"));
    let held = |from, to| streams_of(&link(from, to), &to.into(), &scope, Streams::Data);
    assert_eq!(held("e1", "e2"), [Stream::Upstream]);
    assert_eq!(held("e2", "e1"), [Stream::Downstream]);
    assert!(held("e1", "e3").is_empty());
}

#[test]
fn connections_are_held_in_the_direction_they_are_made() {
    let scope = pattern(Some("a"), None);
    let held = |from, to| streams_of(&link(from, to), &to.into(), &scope, Streams::Both);
    assert_eq!(held("a", "redis"), Stream::ALL);
    assert!(held("b", "redis").is_empty());
}
