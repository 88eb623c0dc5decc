use super::*;
use crate::certify::{
    ANSWER_DEADLINE, Examined, MOST_REQUESTS, S3Address, S3Store, Store, StoreError, TokenStore,
    Verdict, certify,
};
use crate::model::{Outcome, without_password};
use crate::report::junit;
use crate::resource::s3::DEFAULT_KEY;
use crate::run::RunError;
use fencing_lock::AwsCredentials;
use std::pin::pin;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Try on a store whether it fences: S3, Postgres, or a resource of this program
///
/// Sends at most 200 requests, under a prefix of its own (a schema of its own in a Postgres) that is
/// removed at the end, also after Ctrl-C. Touches nothing that it did not make. A resource deletes
/// nothing, so there the keys stay. Speaks plain HTTP only. Exit codes: 0 every property that the
/// store offers is kept, 1 one is broken, 2 one could not be examined, 69 the store does not
/// answer, 70 something may be left.
#[derive(Args)]
pub struct Certify {
    /// s3://BUCKET[/PREFIX], postgres://HOST:PORT/DATABASE, or http://HOST:PORT
    #[arg(value_name = "STORE")]
    store: String,
    /// Find the S3 here, as http://HOST:PORT
    #[arg(long, env = "AWS_ENDPOINT_URL", value_name = "URL")]
    endpoint: Option<String>,
    /// Sign for this region
    #[arg(long, env = "AWS_REGION", default_value = "us-east-1")]
    region: String,
    /// Use this access key of the S3
    #[arg(long, env = "AWS_ACCESS_KEY_ID", default_value = DEFAULT_KEY, value_name = "KEY")]
    access_key: String,
    /// Sign with this secret
    #[arg(
        long,
        env = "AWS_SECRET_ACCESS_KEY",
        default_value = DEFAULT_KEY,
        hide_env_values = true,
        value_name = "SECRET"
    )]
    secret_key: String,
    /// Restart the store with this command of the shell, to see what it forgets
    #[arg(long, value_name = "COMMAND")]
    restart: Option<String>,
    /// Write the verdicts as JUnit XML
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    #[command(flatten)]
    pub printed: OutputFormat,
}

impl Certify {
    pub async fn execute(self) -> Result<Exit, Failure> {
        let shown = without_password(&self.store);
        let store = self.open().map_err(|cause| {
            Failure::new(Exit::Usage, format!("cannot certify {shown}: {cause}"))
        })?;
        let left = format!("{} may be left", store.place());
        let interrupt = interrupt::listen_and_say(left)?;
        let progress = progress::for_this_output();
        let task = crate::progress::Progress::begin(&progress, &format!("certify {shown}"));
        let each = |property| task.detail(&format!("{property}"));
        let certifying = certify(store.as_ref(), self.restart.as_deref(), each);
        let examined = unless_interrupted(&interrupt, store.as_ref(), certifying).await;
        store.book().begin_removal();
        let removed = store.remove().await;
        task.finish("done");
        let left = removed.err().map(|what| {
            let remedy = "remove it when the store answers again";
            format!("cannot remove everything: {what}; {remedy}")
        });
        match (examined, left) {
            (Ok(examined), left) => self.report(&shown, store.as_ref(), &examined, left),
            (Err(_), Some(left)) => Err(Failure::harness(left)),
            (Err(StoreError::Interrupted), None) => Err(RunError::Interrupted.into()),
            (Err(cause), None) => Err(Failure::new(
                Exit::Unavailable,
                format!("cannot certify {shown}: {cause}"),
            )),
        }
    }

    /// Makes nothing in the store yet. The error is for the user.
    fn open(&self) -> Result<Box<dyn Store>, String> {
        let id = Uuid::new_v4().simple().to_string()[..12].to_owned();
        match self.store.split_once("://") {
            Some(("s3", rest)) => Ok(Box::new(S3Store::new(self.address(rest)?, &id)?)),
            Some(("postgres" | "postgresql" | "http", _)) => {
                let store = TokenStore::new(&self.store, &id);
                Ok(Box::new(store.map_err(|error| error.to_string())?))
            }
            _ => Err(
                "it is no address of a store; give s3://BUCKET, postgres://HOST:PORT or http://HOST:PORT"
                    .to_owned(),
            ),
        }
    }

