//! Writes that begin with their read, and writes that are sent again.

use super::pool::Session;
use super::rows::stored_of;
use super::{PostgresClient, READ, no_answer};
use crate::model::{FencingToken, WriteStyle};
use crate::resource::client::{ClientError, Stored, WriteAnswer, after_no_answer};
use crate::resource::state::WriteRequest;
use fencing_lock::servers::PostgresConnection;
use std::time::Duration;
use tokio::time::{Instant, sleep};
use tokio_postgres::types::Type;

/// What a read leaves for the write that follows it.
pub enum Begun {
    /// A transaction that holds the lock on the row of this key.
    Locked(String, Session),
    /// Whether the token of the holder was high enough at that time.
    Checked { passed: bool },
}

/// The row has to be there: `FOR UPDATE` locks what it finds, and nothing else. Another
/// transaction that makes it waits for the end of this one.
const MAKE_ROW: &str = "INSERT INTO fencepost_values (key, value, position, token_seq, decision) \
    VALUES ($1, '', 0, 0, 0) ON CONFLICT (key) DO NOTHING";
const FENCE_ELSEWHERE: &str = "INSERT INTO fencepost_fences VALUES ($1, $2) \
    ON CONFLICT (key) DO UPDATE SET fence = excluded.fence \
    WHERE fencepost_fences.fence <= excluded.fence RETURNING fence";
/// How long somebody waits for the answer to one of several sends.
const ONE_SEND: Duration = Duration::from_secs(1);
const BETWEEN_SENDS: Duration = Duration::from_millis(100);

impl PostgresClient {
    /// Reads the value for a write that follows, as the style of this client does.
    pub async fn begin(
        &self,
        key: &str,
        token: FencingToken,
    ) -> Result<Option<Stored>, ClientError> {
        self.leave();
        match self.style {
            WriteStyle::Compare | WriteStyle::Retry | WriteStyle::RetryBlindly => {
                self.get(key).await
            }
            WriteStyle::LockRow => self.lock_row(key).await,
            WriteStyle::CheckThenWrite => {
                let stored = self.get(key).await?;
                let highest = stored.as_ref().and_then(|stored| stored.max_fence);
                let passed = highest.is_none_or(|highest| highest <= token);
                *self.begun.lock() = Some(Begun::Checked { passed });
                Ok(stored)
            }
            WriteStyle::FenceElsewhere => {
                let passed = self.fence_elsewhere(key, token).await?;
                *self.begun.lock() = Some(Begun::Checked { passed });
                self.get(key).await
            }
        }
    }

    /// Forgets a read without a write. Its transaction, if it has one, is rolled back.
    pub fn leave(&self) {
        self.begun.lock().take();
    }

    async fn lock_row(&self, key: &str) -> Result<Option<Stored>, ClientError> {
        let name = format!("the read of {key}, for update");
        let session = Session::new(self.connect(&name, |_| {}).await?);
        let locked = async {
            session.batch_execute("BEGIN").await?;
            let parameter = (&key as _, Type::TEXT);
            session
                .query_typed(MAKE_ROW, std::slice::from_ref(&parameter))
                .await?;
            let read = format!("{READ} FOR UPDATE");
            session.query_typed_one(&read, &[parameter]).await
        };
        let row = self.in_time(&name, locked).await?;
        let stored = stored_of(&row).map_err(|error| no_answer(&name, error.to_string()))?;
        *self.begun.lock() = Some(Begun::Locked(key.to_owned(), session));
        // Positions begin at 1: this row was made above.
        Ok(Some(stored).filter(|stored| stored.position > 0))
    }

    async fn fence_elsewhere(&self, key: &str, token: FencingToken) -> Result<bool, ClientError> {
        let name = format!("the fence of {key}");
        let number = i64::try_from(token.0).unwrap_or(i64::MAX);
        let parameters = [(&key as _, Type::TEXT), (&number as _, Type::INT8)];
        let compare = async |on: &PostgresConnection| {
            let row = on.query_typed_opt(FENCE_ELSEWHERE, &parameters).await?;
            Ok(row.is_some())
        };
        self.on_a_connection(&name, compare).await
    }

    /// Writes as the style of this client does.
    pub async fn put(&self, write: &WriteRequest) -> Result<WriteAnswer, ClientError> {
        let begun = self.begun.lock().take();
        match begun {
            Some(Begun::Locked(key, session)) if key == write.key => {
                self.commit(write, session).await
            }
            // The check is over: nobody asks again whether it still holds.
            Some(Begun::Checked { passed: true }) => self.write(write, false).await,
            _ if self.style.sends_again() => self.send_again(write).await,
            _ => self.write(write, self.is_fenced()).await,
        }
    }

    /// Writes in the transaction that holds the row, and ends it.
    async fn commit(
        &self,
        write: &WriteRequest,
        mut session: Session,
    ) -> Result<WriteAnswer, ClientError> {
        let written = self.write_on(write, self.is_fenced(), &mut session).await;
        // Nothing of a transaction counts before its COMMIT is sent.
        let answer = written.map_err(|error| ClientError::Refused {
            request: format!("the write to {}", write.key),
            message: format!("its transaction is over ({error}); nothing was written"),
        })?;
        let name = format!("the commit of {}", write.key);
        self.in_time(&name, session.batch_execute("COMMIT")).await?;
        Ok(answer)
    }

    /// Sends the same write until it is answered, or the time of one request is over.
    async fn send_again(&self, write: &WriteRequest) -> Result<WriteAnswer, ClientError> {
        let until = Instant::now() + self.timeout;
        let impatient = PostgresClient {
            timeout: ONE_SEND,
            ..self.clone()
        };
        let mut is_again = false;
        loop {
            let answer = impatient.write(write, self.is_fenced()).await;
            match answer {
                Err(error) if error.outcome_unknown() && Instant::now() < until => {
                    is_again = true;
                    sleep(BETWEEN_SENDS).await;
                }
                answer if is_again && self.style == WriteStyle::Retry => {
                    return after_no_answer(&format!("the write to {}", write.key), answer);
                }
                answer => return answer,
            }
        }
    }
}
