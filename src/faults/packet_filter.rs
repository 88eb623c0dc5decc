//! A shell with iptables in the network of a node: it drops packets there and counts them.

use super::attendants::Attendants;
use super::*;
use crate::cluster::{ConsoleLine, PACKET_FILTER_IMAGE};

const ANSWER_DEADLINE: Duration = Duration::from_secs(10);
/// The marker that ends every answer of the shell, followed by the exit code.
const END: &str = "fencepost-end";

pub fn filter_of(node: &Name) -> Name {
    node.behind("packets")
}

pub struct PacketFilters {
    pub called: Attendants<Console>,
    cluster: Arc<dyn Cluster>,
}

/// All our rules are in one chain, so that they can be removed without knowing them, and
/// nobody else's rules are touched.
///
/// Packets of the gateway are not dropped: the harness comes from there, and its view of the
/// node must not depend on the fault. Packets of loopback are not dropped either, because names
/// are resolved there.
fn lose_script(percent: u8) -> String {
    let share = f64::from(percent) / 100.0;
    format!(
        r#"gateway=$(while read -r _ destination gateway _; do
  [ "$destination" = 00000000 ] && printf '%d.%d.%d.%d' 0x${{gateway#??????}} 0x$(expr substr $gateway 5 2) 0x$(expr substr $gateway 3 2) 0x$(expr substr $gateway 1 2)
done < /proc/net/route)
{clear}
iptables -N FENCEPOST &&
iptables -A FENCEPOST -i lo -j RETURN && iptables -A FENCEPOST -o lo -j RETURN &&
iptables -A FENCEPOST -s "$gateway" -j RETURN && iptables -A FENCEPOST -d "$gateway" -j RETURN &&
iptables -A FENCEPOST -m statistic --mode random --probability {share} -j DROP &&
iptables -I INPUT -j FENCEPOST && iptables -I OUTPUT -j FENCEPOST
"#,
        clear = CLEAR
    )
}

pub const CLEAR: &str = "iptables -D INPUT -j FENCEPOST 2>/dev/null; iptables -D OUTPUT -j FENCEPOST 2>/dev/null; iptables -F FENCEPOST 2>/dev/null; iptables -X FENCEPOST 2>/dev/null; ! iptables -n -L FENCEPOST >/dev/null 2>&1";
const COUNT: &str = "iptables -n -v -x -L FENCEPOST 2>/dev/null";

pub fn helper(node: &Name, command: Vec<String>) -> Helper {
    Helper {
        name: filter_of(node),
        image: PACKET_FILTER_IMAGE.to_owned(),
        command,
        beside: node.to_owned(),
        shares: Shared::NetworkWithFilters,
    }
}

impl PacketFilters {
    pub fn new(cluster: Arc<dyn Cluster>) -> PacketFilters {
        PacketFilters {
            called: Attendants::new(Arc::clone(&cluster), filter_of),
            cluster,
        }
    }

    /// Starts the helper and checks that it may use iptables.
    pub async fn call(&self, node: &Name) -> Proof {
        if self.cluster.played().is_some() {
            return Ok(());
        }
        let allowed = self.run(node, "iptables -n -L INPUT").await;
        allowed.map(drop)
    }

    pub async fn lose(&self, node: &Name, percent: u8) -> Proof {
        if let Some(played) = self.cluster.played() {
            return Ok(played.lose_packets(node, percent)?);
        }
        self.run(node, &lose_script(percent)).await.map(drop)
    }

    pub async fn lost(&self, node: &Name) -> Proof<u64> {
        if let Some(played) = self.cluster.played() {
            return Ok(played.lost_packets(node).unwrap_or_default());
        }
        // Without the chain nothing is dropped.
        let listed = self.run(node, &format!("{COUNT}; true")).await?;
        Ok(dropped(&listed))
    }

    pub async fn clear(&self, node: &Name) -> Proof {
        if let Some(played) = self.cluster.played() {
            return Ok(played.lose_packets(node, 0)?);
        }
        self.run(node, CLEAR).await.map(drop)
    }

    pub async fn is_clear(&self, node: &Name) -> Proof<bool> {
        if let Some(played) = self.cluster.played() {
            return Ok(played.lost_packets(node).is_none());
        }
        let script = "iptables -n -L FENCEPOST >/dev/null 2>&1 && echo there; true";
        Ok(self.run(node, script).await?.is_empty())
    }

    /// Returns the output of the shell; its error output is part of the error.
    async fn run(&self, node: &Name, script: &str) -> Proof<String> {
        let place = self.called.beside(node);
        let mut place = place.lock().await;
        // The console is taken out while it is in use: one that was given up in the middle would
        // answer the next question with the answer to this one.
        let mut console = match place.take() {
            Some(console) => console,
            None => {
                let helper = helper(node, vec!["sh".to_owned()]);
                self.called.start(&helper).await?
            }
        };
        let answered = tokio::time::timeout(ANSWER_DEADLINE, converse(&mut console, script)).await;
        let silent = |_| failed(format!("the packet filter beside {node} gave no answer"));
        let answered = answered.map_err(silent)?;
        *place = Some(console);
        answered
    }
}

async fn converse(console: &mut Console, script: &str) -> Proof<String> {
    let asked = format!("{{ {script}\n}}; echo {END} $?");
    let said = console.stdin.say(&asked).await;
    said.map_err(|error| failed(error.to_string()))?;
    let (mut out, mut errors) = (String::new(), String::new());
    while let Some(line) = console.lines.recv().await {
        match line {
            ConsoleLine::Out(line) => match line.strip_prefix(END) {
                Some(code) if code.trim() == "0" => return Ok(out),
                Some(code) => {
                    let (code, errors) = (code.trim(), errors.trim());
                    return Err(failed(format!("exit code {code}: {errors}")));
                }
                None => out.extend([line.as_str(), "\n"]),
            },
            ConsoleLine::Err(line) => errors.extend([line.as_str(), " "]),
        }
    }
    let errors = errors.trim();
    Err(failed(format!("the packet filter ended: {errors}")))
}

fn failed(error: String) -> UnprovenReason {
    UnprovenReason::PacketFilter { error }
}

fn dropped(listed: &str) -> u64 {
    let rules = listed.lines().filter(|line| line.contains("DROP"));
    let counts = rules.filter_map(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    counts.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_dropped_is_read_from_the_list() {
        let listed = "Chain FENCEPOST (2 references)\n    pkts      bytes target     prot opt in     out     source               destination\n       4      240 RETURN     all  --  lo     *       0.0.0.0/0            0.0.0.0/0\n      17     1020 DROP       all  --  *      *       0.0.0.0/0            0.0.0.0/0            statistic mode random probability 0.3\n";
        assert_eq!(dropped(listed), 17);
        assert_eq!(dropped(""), 0);
    }
}
