use super::*;
use clap::{ArgAction, Args};
use std::env::VarError;
use std::ffi::OsString;
use toxiproxy_server::server::{self, LogLevel, Settings, VERSION, read_config};

const AUTH_TOKEN: &str = "TOXIPROXY_AUTH_TOKEN";

/// Flags may have one dash or two, as those of the original.
#[derive(Args)]
pub struct Toxiproxy {
    /// Host that the API listens on
    #[arg(long, default_value = "localhost")]
    host: String,
    /// Port of the API; 0 lets the system choose
    #[arg(long, default_value_t = 8474)]
    port: u16,
    /// File with a JSON array of proxies to start with, which may have toxics
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Count the bytes of proxies at /metrics
    #[arg(long, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true")]
    proxy_metrics: bool,
    /// Show tasks and open files at /metrics
    #[arg(long, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true")]
    runtime_metrics: bool,
    /// Seed of toxicity, jitter and sizes [default: random]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = seed)]
    seed: Option<u64>,
    /// How much to log on stderr: error, warn, info or debug
    #[arg(long, env = "LOG_LEVEL", default_value = "info", value_name = "LEVEL")]
    log_level: LogLevel,
    /// Print the version of Toxiproxy that this stands in for
    #[arg(long)]
    version: bool,
}

impl Toxiproxy {
    pub async fn execute(self) -> Result<Exit, Failure> {
        if self.version {
            output::line(format_args!("toxiproxy-server version {VERSION}"))?;
            return Ok(Exit::AsExpected);
        }
        let proxies = self.config.as_deref().map(read_config).transpose();
        let settings = Settings {
            seed: self.seed,
            proxy_metrics: self.proxy_metrics,
            runtime_metrics: self.runtime_metrics,
            log: self.log_level,
            auth_token: auth_token()?,
            proxies: proxies.map_err(Failure::usage)?.unwrap_or_default(),
            ..Settings::default()
        };
        let shutdown = interrupt::end()?;
        let listen = match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        };
        let listener = server::bind(&listen)
            .await
            .map_err(|error| Failure::harness(format!("{error}; choose another -host or -port")))?;
        let address = listener.local_addr().map_err(Failure::harness)?;
        let opened = server::open(settings).await.map_err(Failure::harness)?;
        // A program that waits for this line may rely on every proxy of the config.
        output::line(format_args!("toxiproxy listening on {address}"))?;
        opened.serve(listener, shutdown).await;
        Ok(Exit::AsExpected)
    }
}

/// Returns the token of the environment, where the original takes it from. An empty one counts as none.
fn auth_token() -> Result<Option<String>, Failure> {
    match std::env::var(AUTH_TOKEN) {
        Ok(token) => Ok(Some(token).filter(|token| !token.is_empty())),
        Err(VarError::NotPresent) => Ok(None),
        Err(VarError::NotUnicode(_)) => {
            let reason = "it is not UTF-8; choose another token";
            Err(Failure::usage(format!("cannot use {AUTH_TOKEN}: {reason}")))
        }
    }
}

/// Adds a second dash to single-dash flags after `toxiproxy`, for clap. The original is a Go
/// program, and its users write `-host`.
pub fn with_two_dashes(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut is_ours = false;
    let with_two = |argument: OsString| {
        is_ours |= argument == "toxiproxy";
        match argument.to_str() {
            Some(flag) if is_ours && is_go_flag(flag) => format!("-{flag}").into(),
            _ => argument,
        }
    };
    arguments.map(with_two).collect()
}

/// Returns whether this is a dash and a name: `-1` is a number, and `-h` is clap's own.
fn is_go_flag(argument: &str) -> bool {
    let name = argument.strip_prefix('-').unwrap_or_default();
    let mut letters = name.chars();
    let begins = letters.next().is_some_and(|c| c.is_ascii_lowercase());
    begins && letters.next().is_some_and(|c| c.is_ascii_lowercase())
}

/// Parses a seed, which may be negative as in the original.
fn seed(text: &str) -> Result<u64, String> {
    let signed = text.parse::<i64>().map(|seed| seed as u64);
    let seed = signed.or_else(|_| text.parse::<u64>());
    seed.map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_of_go_get_a_second_dash_and_others_stay() {
        let given = "fencepost -home x toxiproxy -host 0.0.0.0 -port=1 --config f -seed -1 -h";
        let given = given.split(' ').map(OsString::from);
        let wanted = "fencepost -home x toxiproxy --host 0.0.0.0 --port=1 --config f --seed -1 -h";
        let wanted: Vec<OsString> = wanted.split(' ').map(OsString::from).collect();
        assert_eq!(with_two_dashes(given), wanted);
    }

    #[test]
    fn a_seed_may_be_negative_as_the_original_has_it() {
        assert_eq!(seed("7"), Ok(7));
        assert_eq!(seed("-1"), Ok(u64::MAX));
        assert!(seed("x").is_err());
    }
}
