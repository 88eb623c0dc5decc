//! Witnesses: a probe in the network of each source, which sees what the source sees.

use super::attendants::Attendants;
use super::probe::{Answer, Question};
use super::*;
use crate::cluster::{ConsoleLine, OWN_IMAGE, Stdin};
use std::collections::HashMap;
use tokio::sync::oneshot;
use tokio_util::task::AbortOnDropHandle;

/// The time that is added to what the question itself may take.
const ANSWER_DEADLINE: Duration = Duration::from_secs(5);

fn witness_of(source: &Name) -> Name {
    source.behind("witness")
}

pub struct Witnesses {
    pub called: Attendants<Witness>,
}

pub struct Witness {
    stdin: Stdin,
    asked: Asked,
    last_id: u64,
    /// Reads the answers until the console ends.
    _reader: AbortOnDropHandle<()>,
}

type Asked = Arc<Mutex<HashMap<u64, oneshot::Sender<Answer>>>>;

impl Witnesses {
    pub fn new(cluster: Arc<dyn Cluster>) -> Witnesses {
        Witnesses {
            called: Attendants::new(cluster, witness_of),
        }
    }

    /// Starts the witness of a source, if there is none yet.
    pub async fn call(&self, source: &Name) -> Proof {
        let place = self.called.beside(source);
        let mut place = place.lock().await;
        self.called(source, &mut place).await.map(drop)
    }

    pub async fn ask(&self, source: &Name, question: Question) -> Proof<Answer> {
        let within = Duration::from_millis(question.within_ms) + ANSWER_DEADLINE;
        let answer = {
            let place = self.called.beside(source);
            let mut place = place.lock().await;
            let witness = self.called(source, &mut place).await?;
            let asked = witness.ask(question.clone()).await;
            let gone = format!("the probe beside {source} cannot be asked any more");
            asked.map_err(|error| failed(format!("{gone}: {error}")))?
        };
        match tokio::time::timeout(within, answer).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(_)) => Err(failed(format!("the probe beside {source} ended"))),
            Err(_) => Err(failed(format!(
                "the probe beside {source} gave no answer about {} within {} s",
                question.to,
                within.as_secs()
            ))),
        }
    }

    async fn called<'a>(
        &self,
        source: &Name,
        place: &'a mut Option<Witness>,
    ) -> Proof<&'a mut Witness> {
        if place.is_none() {
            let helper = Helper {
                name: witness_of(source),
                image: OWN_IMAGE.to_owned(),
                command: vec!["probe".to_owned()],
                beside: source.to_owned(),
                shares: Shared::Network,
            };
            let console = self.called.start(&helper).await?;
            *place = Some(Witness::listen_to(console));
        }
        let missing = || failed(format!("no probe beside {source}"));
        place.as_mut().ok_or_else(missing)
    }
}

fn failed(error: String) -> UnprovenReason {
    UnprovenReason::Probe { error }
}

impl Witness {
    fn listen_to(console: Console) -> Witness {
        let asked = Asked::default();
        let waiting = Arc::clone(&asked);
        let mut lines = console.lines;
        let reader = tokio::spawn(async move {
            while let Some(line) = lines.recv().await {
                if let ConsoleLine::Out(line) = line
                    && let Ok(answer) = serde_json::from_str::<Answer>(&line)
                    && let Some(asker) = waiting.lock().remove(&answer.id)
                {
                    // The asker may have given up.
                    let _ = asker.send(answer);
                }
            }
            waiting.lock().clear();
        });
        Witness {
            stdin: console.stdin,
            asked,
            last_id: 0,
            _reader: AbortOnDropHandle::new(reader),
        }
    }

    async fn ask(&mut self, mut question: Question) -> std::io::Result<oneshot::Receiver<Answer>> {
        self.last_id += 1;
        question.id = self.last_id;
        let (asker, answer) = oneshot::channel();
        self.asked.lock().insert(question.id, asker);
        self.stdin.say(&serde_json::to_string(&question)?).await?;
        Ok(answer)
    }
}
