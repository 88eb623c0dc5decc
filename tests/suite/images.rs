//! The images that the program makes of itself and of its servers.

use crate::support::*;
use std::time::{Duration, Instant};

#[test]
fn images_are_made_once_and_named_by_their_content() {
    // Alone: another test may be making an image of its own, and this would wait for it.
    let _turn = docker_alone();
    // Taking the turn has made them.
    let started_at = Instant::now();
    let first = fencepost(&["images"]).expect_code(0);
    let took = started_at.elapsed();
    assert!(
        took < Duration::from_secs(30),
        "nothing to make, in {took:?}"
    );
    assert!(!first.stderr.contains("building"), "{first}");
    let again = fencepost(&["images"]).expect_code(0);
    assert_eq!(again.stdout, first.stdout);

    let id_of = |name: &str| {
        let lines = first.stdout.lines();
        let ids: Vec<&str> = lines.filter_map(|line| line.strip_prefix(name)).collect();
        assert_eq!(ids.len(), 1, "{name} is printed once: {first}");
        ids[0].trim().to_owned()
    };
    let tags = |id: &str| docker_ok(&["inspect", "-f", "{{.RepoTags}}", id]);
    let own = tags(&id_of("fencepost/self:latest"));
    let by_hash = own.trim_matches(['[', ']']).split(' ').any(|tag| {
        let hash = tag
            .strip_prefix("fencepost/self:latest-")
            .unwrap_or_default();
        hash.len() == 12 && hash.chars().all(|c| c.is_ascii_hexdigit())
    });
    assert!(by_hash, "{own}");
    for name in [
        "fencepost/redis:7.0",
        "fencepost/etcd:3.5",
        "fencepost/netfilter:1.8",
    ] {
        let server = tags(&id_of(name));
        assert!(server.contains(&format!("{name}-")), "{server}");
    }
}

#[test]
fn the_plain_tag_comes_back_from_another_build() {
    let _turn = docker_alone();
    let own = "fencepost/self:latest";
    // As if another build of the program had been the last to make its image.
    docker_ok(&["tag", "fencepost/redis:7.0", own]);
    let printed = fencepost(&["images"]).expect_code(0).stdout;
    let now = docker_ok(&["inspect", "-f", "{{.Id}}", own]);
    assert!(printed.contains(&format!("{own}  {now}")), "{printed}");
}

#[test]
fn the_doctor_finds_everything_once_images_are_there() {
    let _turn = docker_shared();
    let ended = fencepost(&["doctor"]).expect_code(0);
    let ended = ended.expect_said(&[
        "ok      Docker Engine",
        "ok      images of the topology redis\n",
        "ok      images of the topology redlock\n",
        "ok      images of the topology etcd\n",
        "ok      image of the proxies\n",
        "ok      image of the packet filters\n",
    ]);
    assert!(!ended.stdout.contains("MISSING"), "{ended}");
}
