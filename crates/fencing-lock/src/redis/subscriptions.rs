use super::link::{Open, RedisLink};
use crate::LockProblem;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::Mutex;

/// The channels that this process listens to.
///
/// The mutex is held while the server is asked, so that subscribing and
/// unsubscribing reach it in the order in which they were decided.
pub(super) struct Subscriptions {
    link: Arc<RedisLink>,
    channels: Mutex<BTreeMap<String, Channel>>,
}

#[derive(Default)]
struct Channel {
    listeners: usize,
    /// The connection on which the server was asked for it last.
    asked_on: Option<Arc<Open>>,
    confirmed: bool,
}

/// One listener of a channel. The last one to be dropped unsubscribes.
pub(super) struct Listener {
    subscriptions: Arc<Subscriptions>,
    channel: String,
}

impl Subscriptions {
    pub(super) fn new(link: Arc<RedisLink>) -> Subscriptions {
        let channels = Mutex::default();
        Subscriptions { link, channels }
    }

    pub(super) async fn listener(self: &Arc<Subscriptions>, channel: String) -> Listener {
        let mut channels = self.channels.lock().await;
        channels.entry(channel.clone()).or_default().listeners += 1;
        Listener {
            subscriptions: self.clone(),
            channel,
        }
    }

    async fn leave(&self, name: &str) {
        let mut channels = self.channels.lock().await;
        let Some(channel) = channels.get_mut(name) else {
            return;
        };
        channel.listeners -= 1;
        if channel.listeners > 0 {
            return;
        }
        let asked_on = channel.asked_on.take();
        channels.remove(name);
        if let Some(open) = asked_on.filter(|open| !open.wakes.are_over()) {
            // If that fails, messages come that nobody listens to.
            let _unknown = self.link.unsubscribe(&open, name).await;
        }
    }
}

impl Listener {
    pub(super) fn channel(&self) -> &str {
        &self.channel
    }

    /// Returns a connection on which the channel is certainly subscribed; a new one if
    /// the last broke.
    pub(super) async fn subscribed(&self) -> Result<Arc<Open>, LockProblem> {
        let Subscriptions { link, channels } = &*self.subscriptions;
        let mut channels = channels.lock().await;
        let channel = channels.entry(self.channel.clone()).or_default();
        let still = channel.asked_on.clone().filter(|open| {
            let lasts = !open.wakes.are_over();
            channel.confirmed && lasts
        });
        if let Some(open) = still {
            return Ok(open);
        }
        let open = link.open().await?;
        channel.confirmed = false;
        channel.asked_on = Some(open.clone());
        link.subscribe(&open, &self.channel).await?;
        channel.confirmed = true;
        Ok(open)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let subscriptions = self.subscriptions.clone();
        let channel = std::mem::take(&mut self.channel);
        let env = self.subscriptions.link.env();
        env.in_background(async move { subscriptions.leave(&channel).await });
    }
}
