//! The addresses of servers that run already, as options of a command: `--redis`, `--etcd` ….

use crate::services::{LockServers, Program};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use std::collections::BTreeMap;

/// `host:port` of each server, by the program that it runs.
#[derive(Clone, Debug, Default)]
pub struct ServerAddresses(BTreeMap<&'static str, Vec<String>>);

impl ServerAddresses {
    pub fn new(program: &'static str, servers: Vec<String>) -> ServerAddresses {
        ServerAddresses([(program, servers)].into())
    }

    /// Returns every address with the program that runs there.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, &String)> {
        let all = self.0.iter();
        all.flat_map(|(program, all)| all.iter().map(move |address| (*program, address)))
    }

    pub fn of(&self, kind: LockServers) -> &[String] {
        self.of_program(kind.program.name)
    }

    pub fn of_program(&self, program: &str) -> &[String] {
        self.0.get(program).map_or(&[], Vec::as_slice)
    }

    /// Returns the programs whose servers are named.
    pub fn programs(&self) -> impl Iterator<Item = &'static Program> {
        let all = Program::all().into_iter();
        all.filter(|program| !self.of_program(program.name).is_empty())
    }

    pub(super) fn environment(&self) -> BTreeMap<String, String> {
        let named = self.programs().map(|Program { name, .. }| {
            let servers = self.of_program(name).join(",");
            (format!("servers {name}"), servers)
        });
        named.collect()
    }
}

impl Args for ServerAddresses {
    fn augment_args(command: Command) -> Command {
        let options = Program::all().into_iter().map(|program| {
            Arg::new(program.name)
                .long(program.name)
                .help(program.about)
                .action(ArgAction::Append)
                .value_delimiter(',')
                .value_name("HOST:PORT")
        });
        command.args(options)
    }

    fn augment_args_for_update(command: Command) -> Command {
        ServerAddresses::augment_args(command)
    }
}

impl FromArgMatches for ServerAddresses {
    fn from_arg_matches(matches: &ArgMatches) -> Result<ServerAddresses, clap::Error> {
        let given = Program::all().into_iter().map(|program| {
            let servers = matches.get_many(program.name).unwrap_or_default();
            (program.name, servers.cloned().collect())
        });
        Ok(ServerAddresses(given.collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = ServerAddresses::from_arg_matches(matches)?;
        Ok(())
    }
}
