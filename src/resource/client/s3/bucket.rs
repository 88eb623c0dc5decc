use super::connector::Connector;
use super::crypto::Crypto;
use fencing_lock::AwsCredentials;
use object_store::RetryConfig;
use object_store::aws::{AmazonS3, AmazonS3Builder};
use reqwest::Client;
use std::sync::Arc;
use std::time::Duration;

/// Makes a client of `object_store` for a bucket at `http://host:port`. The error is for the user.
pub fn open_bucket(
    endpoint: &str,
    bucket: &str,
    credentials: &AwsCredentials,
    connect_timeout: Duration,
) -> Result<AmazonS3, String> {
    let http = Client::builder()
        .no_proxy()
        .tcp_nodelay(true)
        .connect_timeout(connect_timeout)
        // A request is signed for one host, and nobody else is to be asked.
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .build()
        .map_err(|error| error.to_string())?;
    AmazonS3Builder::new()
        .with_endpoint(endpoint)
        .with_bucket_name(bucket)
        .with_region("us-east-1")
        .with_access_key_id(&credentials.access_key)
        .with_secret_access_key(&credentials.secret_key)
        .with_allow_http(true)
        .with_http_connector(Connector(http))
        .with_crypto_provider(Arc::new(Crypto))
        // One attempt is one row in the log: the caller decides whether to repeat it.
        .with_retry(RetryConfig {
            max_retries: 0,
            ..RetryConfig::default()
        })
        .build()
        .map_err(|error| error.to_string())
}
