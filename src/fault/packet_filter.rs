//! A shell with iptables in the network of a node: drops packets there, and
//! counts what it dropped.

use super::attendants::Attendants;
use super::names::filter_of;
use crate::cluster::{Cluster, Console, ConsoleLine, Helper, PACKET_FILTER_IMAGE, Shared};
use crate::model::Name;
use std::sync::Arc;
use std::time::Duration;

const ANSWER_DEADLINE: Duration = Duration::from_secs(10);
/// Ends every answer of the shell, with the exit code behind it.
const END: &str = "fencepost-end";

pub struct PacketFilters {
    called: Attendants<Console>,
}

/// Everything of ours stands in a chain of its own, so that it can be removed
/// without knowing what is in it, and nobody else's rules are touched.
///
/// The gateway is spared: that is where the harness comes from, whose view of
/// the node must not depend on the fault. So is loopback, where the names come
/// from.
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
            called: Attendants::new(cluster, filter_of),
        }
    }

    /// Starts the helper and sees that it may do what it is there for.
    pub async fn call(&self, node: &Name) -> Result<(), String> {
        let allowed = self.run(node, "iptables -n -L INPUT").await;
        allowed.map(drop)
    }

    pub async fn lose(&self, node: &Name, percent: u8) -> Result<(), String> {
        self.run(node, &lose_script(percent)).await.map(drop)
    }

    /// How many packets were dropped so far.
    pub async fn lost(&self, node: &Name) -> Result<u64, String> {
        // Without the chain nothing is dropped.
        let listed = self.run(node, &format!("{COUNT}; true")).await?;
        Ok(dropped(&listed))
    }

    pub async fn clear(&self, node: &Name) -> Result<(), String> {
        self.run(node, CLEAR).await.map(drop)
    }

    /// Whether nothing of ours is there.
    pub async fn is_clear(&self, node: &Name) -> Result<bool, String> {
        let script = "iptables -n -L FENCEPOST >/dev/null 2>&1 && echo there; true";
        Ok(self.run(node, script).await?.is_empty())
    }

    pub async fn forget(&self, node: &Name) {
        self.called.forget(node).await;
    }

    pub async fn dismiss_all(&self) {
        self.called.dismiss_all().await;
    }

    /// What the shell printed; its errors are part of the message.
    async fn run(&self, node: &Name, script: &str) -> Result<String, String> {
        let place = self.called.beside(node);
        let mut place = place.lock().await;
        // Taken out while it is spoken to: one that was given up in the middle
        // would answer the next question with the answer to this one.
        let mut console = match place.take() {
            Some(console) => console,
            None => {
                let started = self
                    .called
                    .start(&helper(node, vec!["sh".to_owned()]))
                    .await;
                started.map_err(|error| error.to_string())?
            }
        };
        let answered = tokio::time::timeout(ANSWER_DEADLINE, converse(&mut console, script)).await;
        let silent = |_| format!("the packet filter beside {node} gave no answer");
        let answered = answered.map_err(silent)?;
        *place = Some(console);
        answered
    }
}

async fn converse(console: &mut Console, script: &str) -> Result<String, String> {
    let asked = format!("{{ {script}\n}}; echo {END} $?");
    let said = console.stdin.say(&asked).await;
    said.map_err(|error| error.to_string())?;
    let (mut out, mut errors) = (String::new(), String::new());
    while let Some(line) = console.lines.recv().await {
        match line {
            ConsoleLine::Out(line) => match line.strip_prefix(END) {
                Some(code) if code.trim() == "0" => return Ok(out),
                Some(code) => return Err(format!("exit code {}: {}", code.trim(), errors.trim())),
                None => out.extend([line.as_str(), "\n"]),
            },
            ConsoleLine::Err(line) => errors.extend([line.as_str(), " "]),
        }
    }
    Err(format!("the packet filter ended: {}", errors.trim()))
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
