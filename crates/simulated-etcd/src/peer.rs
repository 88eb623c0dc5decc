//! What members say to each other.

use crate::api::*;
use prost::{Message, Oneof};

#[derive(Clone, PartialEq, Message)]
pub struct PeerMessage {
    #[prost(uint64, tag = "1")]
    pub from: u64,
    #[prost(uint64, tag = "2")]
    pub term: u64,
    #[prost(oneof = "Word", tags = "3, 4, 5, 6, 7, 8, 9")]
    pub word: Option<Word>,
}

#[derive(Clone, PartialEq, Oneof)]
pub enum Word {
    #[prost(message, tag = "3")]
    Elect(Elect),
    #[prost(message, tag = "4")]
    Vote(Vote),
    #[prost(message, tag = "5")]
    Append(Append),
    #[prost(message, tag = "6")]
    Appended(Appended),
    /// For the log of the leader.
    #[prost(message, tag = "7")]
    Propose(Command),
    #[prost(message, tag = "8")]
    AskLease(AskLease),
    #[prost(message, tag = "9")]
    LeaseIs(LeaseIs),
}

/// Asks for a vote, or before an election whether there would be one: so a member that was cut
/// off does not depose a leader by its high term.
#[derive(Clone, PartialEq, Message)]
pub struct Elect {
    #[prost(bool, tag = "1")]
    pub is_trial: bool,
    #[prost(uint64, tag = "2")]
    pub last_index: u64,
    #[prost(uint64, tag = "3")]
    pub last_term: u64,
}

#[derive(Clone, PartialEq, Message)]
pub struct Vote {
    #[prost(bool, tag = "1")]
    pub is_trial: bool,
    #[prost(bool, tag = "2")]
    pub is_yes: bool,
}

/// Continues the log of a follower; without entries it is a heartbeat.
#[derive(Clone, PartialEq, Message)]
pub struct Append {
    #[prost(uint64, tag = "1")]
    pub after_index: u64,
    #[prost(uint64, tag = "2")]
    pub after_term: u64,
    #[prost(message, repeated, tag = "3")]
    pub entries: Vec<Entry>,
    #[prost(uint64, tag = "4")]
    pub commit: u64,
}

#[derive(Clone, PartialEq, Message)]
pub struct Appended {
    /// The log does not go on from there.
    #[prost(bool, tag = "1")]
    pub is_refused: bool,
    /// The log is that of the leader up to this, or may be.
    #[prost(uint64, tag = "2")]
    pub index: u64,
}

#[derive(Clone, PartialEq, Message)]
pub struct Entry {
    #[prost(uint64, tag = "1")]
    pub term: u64,
    #[prost(message, optional, tag = "2")]
    pub command: Option<Command>,
}

/// What every member carries out.
#[derive(Clone, PartialEq, Message)]
pub struct Command {
    /// Names the request, at the member that somebody asked.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    #[prost(oneof = "Deed", tags = "2, 3, 4, 5, 6")]
    pub deed: Option<Deed>,
}

/// None is a read: it shows that whoever put it into the log led a majority.
#[derive(Clone, PartialEq, Oneof)]
pub enum Deed {
    #[prost(message, tag = "2")]
    Put(PutRequest),
    #[prost(message, tag = "3")]
    DeleteRange(DeleteRangeRequest),
    #[prost(message, tag = "4")]
    Txn(TxnRequest),
    #[prost(message, tag = "5")]
    Grant(LeaseGrantRequest),
    #[prost(message, tag = "6")]
    Revoke(LeaseRevokeRequest),
}

/// Asks the leader, whose clock counts, for the time that is left of a lease.
#[derive(Clone, PartialEq, Message)]
pub struct AskLease {
    #[prost(uint64, tag = "1")]
    pub number: u64,
    #[prost(int64, tag = "2")]
    pub lease: i64,
    /// It begins anew.
    #[prost(bool, tag = "3")]
    pub renew: bool,
}

#[derive(Clone, PartialEq, Message)]
pub struct LeaseIs {
    #[prost(uint64, tag = "1")]
    pub number: u64,
    /// None if there is no such lease.
    #[prost(int64, optional, tag = "2")]
    pub left_s: Option<i64>,
}
