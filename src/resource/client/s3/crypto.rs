//! SHA-256 and its HMAC for `object_store`, which brings TLS along otherwise.

use fencing_lock::servers::hmac_sha256;
use object_store::client::{
    CryptoProvider, DigestAlgorithm, DigestContext, HmacContext, Signer, SigningAlgorithm,
};
use object_store::{Error, Result};
use sha2::{Digest, Sha256};

#[derive(Debug)]
pub struct Crypto;

/// Text that is hashed when it ends; with a key, it is signed.
struct Pending {
    key: Option<Vec<u8>>,
    bytes: Vec<u8>,
}

impl CryptoProvider for Crypto {
    fn digest(&self, _: DigestAlgorithm) -> Result<Box<dyn DigestContext>> {
        Ok(Box::new(Pending {
            key: None,
            bytes: Vec::new(),
        }))
    }

    fn hmac(&self, _: DigestAlgorithm, secret: &[u8]) -> Result<Box<dyn HmacContext>> {
        Ok(Box::new(Pending {
            key: Some(secret.to_vec()),
            bytes: Vec::new(),
        }))
    }

    fn sign(&self, _: SigningAlgorithm, _: &[u8]) -> Result<Box<dyn Signer>> {
        Err(Error::NotSupported {
            source: "only AWS Signature Version 4 is signed here".into(),
        })
    }
}

impl Pending {
    fn end(&mut self) -> &[u8] {
        self.bytes = match &self.key {
            None => Sha256::digest(&self.bytes).to_vec(),
            Some(key) => hmac_sha256(key, &self.bytes),
        };
        &self.bytes
    }
}

impl DigestContext for Pending {
    fn update(&mut self, data: &[u8]) {
        self.bytes.extend_from_slice(data);
    }

    fn finish(&mut self) -> Result<&[u8]> {
        Ok(self.end())
    }
}

impl HmacContext for Pending {
    fn update(&mut self, data: &[u8]) {
        self.bytes.extend_from_slice(data);
    }

    fn finish(&mut self) -> Result<&[u8]> {
        Ok(self.end())
    }
}
