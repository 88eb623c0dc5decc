use crate::wakes::Wakes;
use std::sync::Arc;

/// The receiver of everything that the server sends unasked on a connection. The
/// connection drops it when it ends, in any way.
pub(super) struct Ears {
    pub(super) wakes: Arc<Wakes>,
    /// Hand-offs come in on this channel, as `owner token`.
    pub(super) hand_offs: String,
}

impl Ears {
    pub(super) fn hear(&self, channel: &str, word: &str) {
        match word.split_once(' ').filter(|_| channel == self.hand_offs) {
            Some((owner, token)) => self.wakes.told(owner, token),
            None => self.wakes.told(channel, word),
        }
    }
}

impl Drop for Ears {
    fn drop(&mut self) {
        self.wakes.end();
    }
}
