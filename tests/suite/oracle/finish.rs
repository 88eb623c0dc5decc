//! The end of a world: everything that is collected for the judge.

use super::defect::Defect;
use super::resource::Cell;
use super::settings::{MS, SECOND};
use super::trouble::Trouble;
use super::world::{KEYS, Played, World};
use fencepost::model::{ClockName, Fence, Log, RowValue, ServicePlan, WorkerPlan};
use std::collections::BTreeMap;

impl World {
    pub fn finish(mut self) -> Played {
        self.now += MS + self.random.u64(..3 * SECOND);
        self.heal();
        self.keep_values();
        self.write_plan();
        self.merge_histories();
        let record = &mut self.record;
        record.faults.sort_by_key(|row| row.at_ns);
        record.locks = std::mem::take(&mut self.observer.rows);
        record.locks.sort_by_key(|row| row.at_ns);
        if self.settings.observed {
            let servers = self.servers.iter();
            record.lock_servers = servers.map(|server| server.name.to_owned()).collect();
            if self.settings.trouble == Trouble::Promote {
                record.lock_servers.push("redis-replica".to_owned());
            }
        }
        record.resource = Some("resource".to_owned());
        record.refusals_counted = Some(self.resource.refusals);
        record.log_rows = Some(self.resource.log.len() as u64);
        record.ended_ns = Some(self.now);
        record.settled = true;
        record.log = Log::from_rows(std::mem::take(&mut self.resource.log));
        Played {
            settings: self.settings,
            record: self.record,
            truth: self.truth,
        }
    }

    /// The harness reads each worker's output as it comes, and none waits for another.
    fn merge_histories(&mut self) {
        let mut late = BTreeMap::new();
        for worker in &self.workers {
            late.insert(worker.name.to_owned(), self.random.u64(..4 * MS));
        }
        let history = &mut self.record.history;
        history.sort_by_key(|event| event.at_ns + late[&event.worker]);
    }

    fn write_plan(&mut self) {
        let settings = &self.settings;
        let plan = &mut self.record.plan;
        plan.fence = Some(if settings.fence {
            Fence::On
        } else {
            Fence::Off
        });
        for worker in &self.workers {
            self.record.workers.push(worker.name.to_owned());
            let service = self.servers[worker.service].name;
            plan.workers.insert(
                worker.name.to_owned(),
                WorkerPlan {
                    service: service.to_owned(),
                    service_plan: service_plan(service),
                    ttl_ns: settings.ttl_ns,
                    in_order: settings.queue,
                    is_ours: settings.ours,
                },
            );
        }
    }

    fn keep_values(&mut self) {
        for (key, cell) in self.resource.cells.clone().into_iter().enumerate() {
            let Cell { body, position, .. } = cell;
            let Some(mut body) = body else {
                continue;
            };
            if self.strikes(Defect::LosesValue) {
                let defect = Defect::LosesValue;
                self.truth.plant(defect, self.now, "", "", position);
                continue;
            }
            if self.strikes(Defect::KeepsWrongValue) {
                body = self.another_body(key, &body);
                let defect = Defect::KeepsWrongValue;
                self.truth.plant(defect, self.now, "", "", position);
            }
            let (key, value) = (KEYS[key].to_owned(), RowValue::Text(body));
            self.record.values.insert(key, value);
        }
    }

    /// An earlier one, or one that nobody wrote.
    fn another_body(&mut self, key: usize, body: &str) -> String {
        let accepted =
            self.truth.decisions.iter().filter(|decision| {
                decision.accepted && decision.key == key && decision.body != body
            });
        let earlier: Vec<&String> = accepted.map(|decision| &decision.body).collect();
        if earlier.is_empty() || self.random.bool() {
            return format!("{body} or so");
        }
        earlier[self.random.usize(..earlier.len())].clone()
    }
}

fn service_plan(service: &str) -> ServicePlan {
    match service {
        "etcd" => ServicePlan {
            renews_silently: true,
            keeps_grants: true,
            leases_by: ClockName::Monotonic,
            ..ServicePlan::ONE_SERVER
        },
        _ => ServicePlan::ONE_SERVER,
    }
}
