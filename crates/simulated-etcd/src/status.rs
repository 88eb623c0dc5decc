/// A failure as gRPC reports it, with the code and the words of etcd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    pub code: u8,
    pub message: String,
}

pub const UNKNOWN: u8 = 2;
const INVALID_ARGUMENT: u8 = 3;
const NOT_FOUND: u8 = 5;
const FAILED_PRECONDITION: u8 = 9;
const OUT_OF_RANGE: u8 = 11;
const UNIMPLEMENTED: u8 = 12;
const INTERNAL: u8 = 13;
const UNAVAILABLE: u8 = 14;

impl Status {
    pub fn new(code: u8, message: impl Into<String>) -> Status {
        let message = message.into();
        Status { code, message }
    }

    pub fn empty_key() -> Status {
        Status::new(INVALID_ARGUMENT, "etcdserver: key is not provided")
    }

    pub fn duplicate_key() -> Status {
        let message = "etcdserver: duplicate key given in txn request";
        Status::new(INVALID_ARGUMENT, message)
    }

    pub fn no_lease() -> Status {
        Status::new(NOT_FOUND, "etcdserver: requested lease not found")
    }

    pub fn lease_exists() -> Status {
        Status::new(FAILED_PRECONDITION, "etcdserver: lease already exists")
    }

    pub fn long_lease() -> Status {
        Status::new(OUT_OF_RANGE, "etcdserver: too large lease TTL")
    }

    pub fn future_revision() -> Status {
        let message = "etcdserver: mvcc: required revision is a future revision";
        Status::new(OUT_OF_RANGE, message)
    }

    /// The leader is another by now.
    pub fn not_primary() -> Status {
        Status::new(UNKNOWN, "not a primary lessor")
    }

    pub fn no_leader() -> Status {
        Status::new(UNAVAILABLE, "etcdserver: no leader")
    }

    pub fn too_slow() -> Status {
        Status::new(UNAVAILABLE, "etcdserver: request timed out")
    }

    /// The session of a lock is over.
    pub fn session_over() -> Status {
        Status::new(UNKNOWN, "mutex: session is expired")
    }

    pub fn not_simulated(what: &str) -> Status {
        Status::new(UNIMPLEMENTED, format!("{what} is not simulated"))
    }

    pub fn garbage(what: impl ToString) -> Status {
        Status::new(INTERNAL, what.to_string())
    }
}
