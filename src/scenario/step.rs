use super::*;

/// One step of an entry; the next one comes when it is over.
///
/// A step has the same shape from the file to the run: faults (`F`), the actions that end them
/// (`E`) and lengths (`L`) lose their places in validation, and get their values from the seed.
#[derive(Clone, Debug, PartialEq)]
pub enum Step<F, E, L> {
    Inject {
        fault: F,
        /// The fault is undone after this time, and only then the step is over. Without it the step
        /// is over as soon as the fault is proven, and the fault is active until something undoes
        /// it.
        lasting: Option<L>,
    },
    /// A resume or a thaw.
    End(E),
    /// Undoes every fault of the entry of this name.
    Heal {
        entry: At<String>,
    },
    Wait {
        length: L,
    },
    /// Waits until an event has come.
    Await {
        event: At<Trigger>,
    },
    /// Begins all steps at the same time, and is over when all of them are.
    Together {
        steps: Vec<Step<F, E, L>>,
    },
}

/// A step that passed validation. The seed draws one of its faults.
pub type PlannedStep = Step<Vec<Fault>, End, Span>;

/// A step with nothing left to chance.
pub type DrawnStep = Step<Fault, End, Duration>;

/// Lets a stopped node go on.
#[derive(Clone, Debug, PartialEq)]
pub struct End {
    pub by: FaultKind,
    pub node: Name,
}

/// Turns each part of a step into its next form.
pub trait Refine<F, E, L> {
    type Fault;
    type End;
    type Length;

    fn fault(&mut self, fault: &F) -> Option<Self::Fault>;
    fn end(&mut self, end: &E) -> Option<Self::End>;
    fn length(&mut self, length: &L) -> Self::Length;

    /// Returns None if a part has no next form, which has been reported.
    fn step(&mut self, step: &Step<F, E, L>) -> Option<Step<Self::Fault, Self::End, Self::Length>> {
        Some(match step {
            Step::Inject { fault, lasting } => Step::Inject {
                fault: self.fault(fault)?,
                lasting: lasting.as_ref().map(|length| self.length(length)),
            },
            Step::End(end) => Step::End(self.end(end)?),
            Step::Heal { entry } => Step::Heal {
                entry: entry.clone(),
            },
            Step::Wait { length } => Step::Wait {
                length: self.length(length),
            },
            Step::Await { event } => Step::Await {
                event: event.clone(),
            },
            Step::Together { steps } => Step::Together {
                steps: self.steps(steps)?,
            },
        })
    }

    #[expect(clippy::type_complexity, reason = "an alias cannot name its own parts")]
    fn steps(
        &mut self,
        steps: &[Step<F, E, L>],
    ) -> Option<Vec<Step<Self::Fault, Self::End, Self::Length>>> {
        steps.iter().map(|step| self.step(step)).collect()
    }
}

impl<F, E, L> Step<F, E, L> {
    /// Returns this step and those inside of it.
    pub fn with_inner(&self) -> Vec<&Step<F, E, L>> {
        let mut all = vec![self];
        if let Step::Together { steps } = self {
            all.extend(steps.iter().flat_map(Step::with_inner));
        }
        all
    }

    pub fn fault(&self) -> Option<&F> {
        if let Step::Inject { fault, .. } = self {
            Some(fault)
        } else {
            None
        }
    }

    pub fn awaits(&self) -> Option<&At<Trigger>> {
        if let Step::Await { event } = self {
            Some(event)
        } else {
            None
        }
    }

    /// Returns its own length, as it is written.
    pub fn length(&self) -> Option<&L> {
        match self {
            Step::Inject { lasting, .. } => lasting.as_ref(),
            Step::Wait { length } => Some(length),
            Step::End(_) | Step::Heal { .. } | Step::Await { .. } | Step::Together { .. } => None,
        }
    }

    /// Returns its faults, those of steps inside of it included.
    pub fn faults(&self) -> Vec<&F> {
        let all = self.with_inner().into_iter();
        all.filter_map(Step::fault).collect()
    }

    /// Returns whether its length depends on an event.
    pub fn waits_for_an_event(&self) -> bool {
        let mut all = self.with_inner().into_iter();
        all.any(|step| step.awaits().is_some())
    }

    /// Returns whether it undoes something and begins nothing.
    pub fn lets_go_on(&self) -> bool {
        matches!(self, Step::End(_) | Step::Heal { .. })
    }

    /// Returns whether it leaves no fault active and undoes none.
    pub fn is_complete_in_itself(&self) -> bool {
        match self {
            Step::Inject { lasting, .. } => lasting.is_some(),
            Step::Wait { .. } | Step::Await { .. } => true,
            Step::Together { steps } => steps.iter().all(Step::is_complete_in_itself),
            Step::End(_) | Step::Heal { .. } => false,
        }
    }
}
