//! The listening sockets of processes, as the kernel reports them.
//!
//! A held port is free for every process that asks for it by number, those of other users included.
//! So a node is ready only if the sockets at its ports are its own, whatever it reports; and it is
//! on loopback only if all of its sockets are, whatever it was told.

use super::*;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv6Addr};

/// A listening TCP socket: its address, and the inode number of its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Listener {
    address: SocketAddr,
    inode: u64,
}

/// Returns why clients of `ports` would find other processes than these, or why other machines
/// would reach these.
pub fn objection(processes: &[u32], ports: &[SocketAddr]) -> io::Result<Option<String>> {
    let mut own = BTreeSet::new();
    for pid in processes {
        own.extend(sockets_of(*pid)?);
    }
    let all = listeners()?;
    let is_own = |listener: &&Listener| own.contains(&listener.inode);
    let open = all.iter().filter(is_own);
    let mut open = open.filter(|listener| !listener.address.ip().is_loopback());
    if let Some(Listener { address, .. }) = open.next() {
        return Ok(Some(format!(
            "it listens at {address}, where other machines reach it; have it listen on 127.0.0.1"
        )));
    }
    let mut others = all.iter().filter(|listener| !is_own(listener));
    let taken = others.find(|other| ports.contains(&other.address));
    Ok(taken.map(|taken| format!("somebody else listens at its port, {}", taken.address)))
}

/// Returns the inode numbers of all sockets that a process has open; none if it has ended.
fn sockets_of(pid: u32) -> io::Result<Vec<u64>> {
    let files = match fs::read_dir(format!("/proc/{pid}/fd")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        files => files?,
    };
    let sockets = files.filter_map(|file| {
        let target = fs::read_link(file.ok()?.path()).ok()?;
        let number = target.to_str()?.strip_prefix("socket:[")?;
        number.strip_suffix(']')?.parse().ok()
    });
    Ok(sockets.collect())
}

fn listeners() -> io::Result<Vec<Listener>> {
    let mut all: Vec<Listener> = fs::read_to_string("/proc/net/tcp")?
        .lines()
        .filter_map(listener)
        .collect();
    // There may be no IPv6 here.
    if let Ok(more) = fs::read_to_string("/proc/net/tcp6") {
        all.extend(more.lines().filter_map(listener));
    }
    Ok(all)
}

/// Parses `0: 0100007F:1F90 00000000:0000 0A … UID TIMEOUT INODE …`; None for a socket that does
/// not listen.
fn listener(line: &str) -> Option<Listener> {
    const LISTENS: &str = "0A";
    let mut fields = line.split_whitespace();
    let (ip, port) = fields.nth(1)?.split_once(':')?;
    if fields.nth(1)? != LISTENS {
        return None;
    }
    Some(Listener {
        address: SocketAddr::new(address(ip)?, u16::from_str_radix(port, 16).ok()?),
        inode: fields.nth(5)?.parse().ok()?,
    })
}

/// Parses words of 32 bits, each in this machine's byte order.
fn address(hex: &str) -> Option<IpAddr> {
    let word = |at: usize| {
        let word = u32::from_str_radix(hex.get(at * 8..at * 8 + 8)?, 16).ok()?;
        Some(word.to_ne_bytes())
    };
    if hex.len() == 8 {
        return Some(Ipv4Addr::from(word(0)?).into());
    }
    let mut bytes = [0; 16];
    for (at, part) in bytes.chunks_exact_mut(4).enumerate() {
        part.copy_from_slice(&word(at)?);
    }
    let ip = Ipv6Addr::from(bytes);
    Some(ip.to_ipv4_mapped().map_or(ip.into(), IpAddr::from))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::process::{Command, Stdio};

    #[test]
    fn listeners_are_read_as_the_kernel_writes_them() {
        let line = "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4711 1 0 100 0 0 10 0";
        let read = listener(line).unwrap();
        assert_eq!(read.address.to_string(), "127.0.0.1:8080");
        assert_eq!(read.inode, 4711);
        assert_eq!(listener(&line.replace(" 0A ", " 01 ")), None);
        let every = address("00000000000000000000000000000000").unwrap();
        assert_eq!(every, IpAddr::from(Ipv6Addr::UNSPECIFIED));
        let own = address("00000000000000000000000001000000").unwrap();
        assert_eq!(own, IpAddr::from(Ipv6Addr::LOCALHOST));
        let mapped = address("0000000000000000FFFF00000100007F").unwrap();
        assert!(mapped.is_loopback(), "{mapped}");
        assert_eq!(listener("sl  local_address rem_address   st"), None);
    }

    #[test]
    fn a_port_belongs_to_whoever_listens_there() {
        let us = [std::process::id()];
        let here = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = [here.local_addr().unwrap()];
        assert_eq!(objection(&us, &port).unwrap(), None);

        let mut somebody = Command::new("sleep");
        let mut somebody = somebody.arg("1000").stdin(Stdio::null()).spawn().unwrap();
        let why = objection(&[somebody.id()], &port).unwrap().unwrap();
        somebody.kill().unwrap();
        somebody.wait().unwrap();
        assert!(why.contains("somebody else listens"), "{why}");
        drop(here);
        // A child that another test has just forked has the socket too, until it is a program
        // of its own.
        let give_up_at = std::time::Instant::now() + Duration::from_secs(30);
        while let Some(why) = objection(&us, &port).unwrap() {
            assert!(std::time::Instant::now() < give_up_at, "{why}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
