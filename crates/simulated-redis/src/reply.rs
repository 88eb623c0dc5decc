/// The answer to a command, or a message.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    Nil,
    /// An array that is not there, which version 2 of the protocol tells from [`Reply::Nil`].
    NilArray,
    Int(i64),
    Simple(String),
    Error(String),
    Bulk(Vec<u8>),
    Array(Vec<Reply>),
    Map(Vec<(Reply, Reply)>),
    /// A message, or the answer to a request for messages.
    Push(Vec<Reply>),
}

/// The version of the protocol that a client has asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protocol {
    #[default]
    Resp2,
    Resp3,
}

impl Reply {
    pub(crate) fn ok() -> Reply {
        Reply::simple("OK")
    }

    pub(crate) fn simple(text: &str) -> Reply {
        Reply::Simple(text.to_owned())
    }

    pub(crate) fn error(text: impl Into<String>) -> Reply {
        Reply::Error(text.into())
    }

    pub(crate) fn text(text: &str) -> Reply {
        Reply::Bulk(text.as_bytes().to_vec())
    }

    pub(crate) fn bulk_or_nil(bytes: Option<Vec<u8>>) -> Reply {
        bytes.map_or(Reply::Nil, Reply::Bulk)
    }

    pub(crate) fn bulks(all: impl IntoIterator<Item = Vec<u8>>) -> Reply {
        Reply::Array(all.into_iter().map(Reply::Bulk).collect())
    }

    pub(crate) fn count(count: usize) -> Reply {
        Reply::Int(i64::try_from(count).unwrap_or(i64::MAX))
    }

    pub(crate) fn flag(is_so: bool) -> Reply {
        Reply::Int(i64::from(is_so))
    }

    /// Writes the reply as a client reads it.
    pub fn write(&self, protocol: Protocol, out: &mut Vec<u8>) {
        let is_new = protocol == Protocol::Resp3;
        match self {
            Reply::Nil if is_new => out.extend_from_slice(b"_\r\n"),
            Reply::Nil => out.extend_from_slice(b"$-1\r\n"),
            Reply::NilArray if is_new => out.extend_from_slice(b"_\r\n"),
            Reply::NilArray => out.extend_from_slice(b"*-1\r\n"),
            Reply::Int(number) => line(out, ':', &number.to_string()),
            Reply::Simple(text) => line(out, '+', text),
            Reply::Error(text) => line(out, '-', &text.replace(['\r', '\n'], " ")),
            Reply::Bulk(bytes) => {
                line(out, '$', &bytes.len().to_string());
                out.extend_from_slice(bytes);
                out.extend_from_slice(b"\r\n");
            }
            Reply::Array(all) => list(out, '*', protocol, all),
            Reply::Push(all) => list(out, if is_new { '>' } else { '*' }, protocol, all),
            Reply::Map(pairs) => {
                let (kind, of_each) = if is_new { ('%', 1) } else { ('*', 2) };
                line(out, kind, &(pairs.len() * of_each).to_string());
                for (key, value) in pairs {
                    key.write(protocol, out);
                    value.write(protocol, out);
                }
            }
        }
    }
}

fn list(out: &mut Vec<u8>, kind: char, protocol: Protocol, all: &[Reply]) {
    line(out, kind, &all.len().to_string());
    for reply in all {
        reply.write(protocol, out);
    }
}

fn line(out: &mut Vec<u8>, kind: char, text: &str) {
    out.push(kind as u8);
    out.extend_from_slice(text.as_bytes());
    out.extend_from_slice(b"\r\n");
}
