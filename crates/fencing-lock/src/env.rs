//! What the locks take from outside: the real thing, or a [`World`] that somebody plays.
//!
//! This is the only file of the crate that looks at a wall clock, draws at random, starts
//! a task or opens a stream. Some connections are opened by a client library, and never in a
//! world: those to a MariaDB, and to a ZooKeeper (whose library also has timers and tasks of its
//! own). An etcd is dialled by its library, unless there is a world.
//! Waits use tokio's clock, which a test can pause.

#[cfg(feature = "backend")]
use super::task::Task;
use async_trait::async_trait;
use futures_util::future::BoxFuture;
use std::io;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::SystemTime;
use tokio::io::{AsyncRead, AsyncWrite};
#[cfg(feature = "dials")]
use tokio::net::TcpStream;
#[cfg(feature = "dials")]
use tokio_util::either::Either;
use uuid::Uuid;

/// The surroundings of one process's locks: its wall clock, its chance, its tasks and its
/// connections. They are the real ones unless a [`World`] was given.
///
/// ```
/// # use fencing_lock::{Env, LockError, RedisBackend, RedisSettings, World};
/// # fn example(world: std::sync::Arc<dyn World>) -> Result<(), LockError> {
/// let settings = RedisSettings::default();
/// let backend = RedisBackend::with_env("redis:6379", settings, Env::of(world))?;
/// # Ok(())
/// # }
/// ```
// The real ones are no `World`: so they cost no virtual call and no box.
#[derive(Clone, Default)]
pub struct Env {
    world: Option<Arc<dyn World>>,
}

/// Surroundings that a simulation plays for one process. A client of the locks does the
/// same again if the world and its servers do, on a runtime with one thread and a paused
/// clock.
#[async_trait]
pub trait World: Send + Sync {
    fn wall_clock(&self) -> SystemTime;

    /// Returns the next random number. Names are made of it, so nobody may draw the same
    /// numbers as another process of the same world.
    fn random(&self) -> u64;

    /// Runs a task to its end, or until the process dies.
    fn spawn(&self, task: BoxFuture<'static, ()>);

    /// Opens a connection to a server.
    async fn dial(&self, host: &str, port: u16) -> io::Result<Box<dyn ByteStream>>;
}

/// A connection in both directions.
pub trait ByteStream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> ByteStream for T {}

pub(crate) static REAL: Env = Env { world: None };

impl Env {
    pub fn of(world: Arc<dyn World>) -> Env {
        let world = Some(world);
        Env { world }
    }

    #[cfg(any(feature = "dynamodb", feature = "redlock"))]
    pub(crate) fn wall_clock(&self) -> SystemTime {
        match &self.world {
            None => SystemTime::now(),
            Some(world) => world.wall_clock(),
        }
    }

    pub(crate) fn uuid(&self) -> Uuid {
        match &self.world {
            None => Uuid::new_v4(),
            Some(world) => {
                let (high, low) = (world.random(), world.random());
                let bits = u128::from(high) << 64 | u128::from(low);
                uuid::Builder::from_random_bytes(bits.to_be_bytes()).into_uuid()
            }
        }
    }

    /// Draws a number out of this range.
    pub(crate) fn draw(&self, range: RangeInclusive<u32>) -> u32 {
        match &self.world {
            None => fastrand::u32(range),
            Some(world) => fastrand::Rng::with_seed(world.random()).u32(range),
        }
    }

    /// Runs a task for a caller that cannot wait, such as a drop; best effort. The
    /// backend's time limits end the task. Without a runtime it is not run, and the TTL
    /// has to free the lock.
    pub(crate) fn in_background(&self, task: impl Future<Output = ()> + Send + 'static) {
        match &self.world {
            None => {
                if let Ok(runtime) = tokio::runtime::Handle::try_current() {
                    runtime.spawn(task);
                }
            }
            Some(world) => world.spawn(Box::pin(task)),
        }
    }

    /// Starts a task that ends when the result is dropped.
    #[cfg(feature = "backend")]
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> Task {
        match &self.world {
            None => Task::of_tokio(tokio::spawn(task)),
            Some(world) => {
                let (task, run) = Task::of_world(task);
                world.spawn(run);
                task
            }
        }
    }

    /// Opens a connection to a server.
    #[cfg(feature = "dials")]
    pub async fn dial(&self, host: &str, port: u16) -> io::Result<Dialed> {
        Ok(match &self.world {
            None => {
                let stream = TcpStream::connect((host, port)).await?;
                stream.set_nodelay(true)?;
                Either::Left(stream)
            }
            Some(world) => Either::Right(world.dial(host, port).await?),
        })
    }

    /// Connects to a Unix socket, which is always a real one.
    #[cfg(feature = "redis")]
    pub(crate) async fn dial_socket(&self, path: &std::path::Path) -> io::Result<Dialed> {
        match &self.world {
            None => {
                let stream = tokio::net::UnixStream::connect(path).await?;
                Ok(Either::Right(Box::new(stream)))
            }
            Some(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Returns whether a [`World`] is played, in the place of the real surroundings.
    pub fn is_played(&self) -> bool {
        self.world.is_some()
    }

    /// Returns the world that is played, if these are not the real surroundings.
    #[cfg(any(feature = "etcd", feature = "mariadb"))]
    pub(crate) fn world(&self) -> Option<&Arc<dyn World>> {
        self.world.as_ref()
    }
}

/// A connection that was dialed. A real one is not boxed.
#[cfg(feature = "dials")]
pub type Dialed = Either<TcpStream, Box<dyn ByteStream>>;
