//! AWS Signature Version 4.

use super::settings::AwsCredentials;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::time::{SystemTime, UNIX_EPOCH};

/// Where and when a signature counts.
pub struct Scope<'a> {
    pub region: &'a str,
    pub service: &'a str,
    /// As [`timestamp`] writes it.
    pub at: &'a str,
}

impl Scope<'_> {
    /// Returns the scope as a credential names it, without the access key.
    pub fn place(&self) -> String {
        let Scope {
            region, service, ..
        } = self;
        format!("{}/{region}/{service}/aws4_request", self.day())
    }

    /// Returns the signature of a canonical request.
    pub fn signature(&self, secret_key: &str, canonical: &str) -> String {
        let digest = hex(&Sha256::digest(canonical.as_bytes()));
        let (at, place) = (self.at, self.place());
        self.sign(
            secret_key,
            &format!("AWS4-HMAC-SHA256\n{at}\n{place}\n{digest}"),
        )
    }

    /// Signs any text with the key that is derived from a secret for this scope.
    pub fn sign(&self, secret_key: &str, text: &str) -> String {
        let secret = format!("AWS4{secret_key}");
        let key = [self.day(), self.region, self.service, "aws4_request"]
            .into_iter()
            .fold(secret.into_bytes(), |key, part| hmac(&key, part));
        hex(&hmac(&key, text))
    }

    fn day(&self) -> &str {
        self.at.split('T').next().unwrap_or_default()
    }
}

/// Returns the header `Authorization` of a request whose path is `/` and that has no query. The
/// names of the headers are in lower case and in the order of the alphabet, and the date and the
/// host are among them.
pub(super) fn authorization(
    credentials: &AwsCredentials,
    scope: &Scope<'_>,
    method: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> String {
    let mut canonical = format!("{method}\n/\n\n");
    let mut signed = String::new();
    for (name, value) in headers {
        let _infallible = writeln!(canonical, "{name}:{}", value.trim());
        signed.push_str(if signed.is_empty() { "" } else { ";" });
        signed.push_str(name);
    }
    let _infallible = write!(canonical, "\n{signed}\n{}", hex(&Sha256::digest(body)));
    let signature = scope.signature(&credentials.secret_key, &canonical);
    let (access_key, place) = (&credentials.access_key, scope.place());
    format!(
        "AWS4-HMAC-SHA256 Credential={access_key}/{place}, SignedHeaders={signed}, \
         Signature={signature}"
    )
}

/// Returns `20150830T123600Z`.
pub fn timestamp(at: SystemTime) -> String {
    let seconds = at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let (day, second) = (seconds / 86_400, seconds % 86_400);
    // Years begin in March here, so that a leap day is the last of its year.
    let shifted = day + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    let year = era * 400 + year + carry;
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

/// Returns the HMAC of a text with SHA-256.
pub fn hmac(key: &[u8], text: impl AsRef<[u8]>) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key may have any length");
    mac.update(text.as_ref());
    mac.finalize().into_bytes().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _infallible = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// The requests of the test suite that AWS publishes for this signature.
    #[test]
    fn the_signatures_are_those_that_aws_publishes() {
        let secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
        let credentials = AwsCredentials::new("AKIDEXAMPLE", secret);
        let scope = Scope {
            region: "us-east-1",
            service: "service",
            at: "20150830T123600Z",
        };
        let host = ("host", "example.amazonaws.com");
        let date = ("x-amz-date", "20150830T123600Z");
        let form = ("content-type", "application/x-www-form-urlencoded");
        for (method, headers, body, signature) in [
            (
                "GET",
                &[host, date][..],
                "",
                "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
            ),
            (
                "POST",
                &[host, date],
                "",
                "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
            ),
            (
                "POST",
                &[form, host, date],
                "Param1=value1",
                "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
            ),
        ] {
            let signed = authorization(&credentials, &scope, method, headers, body.as_bytes());
            assert!(
                signed.ends_with(&format!("Signature={signature}")),
                "{signed}"
            );
            let place = "Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, ";
            assert!(signed.contains(place), "{signed}");
        }
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (unix_s, text) in [
            (0, "19700101T000000Z"),
            (951_782_400, "20000229T000000Z"),
            (951_868_800, "20000301T000000Z"),
            (1_440_938_160, "20150830T123600Z"),
            (1_704_067_199, "20231231T235959Z"),
            (4_107_542_400, "21000301T000000Z"),
        ] {
            assert_eq!(timestamp(UNIX_EPOCH + Duration::from_secs(unix_s)), text);
        }
    }
}
