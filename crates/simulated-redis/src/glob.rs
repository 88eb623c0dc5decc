/// Returns whether a name fits a pattern with `*`, `?`, `[a-z]`, `[^a]` and `\`.
pub(crate) fn fits(pattern: &[u8], name: &[u8]) -> bool {
    let Some((first, rest)) = pattern.split_first() else {
        return name.is_empty();
    };
    let (head, tail) = match name.split_first() {
        Some((head, tail)) => (Some(*head), tail),
        None => (None, name),
    };
    match (first, head) {
        (b'*', _) => (0..=name.len()).any(|from| fits(rest, &name[from..])),
        (_, None) => false,
        (b'?', Some(_)) => fits(rest, tail),
        (b'[', Some(head)) => {
            let (is_in, rest) = class(rest, head);
            is_in && fits(rest, tail)
        }
        (b'\\', Some(head)) if !rest.is_empty() => rest[0] == head && fits(&rest[1..], tail),
        (first, Some(head)) => *first == head && fits(rest, tail),
    }
}

/// Reads a class behind its bracket; returns whether the byte is in it, and what follows it.
fn class(mut rest: &[u8], byte: u8) -> (bool, &[u8]) {
    let negated = rest.first() == Some(&b'^');
    if negated {
        rest = &rest[1..];
    }
    let mut is_in = false;
    loop {
        match rest {
            [] => break,
            [b']', ..] => {
                rest = &rest[1..];
                break;
            }
            [b'\\', one, ..] => {
                is_in |= *one == byte;
                rest = &rest[2..];
            }
            [from, b'-', to, ..] => {
                is_in |= (*from.min(to)..=*from.max(to)).contains(&byte);
                rest = &rest[3..];
            }
            [one, ..] => {
                is_in |= *one == byte;
                rest = &rest[1..];
            }
        }
    }
    (is_in != negated, rest)
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn patterns_fit_what_they_should() {
        for (pattern, name, expected) in [
            ("*", "", true),
            ("a*c", "abbc", true),
            ("a*c", "abb", false),
            ("a?c", "abc", true),
            ("a?", "a", false),
            ("[a-c]x", "bx", true),
            ("[^a-c]x", "bx", false),
            ("[^a]x", "bx", true),
            (r"a\*", "a*", true),
            (r"a\*", "ab", false),
        ] {
            let is_so = fits(pattern.as_bytes(), name.as_bytes());
            assert_eq!(is_so, expected, "{pattern} {name}");
        }
    }
}
