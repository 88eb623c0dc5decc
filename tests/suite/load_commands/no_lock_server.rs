//! Loads at servers that speak the protocol and are no lock servers.

use crate::support::*;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

/// Gives every command the same answer; ends with the process.
fn answering(answer: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            thread::spawn(move || serve(client, answer));
        }
    });
    address
}

fn serve(client: TcpStream, answer: &str) -> Option<()> {
    let mut answers = client.try_clone().ok()?;
    let mut commands = BufReader::new(client);
    loop {
        for _ in 0..number(&mut commands, '*')? {
            let length = number(&mut commands, '$')?;
            let mut word = vec![0; length + 2];
            commands.read_exact(&mut word).ok()?;
        }
        answers.write_all(answer.as_bytes()).ok()?;
    }
}

/// Of a line such as `*3`.
fn number(commands: &mut impl BufRead, kind: char) -> Option<usize> {
    let mut line = String::new();
    commands.read_line(&mut line).ok()?;
    line.trim_end().strip_prefix(kind)?.parse().ok()
}

#[test]
fn a_server_that_says_yes_to_everything_does_not_pass_for_a_lock() {
    for answer in [":1\r\n", ":9223372036854775807\r\n"] {
        let results = fresh_folder("yes-to-everything");
        let results = results.to_str().expect("a readable path");
        let server = answering(answer);
        let load = format!(
            "contend --redis {server} --contenders 20 --rate 100 --duration 2s --timeout 1s --results {results}"
        );
        let arguments: Vec<&str> = load.split_whitespace().collect();
        let ended = offline(&arguments);
        ended
            .expect_code(69)
            .expect_said(&["an answer to something else"]);
    }
}

#[test]
fn a_server_that_does_not_say_what_it_holds_is_not_measured() {
    let results = fresh_folder("no-info");
    let results = results.to_str().expect("a readable path");
    for answer in [":1\r\n", "$0\r\n\r\n"] {
        let server = answering(answer);
        let keyspace =
            format!("keyspace --redis {server} --keys 500 --watch 1s --ttl 2s --results {results}");
        let fill = format!("gen --redis {server} --keys 500 --ttl 2s --restart");
        for command in [keyspace, fill] {
            let arguments: Vec<&str> = command.split_whitespace().collect();
            let ended = offline(&arguments);
            ended.expect_code(69).expect_said(&["but no Redis"]);
        }
    }
}

/// It would take a gigabyte, or the patience of every deadline.
#[test]
fn an_answer_that_is_too_long_ends_a_load_at_once() {
    let results = fresh_folder("too-long");
    let results = results.to_str().expect("a readable path");
    let server = answering("$536870912\r\n");
    for command in ["keyspace --keys 500 --watch 1s", "contend --duration 2s"] {
        let command = format!("{command} --redis {server} --results {results}");
        let arguments: Vec<&str> = command.split_whitespace().collect();
        let ended = offline(&arguments).expect_code(69);
        ended.expect_said(&["an answer of the server is too long to be one"]);
    }
}

#[test]
fn a_password_in_a_malformed_address_is_not_repeated() {
    let somebody = answering("+OK\r\n");
    for command in [
        "gen --keys 1 --redis redis://:s3cretpw@127.0.0.1:x",
        &format!("contend --redis {somebody} --resource ftp://u:s3cretpw@h"),
        "contend --redis redis://:s3cretpw@127.0.0.1:x",
    ] {
        let arguments: Vec<&str> = command.split_whitespace().collect();
        let ended = offline(&arguments).expect_code(64);
        let said = ended.stdout + &ended.stderr;
        assert!(!said.contains("s3cretpw"), "{said}");
    }
}
