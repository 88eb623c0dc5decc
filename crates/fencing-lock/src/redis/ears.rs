use crate::wakes::Wakes;
use redis::aio::{AsyncPushSender, SendError};
use redis::{PushInfo, PushKind, Value};
use std::sync::Arc;

/// The receiver of everything that the server sends unasked on a connection. The
/// connection drops it when it ends, in any way.
pub(super) struct Ears {
    pub(super) wakes: Arc<Wakes>,
    /// Hand-offs come in on this channel, as `owner token`.
    pub(super) hand_offs: String,
}

impl AsyncPushSender for Ears {
    fn send(&self, info: PushInfo) -> Result<(), SendError> {
        if let (PushKind::Message, [Value::BulkString(channel), Value::BulkString(word)]) =
            (&info.kind, info.data.as_slice())
        {
            let (channel, word) = (
                String::from_utf8_lossy(channel),
                String::from_utf8_lossy(word),
            );
            match word.split_once(' ').filter(|_| channel == self.hand_offs) {
                Some((owner, token)) => self.wakes.told(owner, token),
                None => self.wakes.told(&channel, &word),
            }
        }
        Ok(())
    }
}

impl Drop for Ears {
    fn drop(&mut self) {
        self.wakes.end();
    }
}
