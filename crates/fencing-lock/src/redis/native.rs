use super::bounded::RedisConnection;
use super::reply::Reply;
use redis::{Pipeline, RedisError, Value, cmd};

/// The command of newer servers that deletes a key if it has a certain value. It does what
/// `scripts/release.lua` does where nobody has to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CompareAndDelete {
    /// Valkey 9.0
    DelIfEq,
    /// Redis 8.4
    DelEx,
}

impl CompareAndDelete {
    /// Asks the server whether it has the command. A server that does not say gets the
    /// script.
    pub(super) async fn of(connection: &mut RedisConnection) -> Option<CompareAndDelete> {
        let mut ask = cmd("COMMAND");
        ask.arg("INFO").arg("DELIFEQ").arg("DELEX");
        let known: Value = ask.query_async(&mut **connection).await.ok()?;
        let Value::Array(known) = known else {
            return None;
        };
        match known.as_slice() {
            [Value::Array(_), _] => Some(CompareAndDelete::DelIfEq),
            [_, Value::Array(_)] => Some(CompareAndDelete::DelEx),
            _ => None,
        }
    }

    /// Releases in one step, which also says who holds the lock otherwise. The number of
    /// the request comes back with it.
    pub(super) async fn release(
        self,
        connection: &mut RedisConnection,
        lock: &str,
        owner: &str,
        number: u64,
    ) -> Result<Reply, RedisError> {
        let mut step = Pipeline::with_capacity(3);
        step.atomic();
        match self {
            CompareAndDelete::DelIfEq => step.cmd("DELIFEQ").arg(lock).arg(owner),
            CompareAndDelete::DelEx => step.cmd("DELEX").arg(lock).arg("IFEQ").arg(owner),
        };
        step.cmd("GET").arg(lock).cmd("ECHO").arg(number);
        let answer: Vec<Value> = step.query_async(&mut **connection).await?;
        let code = match answer.as_slice() {
            [Value::Int(1), ..] => 1,
            [Value::Int(0), Value::Nil, _] => 0,
            _ => 2,
        };
        Reply::echoed(code, answer.last(), number)
    }
}
