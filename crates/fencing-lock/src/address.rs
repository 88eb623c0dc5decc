/// Returns the address without user and password, so that it may be shown.
pub fn without_password(address: &str) -> String {
    let (scheme, rest) = match address.find("://") {
        Some(end) => address.split_at(end + 3),
        None => ("", address),
    };
    match rest.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}***@{host}"),
        None => address.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_shown_however_wrong_the_rest_is() {
        for (address, shown) in [
            ("127.0.0.1:6379", "127.0.0.1:6379"),
            ("redis://h:1/0", "redis://h:1/0"),
            ("redis://:s3cret@127.0.0.1:x", "redis://***@127.0.0.1:x"),
            ("user:s3cret@h", "***@h"),
            ("redis://:s3@cr/et@h:1", "redis://***@h:1"),
            ("", ""),
        ] {
            assert_eq!(without_password(address), shown);
        }
    }
}
