# The recipes only call cargo: whoever has no just can read the command here.

# Lists the recipes.
default:
    @just --list

# One scenario, from nothing to a verdict: just run-scenario pause-gt-ttl
run-scenario NAME *ARGS:
    cargo run --release -- run {{NAME}} {{ARGS}}

# Every test, those with real containers included. `cargo nextest run` does the same, but for
# the examples in the documentation: `cargo test --doc`.
test:
    cargo test

# The tests that need no Docker; the others fail without it.
test-without-docker:
    cargo test --workspace --lib --bins
    cargo test -p fencing-lock --all-features --test simulated
    cargo test --workspace --doc
    cargo test --test suite -- bad_input bless corpus diff environment fuzzing hostile large_records \
        oracle overview::the page::what schema::check screens shells tidy_house toxiproxy without_docker workflows yaml \
        --skip _lock:: --skip local_runtime:: --skip nightly:: --skip recorded::

# What `cargo test` shows as ignored because it takes minutes: the scenarios clock-drift,
# long-work, consul-cut-off-holder, dynamodb-lost-answer, dynamodb-slow-holder, mariadb-wait-timeout, zookeeper-leader-kill,
# zookeeper-minority-holder and zookeeper-session-expires, and storm at its full size; the kits for Go, Java,
# Node, PHP, Ruby and Rust and the lock in a Postgres in their containers.
test-slow:
    cargo test --test suite -- --ignored library::scenarios:: kits::

# One archive with the program, and its checksum, in target/dist/.
dist:
    cargo build --release
    .ci/dist

# The pictures of README.md and docs/tour.md, made from real runs.
pictures:
    cargo build --release
    .ci/pictures

# Build the image of the program itself, fencepost/tool.
image *ARGS:
    cargo build --release --locked
    docker build -t fencepost/tool {{ARGS}} .

# Formatting and clippy, warnings as errors.
lint:
    cargo fmt --check
    cargo clippy --all-targets --all-features -- -D warnings

# What is missing on this machine, and the command that mends it.
doctor:
    cargo run --release -- doctor

# Removes whatever earlier runs left behind or kept.
clean:
    cargo run --release -- clean

# Every scenario of faults, compared with results/baseline/: index.html, junit.xml and
# summary.md in results/; the exit code is the verdict.
nightly *ARGS:
    cargo run --release -- nightly {{ARGS}}

# Takes reviewed runs as the new baseline: just bless pause-gt-ttl, or all latest ones.
bless *ARGS:
    cargo run --release -- bless {{ARGS}}

# What `cargo test` leaves out or does a little of: 20 runs of every scenario on Docker, or N (it
# plays most of them on local processes, and those of `just test-slow` not at all); then the judge before ten million histories
# of the oracle (20 thousand there), the locks with a million tokens and ten thousand cancelled
# waits each (2 thousand and one thousand), 500 runs that are ended at random moments (20),
# ten million hostile inputs (8 thousand), and 100 thousand kills of the resource on a disk that
# fails (150).
soak N="20": && soak-judge soak-locks kill-campaign soak-fuzz soak-disk
    cargo run --release -- run --all --repeat {{N}}

# A search of each of our own locks that can be simulated, for LENGTH each: what every night does.
explore LENGTH="1m" SEED="1":
    .ci/explore {{LENGTH}} {{SEED}}

# A search for every defect of a lock that can be found: the table of docs/explore.md.
hunt:
    cargo test --profile hunt --test suite -- --ignored --nocapture explore::hunts

# A long search of the sound locks, a million tries each, or TRIES.
soak-explore TRIES="1000000":
    FENCEPOST_EXPLORE_TRIES={{TRIES}} cargo test --profile hunt --test suite -- --ignored --nocapture \
        explore::a_long explore::the_cases

# The judge before ten million histories of the oracle, or N.
soak-judge N="10000000":
    FENCEPOST_ORACLE_HISTORIES={{N}} cargo test --release --test suite -- --nocapture oracle::

# The tests of the lock library with the long counts.
soak-locks:
    FENCEPOST_SOAK=1 cargo test --release --test suite -- --nocapture _lock::

# Runs of every kind, ended at random moments: nothing of them is left. 500 times, or N.
kill-campaign N="500":
    FENCEPOST_KILLS={{N}} cargo test --release --test suite -- --nocapture kill_campaign::

# How many log rows a second the judge reads, beside the floor.
bench:
    cargo bench --bench judge

# The locks beside the bare commands and their peers: just bench-locks hot-key --pin 0
bench-locks *ARGS:
    cargo bench --features rslock --bench locks -- {{ARGS}}

# Durable writes a second of the resources, beside Redis and bare updates: just bench-resource http
bench-resource *ARGS:
    cargo bench --bench resource -- {{ARGS}}

# One connection through the Toxiproxy role, beside a bare copy and a direct one.
bench-toxiproxy *ARGS:
    cargo bench --bench toxiproxy -- {{ARGS}}

# How fast a Redis is filled, beside redis-benchmark: just bench-gen --keys 10M --rounds 3
bench-gen *ARGS:
    cargo bench --bench gen -- {{ARGS}}

# Every fuzz target for a minute, or S seconds, with a fuzzer that sees which code it
# reaches. Needs a nightly compiler and `cargo install cargo-fuzz`.
fuzz S="60":
    for target in $(cargo +nightly fuzz list); do \
        mkdir -p target/fuzz-found/$target; \
        cargo +nightly fuzz run --sanitizer none $target target/fuzz-found/$target fuzz/corpus/$target \
            -- -max_total_time={{S}} -timeout=20 -rss_limit_mb=2048 -max_len=65536 || exit 1; \
    done

# Ten million mutations of the corpus, or N, with any compiler.
soak-fuzz N="10000000":
    FENCEPOST_FUZZ_INPUTS={{N}} cargo test --release --test suite -- --nocapture fuzzing::

# Kills of the resource on a model of a disk that fails: 100 thousand, or N; a fifth as many syncs
# fail.
soak-disk N="100000":
    FENCEPOST_DISK_KILLS={{N}} cargo test --release --lib -- --nocapture resource::commit::campaign
