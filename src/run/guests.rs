//! The servers of somebody else that a case uses: looked at before anything is written, and left
//! without the keys of the case.

use super::case::CaseRun;
use super::*;
use crate::cluster::{FoundServer, find_server};
use crate::faults::GuestDebt;
use crate::faults::journal::{Debt, Journal};
use crate::model::{Attach, AttachedServer};
use crate::services::{Guest, Sighting, Visit};
use std::collections::BTreeSet;

/// Everything that a case has at attached servers.
#[derive(Default)]
pub struct Guests {
    pub stays: Vec<Stay>,
    /// What another process has to remove if this one dies.
    journal: Option<Journal>,
    debts: u32,
}

/// A case at one server.
pub struct Stay {
    pub name: Name,
    pub found: FoundServer,
    pub visit: Visit,
    /// The reason why nobody can watch it.
    pub unwatched: Option<String>,
    sighting: Sighting,
    /// The value that its setting had, and the one that this case has given it.
    setting_changed: Option<(String, String)>,
}

impl CaseRun<'_> {
    /// Makes a place for the keys of this case at every attached server. What is owed is on disk
    /// before anything is written.
    pub async fn move_in(&self, cluster: &dyn Cluster, guests: &mut Guests) -> RunResult {
        let setup = &self.case.setup;
        let program = setup.lock.backend.servers().program;
        let (Some(attach), Some(guest)) = (&setup.attach, program.guest) else {
            return Ok(());
        };
        let prefix = prefix_of(&self.run);
        let journal = Journal::new(self.lab.journals, &self.run.behind("guest"));
        guests.journal = Some(journal);
        for (name, server) in &attach.servers {
            let found = find(attach, name, server).await?;
            let visit = guest.visit(server, &found.address.to_string(), &prefix);
            let visit = visit.map_err(|reason| cannot("use", name, reason))?;
            let seen = visit.look().await;
            let sighting = seen.map_err(|reason| cannot("use", name, reason))?;
            // A fault may have started it anew.
            if !found.may_be_faulted {
                let same = self.lab.groundwork.meet(server, &sighting.identity);
                same.map_err(|reason| cannot("use", name, reason))?;
            }
            cluster.attach(name, &found).await?;
            let debt = GuestDebt {
                program: program.name.to_owned(),
                server: server.at(found.address),
                prefix: prefix.clone(),
                setting: None,
                ours: None,
            };
            guests.owe(&debt)?;
            guests.stays.push(Stay {
                name: name.clone(),
                found,
                visit,
                unwatched: None,
                sighting,
                setting_changed: None,
            });
            guests
                .settle_in(guest, attach, debt, setup.worker.is_ours())
                .await?;
        }
        Ok(())
    }
}

impl Guests {
    /// Returns the found servers by name.
    pub fn found(&self) -> BTreeMap<Name, FoundServer> {
        let stays = self.stays.iter();
        stays
            .map(|stay| (stay.name.clone(), stay.found.clone()))
            .collect()
    }

    fn owe(&mut self, debt: &GuestDebt) -> RunResult {
        self.debts += 1;
        let Some(journal) = &self.journal else {
            return Ok(());
        };
        let owed = journal.owe(self.debts, &[Debt::Guest(debt.clone())]);
        owed.map_err(|reason| RunError::Attached {
            reason: reason.to_string(),
        })
    }

    /// Makes the place of the latest stay, and finds out whether the server can be watched.
    async fn settle_in(
        &mut self,
        guest: &Guest,
        attach: &Attach,
        mut debt: GuestDebt,
        is_ours: bool,
    ) -> RunResult {
        let Some(stay) = self.stays.last_mut() else {
            return Ok(());
        };
        let name = stay.name.clone();
        let begun = stay.visit.begin().await;
        begun.map_err(|reason| cannot("make a place for keys at", &name, reason))?;
        let setting = stay.visit.setting().await;
        stay.unwatched = unwatched(guest, attach, &name, &setting, is_ours);
        let (Some(known), Ok(Some(value))) = (&guest.setting, setting) else {
            return Ok(());
        };
        if (known.is_enough)(&value) || !attach.may_be_set(&name) {
            return Ok(());
        }
        let enough = (known.enough)(&value);
        stay.setting_changed = Some((value.clone(), enough.clone()));
        debt.setting = Some(value);
        debt.ours = Some(enough.clone());
        self.owe(&debt)?;
        let set = match self.stays.last() {
            Some(stay) => stay.visit.set(&enough).await,
            None => Ok(()),
        };
        set.map_err(|reason| cannot("change a setting of", &name, reason))
    }

