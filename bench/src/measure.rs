//! Measurements of two ways of doing the same thing, in turns. Other load on the machine thus falls
//! on both.

use std::time::{Duration, Instant};

/// Number of measurements of each of the two.
pub(crate) const ROUNDS: usize = 5;
/// The share of measured values that are below the reported one where all but one in a hundred are.
const P99: f64 = 0.99;

/// The medians of what was measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pair {
    /// This host.
    pub(crate) ours: f64,
    /// The peer that it is compared with.
    pub(crate) peer: f64,
}

/// Measures ours, the peer, ours, the peer …, and takes the median of each. The first of each is
/// not counted: it warms up.
///
/// # Errors
/// The first that either of them returns.
pub(crate) async fn in_turns(
    mut ours: impl AsyncFnMut() -> anyhow::Result<f64>,
    mut peer: impl AsyncFnMut() -> anyhow::Result<f64>,
) -> anyhow::Result<Pair> {
    ours().await?;
    peer().await?;
    let mut a = Vec::with_capacity(ROUNDS);
    let mut b = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        a.push(ours().await?);
        b.push(peer().await?);
    }
    Ok(Pair {
        ours: median(&mut a),
        peer: median(&mut b),
    })
}

/// Returns the middle value; 0 without any.
pub(crate) fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// Returns the value below which all but one in a hundred are; 0 without any.
pub(crate) fn p99(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a place in a list"
    )]
    let place = (values.len() as f64 * P99) as usize;
    values.get(place).copied().unwrap_or_default()
}

/// Microseconds that each of `times` repetitions took on average.
///
/// # Errors
/// The first that a repetition returns.
pub(crate) async fn mean_us(
    times: u32,
    mut once: impl AsyncFnMut() -> anyhow::Result<()>,
) -> anyhow::Result<f64> {
    let began = Instant::now();
    for _ in 0..times {
        once().await?;
    }
    Ok(us(began.elapsed()) / f64::from(times))
}

/// A duration in microseconds.
pub(crate) fn us(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

/// A duration in milliseconds.
pub(crate) fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::{median, p99};

    #[test]
    fn the_median_is_the_middle_one() {
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&mut []), 0.0);
    }

    #[test]
    fn one_in_a_hundred_is_above_the_reported_one() {
        let mut values: Vec<f64> = (1..=200).rev().map(f64::from).collect();
        assert_eq!(p99(&mut values), 199.0);
        assert_eq!(p99(&mut []), 0.0);
    }
}
