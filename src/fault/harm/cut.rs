use super::super::field::Field;
use super::super::journal::Debt;
use super::super::links::Grip;
use super::Harm;
use super::expected::Expected;
use super::probes::Probes;
use crate::model::{Link, LinkEffect, LinkFault, Name, ToxicEffect};
use crate::toxiproxy::{Stream, Toxic, ToxicKind};
use async_trait::async_trait;
use futures_util::future::{join_all, try_join_all};

/// Something wrong with links, by their proxies. Proven by probes from the
/// sources themselves.
pub struct Cut {
    fault: LinkFault,
    id: u32,
    grips: Vec<Grip>,
    probes: Vec<(Expected, Probes)>,
}

impl Cut {
    pub fn new(fault: LinkFault, id: u32) -> Cut {
        Cut {
            fault,
            id,
            grips: Vec::new(),
            probes: Vec::new(),
        }
    }

    /// What every toxic of this fault is called, and its stream.
    fn name(&self) -> String {
        format!("fault-{}", self.id)
    }

    fn toxic_name(&self, stream: Stream) -> String {
        format!("{}-{stream}", self.name())
    }

    async fn put_on(&self, field: &Field, grip: &Grip) -> Result<(), String> {
        let links = field.links()?;
        match &self.fault.effect {
            LinkEffect::Refuse => links.refuse(&grip.link, self.id).await,
            LinkEffect::Toxic {
                toxic, toxicity, ..
            } => {
                for stream in &grip.streams {
                    let toxic = Toxic {
                        name: self.toxic_name(*stream),
                        stream: *stream,
                        toxicity: *toxicity,
                        kind: kind_of(*toxic),
                    };
                    links.put_on(&grip.link, &toxic).await?;
                }
                Ok(())
            }
        }
    }

    async fn take_off(&self, field: &Field, grip: &Grip) -> Result<(), String> {
        let links = field.links()?;
        match &self.fault.effect {
            LinkEffect::Refuse => links.accept(&grip.link, self.id).await,
            LinkEffect::Toxic { .. } => {
                for stream in &grip.streams {
                    links
                        .take_off(&grip.link, &self.toxic_name(*stream))
                        .await?;
                }
                Ok(())
            }
        }
    }
}

#[async_trait]
impl Harm for Cut {
    async fn look(&mut self, field: &Field) -> Result<(), String> {
        self.grips = field.links()?.gripped_by(&self.fault);
        // Bytes that are held in different directions show differently.
        let mut sorts: Vec<Vec<Stream>> = Vec::new();
        for grip in &self.grips {
            if !sorts.contains(&grip.streams) {
                sorts.push(grip.streams.clone());
            }
        }
        if sorts.is_empty() {
            return Err("there is no such link".to_owned());
        }
        let all: Vec<Link> = self.grips.iter().map(|grip| grip.link.clone()).collect();
        for streams in sorts {
            let expected = Expected::of(&self.fault.effect, &streams);
            let links = self.grips.iter().filter(|grip| grip.streams == streams);
            let links: Vec<Link> = links.map(|grip| grip.link.clone()).collect();
            let probes = Probes::over(field, links, &all, &expected).await?;
            self.probes.push((expected, probes));
        }
        Ok(())
    }

    async fn inflict(&mut self, field: &Field) -> Result<(), String> {
        let put_on = self.grips.iter().map(|grip| self.put_on(field, grip));
        try_join_all(put_on).await.map(drop)
    }

    async fn bitten(&mut self, field: &Field) -> Result<String, String> {
        let shown = self
            .probes
            .iter()
            .map(|(expected, probes)| probes.show(field, expected));
        let shown = try_join_all(shown).await?;
        Ok(shown.join("; "))
    }

    async fn stands(&mut self, field: &Field) -> Result<(), String> {
        for grip in &self.grips {
            let stands = match &self.fault.effect {
                LinkEffect::Refuse => field.links()?.refuses(&grip.link).await?,
                LinkEffect::Toxic { .. } => {
                    field.links()?.has_toxic(&grip.link, &self.name()).await?
                }
            };
            if !stands {
                return Err(format!("somebody else has healed {}", grip.link));
            }
        }
        for (_, probes) in &self.probes {
            probes.control_works(field).await?;
        }
        Ok(())
    }

    /// Each on its own: one that cannot be undone must not keep the others.
    async fn undo(&mut self, field: &Field) -> Result<(), String> {
        let taken_off = self.grips.iter().map(|grip| self.take_off(field, grip));
        join_all(taken_off).await.into_iter().collect()
    }

    async fn undone(&mut self, field: &Field) -> Result<String, String> {
        for grip in &self.grips {
            if field.links()?.has_toxic(&grip.link, &self.name()).await? {
                return Err(format!("the toxic is still on {}", grip.link));
            }
        }
        let work = self
            .probes
            .iter()
            .map(|(expected, probes)| probes.work_again(field, expected));
        Ok(try_join_all(work).await?.join("; "))
    }

    fn debts(&self) -> Vec<Debt> {
        let mut sources: Vec<Name> = self.grips.iter().map(|g| g.link.from.clone()).collect();
        sources.dedup();
        let debts = sources.into_iter().map(|source| Debt::Links { source });
        debts.collect()
    }
}

fn kind_of(toxic: ToxicEffect) -> ToxicKind {
    match toxic {
        ToxicEffect::Latency {
            latency_ms,
            jitter_ms,
        } => ToxicKind::Latency {
            latency_ms,
            jitter_ms,
        },
        ToxicEffect::Bandwidth { rate_kb_per_s } => ToxicKind::Bandwidth { rate_kb_per_s },
        ToxicEffect::Timeout { timeout_ms } => ToxicKind::Timeout { timeout_ms },
        ToxicEffect::ResetPeer { timeout_ms } => ToxicKind::ResetPeer { timeout_ms },
        ToxicEffect::Slicer {
            average_size,
            size_variation,
            delay_us,
        } => ToxicKind::Slicer {
            average_size,
            size_variation,
            delay_us,
        },
        ToxicEffect::LimitData { bytes } => ToxicKind::LimitData { bytes },
    }
}