    /// Removes the keys of the case, and puts settings back. Returns why the record is incomplete,
    /// if a server was not the same all the time.
    pub async fn leave(mut self, attach: Option<&Attach>) -> RunResult<Vec<String>> {
        let (mut gaps, mut problems) = (Vec::new(), Vec::new());
        for stay in self.stays.iter_mut().rev() {
            let name = &stay.name;
            // A container that was started again may have another address.
            if stay.found.container.is_some()
                && let Some(server) = attach.and_then(|attach| attach.servers.get(name))
                && let Ok(found) = find_server(&server.place).await
                && let Ok(visit) = stay.visit.moved_to(&found.address.to_string())
            {
                stay.visit = visit;
            }
            let is_faulted = attach.is_some_and(|attach| attach.may_be_faulted(name));
            match stay.visit.look().await {
                Ok(seen) if is_faulted || seen.identity == stay.sighting.identity => {}
                Ok(_) => gaps.push(format!(
                    "{name} was another server at the end than at the beginning: it was started anew, or its address leads elsewhere"
                )),
                Err(reason) => gaps.push(format!("{name} did not answer at the end: {reason}")),
            }
            if let Some((before, ours)) = &stay.setting_changed
                && let Err(reason) = stay.visit.put_back(before, ours).await
            {
                problems.push(format!(
                    "cannot set a setting of {name} to `{before}` again: {reason}"
                ));
            }
            if let Err(reason) = stay.visit.remove().await {
                problems.push(format!(
                    "cannot remove the keys with {} from {name}: {reason}",
                    stay.visit.prefix
                ));
            }
        }
        if problems.is_empty() {
            self.journal.iter().for_each(Journal::close);
            return Ok(gaps);
        }
        problems.push("`fencepost clean` tries again".to_owned());
        Err(RunError::NotHealed(problems))
    }
}

/// Returns why nobody can watch a server whose setting has this value.
fn unwatched(
    guest: &Guest,
    attach: &Attach,
    name: &Name,
    setting: &Result<Option<String>, String>,
    is_ours: bool,
) -> Option<String> {
    if !is_ours && !guest.sees_others {
        return Some("locks of other libraries cannot be seen there".to_owned());
    }
    match (&guest.setting, setting) {
        (_, Err(reason)) => Some(reason.clone()),
        (Some(known), Ok(Some(value))) if !(known.is_enough)(value) && !attach.may_be_set(name) => {
            Some(format!(
                "its {} is `{value}`; set it to `{}`, or write `allow_settings_on: [{name}]` beside `attach`",
                known.name,
                (known.enough)(value),
            ))
        }
        (_, Ok(_)) => None,
    }
}

/// Returns how the keys of a run begin at servers of somebody else's.
fn prefix_of(run: &str) -> String {
    format!("fencepost-{run}-")
}

async fn find(attach: &Attach, name: &Name, server: &AttachedServer) -> RunResult<FoundServer> {
    let found = find_server(&server.place).await?;
    Ok(FoundServer {
        may_be_faulted: attach.may_be_faulted(name),
        ..found
    })
}

fn cannot(what: &str, name: &Name, reason: String) -> RunError {
    RunError::Attached {
        reason: format!("cannot {what} {name}: {reason}"),
    }
}

/// An attached server that was looked at: its scenario, its name there, and its place and version.
pub type Met = (Name, Name, String);

