use super::super::links::Grip;
use super::*;
use crate::model::{LinkFault, LinkScope};
use futures_util::future::{join_all, try_join_all};
use toxiproxy_server::{Stream, Toxic, ToxicKind};

/// A fault of links, injected through their proxies. Probes from the sources themselves prove
/// it.
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

    /// Creates a fault of no link at all, which the look before the injection refuses.
    pub fn of_nothing(kind: FaultKind) -> Cut {
        let fault = LinkFault {
            kind,
            scope: LinkScope::Matching(Vec::new()),
            effect: LinkEffect::Refuse,
        };
        Cut::new(fault, 0)
    }

    /// Returns the prefix of this fault's toxic names; the stream follows it.
    fn name(&self) -> String {
        format!("fault-{}", self.id)
    }

    fn toxic_name(&self, stream: Stream) -> String {
        format!("{}-{stream}", self.name())
    }

    async fn put_on(&self, field: &Field, grip: &Grip) -> Proof {
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

    async fn take_off(&self, field: &Field, grip: &Grip) -> Proof {
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
impl Injection for Cut {
    async fn prepare(&mut self, field: &Field) -> Proof {
        let gripped = field.links()?.gripped_by(&self.fault);
        probes::prepare(field, gripped.into_iter().map(|grip| grip.link)).await
    }

    async fn look_before(&mut self, field: &Field) -> Proof {
        self.grips = field.links()?.gripped_by(&self.fault);
        // Bytes that are held in different directions look different to a probe.
        let mut sorts: Vec<Vec<Stream>> = Vec::new();
        for grip in &self.grips {
            if !sorts.contains(&grip.streams) {
                sorts.push(grip.streams.clone());
            }
        }
        ensure(!sorts.is_empty(), UnprovenReason::NoSuchLink)?;
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

    async fn inject(&mut self, field: &Field) -> Proof {
        let put_on = self.grips.iter().map(|grip| self.put_on(field, grip));
        try_join_all(put_on).await.map(drop)
    }

    async fn verify(&mut self, field: &Field) -> Proof<String> {
        let shown = self
            .probes
            .iter()
            .map(|(expected, probes)| probes.show(field, expected));
        let shown = try_join_all(shown).await?;
        Ok(shown.join("; "))
    }

    async fn verify_active(&mut self, field: &Field) -> Proof {
        for grip in &self.grips {
            let stands = match &self.fault.effect {
                LinkEffect::Refuse => field.links()?.refuses(&grip.link).await?,
                LinkEffect::Toxic { .. } => {
                    field.links()?.has_toxic(&grip.link, &self.name()).await?
                }
            };
            let link = grip.link.clone();
            ensure(stands, UnprovenReason::HealedByOthers { link })?;
        }
        for (_, probes) in &self.probes {
            probes.control_works(field).await?;
        }
        Ok(())
    }

    /// Undoes each link by itself: one failure must not prevent the others.
    async fn undo(&mut self, field: &Field) -> Proof {
        let taken_off = self.grips.iter().map(|grip| self.take_off(field, grip));
        join_all(taken_off).await.into_iter().collect()
    }

    async fn verify_undone(&mut self, field: &Field) -> Proof<String> {
        for grip in &self.grips {
            let is_left = field.links()?.has_toxic(&grip.link, &self.name()).await?;
            let link = grip.link.clone();
            ensure(!is_left, UnprovenReason::ToxicLeft { link })?;
        }
        let work = self
            .probes
            .iter()
            .map(|(expected, probes)| probes.work_again(field, expected));
        Ok(try_join_all(work).await?.join("; "))
    }

    fn debts(&self) -> Vec<Debt> {
        let mut sources: Vec<Name> = self.grips.iter().map(|g| g.link.from.clone()).collect();
        sources.sort();
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
