//! A timer more precise than tokio's, which fires up to a millisecond late.

use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use std::future::pending;
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::time::{Instant, sleep_until};

/// The alarm of one link. A link that never waits for a time has no timer.
pub enum Alarm {
    /// Tokio's timer: the system has no file descriptor left, or a test moves the clock.
    Coarse,
    Unused,
    Precise(AsyncFd<Timer>),
}

pub struct Timer(TimerFd);

impl AsRawFd for Timer {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

impl Alarm {
    /// Returns at this time, or never.
    pub async fn until(&mut self, time: Option<Instant>) {
        let Some(time) = time else {
            return pending().await;
        };
        if let Alarm::Unused = self {
            *self = timer().map_or(Alarm::Coarse, Alarm::Precise);
        }
        if let Alarm::Precise(timer) = self
            && ring(timer, time).await.is_ok()
        {
            return;
        }
        sleep_until(time).await;
    }
}

fn timer() -> io::Result<AsyncFd<Timer>> {
    let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
    let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?;
    // SAFETY: the timer owns its descriptor, and nobody replaces or closes it before the AsyncFd is
    // dropped.
    let registered = unsafe { AsyncFd::register_with_interest(Timer(timer), Interest::READABLE) };
    Ok(registered?)
}

async fn ring(timer: &AsyncFd<Timer>, time: Instant) -> io::Result<()> {
    let left = time.saturating_duration_since(Instant::now());
    // Zero would disarm it.
    let left = TimeSpec::from_duration(left.max(Duration::from_nanos(1)));
    let Timer(fd) = timer.get_ref();
    fd.set(Expiration::OneShot(left), TimerSetTimeFlags::empty())?;
    loop {
        let mut ready = timer.readable().await?;
        // It may still be called ready for a time that was set before.
        if let Ok(rung) = ready.try_io(|timer| Ok(timer.get_ref().0.wait()?)) {
            return rung;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_rings_on_time_and_within_a_millisecond() {
        let mut alarm = Alarm::Unused;
        let mut late: Vec<Duration> = Vec::new();
        for _ in 0..21 {
            let time = Instant::now() + Duration::from_micros(2_300);
            alarm.until(Some(time)).await;
            late.push(
                Instant::now()
                    .checked_duration_since(time)
                    .expect("not too early"),
            );
        }
        assert!(matches!(alarm, Alarm::Precise(_)));
        late.sort();
        assert!(
            late[late.len() / 2] < Duration::from_micros(700),
            "{late:?}"
        );
    }

    #[tokio::test]
    async fn a_later_time_replaces_one_that_nobody_waited_for() {
        let mut alarm = Alarm::Unused;
        let start = Instant::now();
        tokio::select! {
            biased;
            () = alarm.until(Some(start + Duration::from_millis(5))) => panic!("it waits"),
            () = std::future::ready(()) => {}
        }
        std::thread::sleep(Duration::from_millis(10));
        // The first time has passed, so the timer is ready for it.
        tokio::task::yield_now().await;
        alarm.until(Some(start + Duration::from_millis(50))).await;
        assert!(start.elapsed() >= Duration::from_millis(50));
    }
}
