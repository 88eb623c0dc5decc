//! Puts that compare nothing, because the token was compared before them: mistakes.

use super::{S3Client, failed, path_of};
use crate::model::{Fence, FencingToken, WriteStyle};
use crate::resource::client::{ClientError, Stored, WriteAnswer, bad_request, no_answer};
use crate::resource::state::WriteRequest;
use object_store::{Error, ObjectStore, ObjectStoreExt, PutMode, PutOptions, UpdateVersion};
use tokio::time::timeout;

impl S3Client {
    pub fn with_style(self, style: WriteStyle) -> S3Client {
        S3Client { style, ..self }
    }

    /// Reads the value for a write that follows, as the style of this client does.
    pub async fn begin(
        &self,
        key: &str,
        token: FencingToken,
    ) -> Result<Option<Stored>, ClientError> {
        self.leave();
        let may_write = match self.style {
            WriteStyle::FenceElsewhere => Some(self.fence_elsewhere(key, token).await?),
            _ => None,
        };
        let stored = self.get(key).await?;
        let highest = stored.as_ref().and_then(|stored| stored.max_fence);
        *self.checked.lock() = match self.style {
            WriteStyle::CheckThenWrite => Some(highest.is_none_or(|highest| highest <= token)),
            _ => may_write,
        };
        Ok(stored)
    }

    /// Forgets what a read has found out.
    pub fn leave(&self) {
        self.checked.lock().take();
    }

    /// Writes as the style of this client does.
    pub async fn put(&self, write: &WriteRequest) -> Result<WriteAnswer, ClientError> {
        let fence = match self.checked.lock().take() {
            // The check is over: nobody asks again whether it still holds.
            Some(true) => Fence::Off,
            Some(false) | None => self.fence,
        };
        self.write(write, fence).await
    }

    /// Raises the token in an object beside the one that is written; false if it is higher already.
    async fn fence_elsewhere(&self, key: &str, token: FencingToken) -> Result<bool, ClientError> {
        let name = format!("the fence of s3://{}/{key}", self.bucket);
        let path = path_of(&name, &format!("{key}.fence"))?;
        let raising = async {
            let (mode, before) = match self.store.get(&path).await {
                Err(Error::NotFound { .. }) => (PutMode::Create, 0),
                found => {
                    let found = found.map_err(|error| failed(&name, error))?;
                    let version = UpdateVersion {
                        e_tag: found.meta.e_tag.clone(),
                        version: found.meta.version.clone(),
                    };
                    let content = found.bytes().await.map_err(|error| failed(&name, error))?;
                    let before = std::str::from_utf8(&content).ok();
                    let before = before.and_then(|before| before.parse().ok());
                    let strange = || bad_request(&name, "it is not a number".to_owned());
                    (PutMode::Update(version), before.ok_or_else(strange)?)
                }
            };
            if before > token.0 {
                return Ok(false);
            }
            let content = token.0.to_string().into_bytes().into();
            let raised = self.store.put_opts(&path, content, PutOptions::from(mode));
            match raised.await {
                Ok(_) => Ok(true),
                Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => Ok(false),
                Err(error) => Err(failed(&name, error)),
            }
        };
        let raised = timeout(self.timeout, raising).await;
        raised.map_err(|_| no_answer(&name, "it did not come in time"))?
    }
}