/// Looks at every attached server of the cases to come, and says what will be written there.
/// Servers on which somebody depends need a yes. Returns all of them, for the `environment` of
/// results.
pub async fn announce(lab: &Lab<'_>, scenarios: &[Scenario]) -> RunResult<BTreeSet<Met>> {
    let mut met = BTreeSet::new();
    if lab.runtime.simulates() {
        return Ok(met);
    }
    let mut unallowed = Vec::new();
    let mut announced = Vec::new();
    let chosen = scenarios.iter().flat_map(|it| {
        let cases = lab.options.chosen(it);
        cases.map(move |case| (&it.name, case))
    });
    for (scenario, case) in chosen {
        let program = case.setup.lock.backend.servers().program;
        let (Some(attach), Some(guest)) = (&case.setup.attach, program.guest) else {
            continue;
        };
        let mut identities: BTreeMap<String, &Name> = BTreeMap::new();
        for (name, server) in &attach.servers {
            let found = find(attach, name, server).await?;
            let at = found.address.to_string();
            let visit = guest.visit(server, &at, &prefix_of("RUN"));
            let visit = visit.map_err(|reason| cannot("use", name, reason))?;
            let seen = visit.look().await.map_err(|reason| {
                let what = format!("use {} as", server.place);
                let reason = format!(
                    "{reason}; if no {} is to be there, the address leads elsewhere: name another in `attach`",
                    program.name
                );
                cannot(&what, name, reason)
            })?;
            if let Some(other) = identities.insert(seen.identity.clone(), name) {
                return Err(RunError::NotAllowed(format!(
                    "cannot attach {other} and {name}: both lead to one server ({}); name each server once",
                    seen.identity
                )));
            }
            let same = lab.groundwork.meet(server, &seen.identity);
            same.map_err(|reason| cannot("use", name, reason))?;
            let setting = visit.setting().await;
            let is_ours = case.setup.worker.is_ours();
            let looked_at = LookedAt {
                shown: format!("{} {} at {}", program.name, seen.version, server.place),
                writes: (guest.writes)(&visit.prefix) + &changed(guest, attach, name, &setting),
                unwatched: unwatched(guest, attach, name, &setting, is_ours),
                signs: signs(&seen, &found),
            };
            met.insert((scenario.clone(), name.clone(), looked_at.shown.clone()));
            // The name alone may mean another server in another case.
            let may_be_set = attach.may_be_set(name);
            let decides = (program.name, name, server, may_be_set, is_ours);
            if announced.contains(&decides) {
                continue;
            }
            announced.push(decides);
            match looked_at.signs.is_empty() || lab.options.yes {
                true => lab.progress.say(&looked_at.words(name)),
                false => unallowed.push(looked_at.words(name)),
            }
        }
    }
    if unallowed.is_empty() {
        return Ok(met);
    }
    let servers = unallowed.join("\n");
    Err(RunError::NotAllowed(format!(
        "{servers}\nadd --yes if that is meant; nothing was written"
    )))
}

/// Returns the words for the setting that is changed at a server, if one is.
fn changed(
    guest: &Guest,
    attach: &Attach,
    name: &Name,
    setting: &Result<Option<String>, String>,
) -> String {
    match (&guest.setting, setting) {
        (Some(known), Ok(Some(value))) if attach.may_be_set(name) && !(known.is_enough)(value) => {
            format!(
                "; its {} is `{}` meanwhile",
                known.name,
                (known.enough)(value)
            )
        }
        _ => String::new(),
    }
}

/// A server as a person has to know it before anything is written there.
struct LookedAt {
    shown: String,
    writes: String,
    unwatched: Option<String>,
    /// The signs that somebody depends on it.
    signs: Vec<String>,
}

impl LookedAt {
    fn words(&self, name: &Name) -> String {
        let LookedAt { shown, writes, .. } = self;
        let looks = match self.signs.as_slice() {
            [] => "is empty and used by nobody".to_owned(),
            signs => format!("looks like production: {}", signs.join(", ")),
        };
        let watched = self.unwatched.iter().map(|why| {
            format!("\n  nobody watches it, and the verdict rests on workers and resource: {why}")
        });
        format!(
            "{name} ({shown}) {looks}\n  written there: {writes}; removed after each case{}",
            watched.collect::<String>()
        )
    }
}

fn signs(seen: &Sighting, found: &FoundServer) -> Vec<String> {
    let ip = found.address.ip();
    let is_near = found.container.is_some() || ip.is_loopback();
    let far = (!is_near).then(|| format!("not on this machine's loopback ({ip})"));
    seen.signs.iter().cloned().chain(far).collect()
}
