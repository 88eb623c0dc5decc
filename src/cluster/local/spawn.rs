//! Starts children that cannot outlive us, whatever ends us.

use super::*;
use nix::unistd::getppid;
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};
use tokio::process::Child;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

struct Order {
    command: Command,
    /// The runtime on which the caller waits for the child.
    runtime: Handle,
    answer: oneshot::Sender<io::Result<Child>>,
}

/// Starts a process that the kernel kills when this one ends, even by `kill -9`.
///
/// The kernel watches the thread that made the child, not the process. So one thread, which lives
/// as long as the process does, makes all children.
pub async fn spawn(command: Command) -> io::Result<Child> {
    static MAKER: OnceLock<Sender<Order>> = OnceLock::new();
    let maker = MAKER.get_or_init(|| {
        let (send, orders) = channel::<Order>();
        std::thread::spawn(move || {
            for order in orders {
                let _inside = order.runtime.enter();
                // If nobody waits any more, the child is killed when it is dropped.
                let _ = order.answer.send(make(order.command));
            }
        });
        send
    });
    let (answer, child) = oneshot::channel();
    let order = Order {
        command,
        runtime: Handle::current(),
        answer,
    };
    let gone = || io::Error::other("the thread that makes processes has ended");
    maker.send(order).map_err(|_| gone())?;
    child.await.map_err(|_| gone())?
}

fn make(mut command: Command) -> io::Result<Child> {
    let parent = Pid::this();
    // A group of its own: Ctrl-C at the terminal is for us, because we have to heal first.
    command.process_group(0).kill_on_drop(true);
    // SAFETY: what runs between fork and exec makes two system calls, and
    // neither allocates nor takes a lock.
    unsafe {
        command.pre_exec(move || {
            // On other systems there is no such thing, and only the sweep ends it.
            #[cfg(target_os = "linux")]
            nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL)?;
            // We may have ended before it was set.
            if getppid() == parent {
                Ok(())
            } else {
                Err(io::ErrorKind::NotFound.into())
            }
        });
    }
    command.spawn()
}
