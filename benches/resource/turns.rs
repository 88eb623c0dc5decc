//! Candidates that take turns, so that whatever else the machine does meets both of them.

use crate::numbers::{Spread, percentile};
use crate::{Arguments, Trouble};
use futures_util::future::try_join_all;
use std::time::{Duration, Instant};

/// One connection of a candidate.
pub trait Writer {
    /// Writes once, and returns when the write is durable.
    async fn write(&mut self) -> Result<(), Trouble>;
}

/// Not counted, of each turn.
const WARM_UP: Duration = Duration::from_millis(300);

/// Writes a second of all connections together.
async fn turn<W: Writer>(writers: &mut [W], lasting: Duration) -> Result<f64, Trouble> {
    let begin = Instant::now() + WARM_UP;
    let end = begin + lasting;
    let written = writers.iter_mut().map(async |writer| {
        let mut count = 0_u64;
        loop {
            writer.write().await?;
            let now = Instant::now();
            if now >= end {
                return Ok::<u64, Trouble>(count);
            }
            count += u64::from(now >= begin);
        }
    });
    let counts = try_join_all(written).await?;
    Ok(counts.iter().sum::<u64>() as f64 / lasting.as_secs_f64())
}

/// Prints the rates of both. Returns the ratio of ours to the floor.
pub async fn contest<F: Writer, O: Writer>(
    arguments: &Arguments,
    floor: (&str, &mut [F]),
    ours: (&str, &mut [O]),
) -> Result<Spread, Trouble> {
    let (mut floors, mut own) = (Vec::new(), Vec::new());
    for round in 0..arguments.rounds.max(1) {
        // Nobody is always the first.
        for place in 0..2 {
            match (place + round) % 2 {
                0 => floors.push(turn(floor.1, arguments.turn()).await?),
                _ => own.push(turn(ours.1, arguments.turn()).await?),
            }
        }
    }
    let ratio = Spread::of_ratios(&own, &floors);
    println!("\n writes/s   x floor (quartiles)    candidate");
    for (name, rates) in [(floor.0, &floors), (ours.0, &own)] {
        let rate = percentile(rates, 0.5);
        let ratio = Spread::of_ratios(rates, &floors);
        println!("{rate:>9.0}   {ratio:<22} {name}");
    }
    Ok(ratio)
}