    fn address(&self, rest: &str) -> Result<S3Address, String> {
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.is_empty() {
            return Err("it names no bucket; give s3://BUCKET".to_owned());
        }
        let prefix = match prefix.is_empty() || prefix.ends_with('/') {
            true => prefix.to_owned(),
            false => format!("{prefix}/"),
        };
        let endpoint = self.endpoint.clone().ok_or(
            "it has no endpoint; give --endpoint http://HOST:PORT, or set AWS_ENDPOINT_URL",
        )?;
        let (access_key, secret_key) = (&self.access_key, &self.secret_key);
        Ok(S3Address {
            endpoint,
            region: self.region.clone(),
            bucket: bucket.to_owned(),
            prefix,
            credentials: AwsCredentials::new(access_key, secret_key),
        })
    }

    fn report(
        &self,
        shown: &str,
        store: &dyn Store,
        all: &[Examined],
        left: Option<String>,
    ) -> Result<Exit, Failure> {
        let requests = store.book().requests();
        let unwritten = self.junit.as_ref().and_then(|path| {
            let suite = junit::answers(shown, all.iter().map(as_test));
            let written = std::fs::write(path, junit::document(&[suite]));
            let problem = written.err()?;
            Some(format!(
                "cannot write {}: {problem}; the verdicts are printed",
                path.display()
            ))
        });
        let exit = match left.is_some() || unwritten.is_some() {
            true => Exit::Harness,
            false => exit_of(all),
        };
        let told = json!({
            "store": shown,
            "properties": all,
            "requests": requests,
            "leaves": store.leaves(),
            "not_removed": &left,
            "exit_code": exit as u8,
        });
        let text = text(shown, store, all, requests);
        self.printed.show(&told, text)?;
        for problem in left.iter().chain(&unwritten) {
            output::complain(format_args!("error: {problem}"));
        }
        Ok(exit)
    }
}

/// Waits for a certificate. After an interrupt it sends nothing more, and what is under way gets the
/// time of an answer.
async fn unless_interrupted<T>(
    interrupt: &CancellationToken,
    store: &dyn Store,
    certifying: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let mut certifying = pin!(certifying);
    tokio::select! {
        biased;
        examined = &mut certifying => return examined,
        () = interrupt.cancelled() => store.book().interrupt(),
    }
    let _ = timeout(ANSWER_DEADLINE, certifying).await;
    Err(StoreError::Interrupted)
}

fn exit_of(all: &[Examined]) -> Exit {
    let any = |is: fn(&Verdict) -> bool| all.iter().any(|it| is(&it.verdict));
    if any(|verdict| matches!(verdict, Verdict::Broken(_))) {
        return Exit::NotAsExpected;
    }
    let in_doubt = any(|verdict| matches!(verdict, Verdict::NotExamined(_)));
    Exit::expected_if(!in_doubt, Exit::Inconclusive)
}

fn as_test(it: &Examined) -> junit::Answer {
    let (outcome, message) = match &it.verdict {
        Verdict::Broken(reason) => (Outcome::NotAsExpected, reason.clone()),
        Verdict::NotExamined(reason) => (Outcome::Inconclusive, reason.clone()),
        _ => (Outcome::AsExpected, String::new()),
    };
    junit::Answer {
        name: it.property.to_string(),
        outcome,
        message,
        told: it.property.promise().to_owned(),
    }
}

fn text(shown: &str, store: &dyn Store, all: &[Examined], requests: u32) -> String {
    let row = |it: &Examined| {
        let (verdict, reason) = match &it.verdict {
            Verdict::Kept => ("kept", None),
            Verdict::Broken(reason) => ("BROKEN", Some(reason)),
            Verdict::Depends(reason) => ("depends", Some(reason)),
            Verdict::NotOffered(reason) => ("not offered", Some(reason)),
            Verdict::NotAsked(reason) => ("not asked", Some(reason)),
            Verdict::NotExamined(reason) => ("NOT EXAMINED", Some(reason)),
        };
        let reason = reason.map_or(String::new(), |it| format!("\n{:38}{it}", ""));
        let (property, promise) = (it.property.to_string(), it.property.promise());
        format!("  {verdict:12}  {property:22}{promise}{reason}\n")
    };
    let rows: String = all.iter().map(row).collect();
    let verdict = match exit_of(all) {
        Exit::AsExpected => "it fences",
        Exit::NotAsExpected => "it does not fence",
        _ => "not everything could be examined",
    };
    let leaves = store.leaves().map_or(String::new(), |it| format!("\n{it}"));
    format!("{rows}\n{shown}: {verdict} ({requests} requests of at most {MOST_REQUESTS}){leaves}\n")
}
