//! Costs of models: a price for each million tokens, and sums in millionths of the prices'
//! currency.
//!
//! The currency is not recorded: all prices of a host are in the same one. A sum is computed once,
//! when an attempt at a model ends, and stored with the attempt. A later change of a price thus
//! changes no past sum.

use crate::thread::model::Usage;

/// The highest price of a million tokens.
pub const PER_MILLION_MAX: f64 = 1_000_000.0;
/// Units of a stored price in one millionth. Prices are stored as whole numbers.
const NANOS: u64 = 1_000;

/// Price of a model, exact to a thousandth of a millionth for each token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Price {
    /// Price of a token of the prompt.
    input: u64,
    /// Price of a cached token of the prompt.
    cached: u64,
    /// Price of a token of the reply.
    output: u64,
}

impl Price {
    /// Makes the price from the prices of a million prompt tokens, cached prompt tokens and reply
    /// tokens. Without a price, cached tokens cost as much as other prompt tokens. None if a price
    /// is invalid: negative, beyond [`PER_MILLION_MAX`], or no number.
    #[must_use]
    pub fn per_million(input: f64, cached: Option<f64>, output: f64) -> Option<Self> {
        Some(Self {
            input: nanos(input)?,
            cached: nanos(cached.unwrap_or(input))?,
            output: nanos(output)?,
        })
    }

    /// Returns the cost of some tokens in millionths, rounded up.
    #[must_use]
    pub fn cost(&self, usage: Usage) -> u64 {
        let cached = usage.cached_tokens.min(usage.input_tokens);
        let sum = |tokens: u64, price: u64| u128::from(tokens) * u128::from(price);
        let nanos = sum(usage.input_tokens - cached, self.input)
            + sum(cached, self.cached)
            + sum(usage.output_tokens, self.output);
        u64::try_from(nanos.div_ceil(u128::from(NANOS))).unwrap_or(u64::MAX)
    }

    /// Returns the highest cost of some tokens of prompt and reply. It covers any share of tokens
    /// from a cache, and any kind of tokens in the reply.
    #[must_use]
    pub fn at_most(&self, prompt: u64, reply: u64) -> u64 {
        let input = self.input.max(self.cached);
        let dearest = Self {
            input,
            cached: input,
            output: input.max(self.output),
        };
        dearest.cost(Usage {
            input_tokens: prompt,
            output_tokens: reply,
            cached_tokens: 0,
        })
    }

    /// The higher of two prices, field by field.
    #[must_use]
    pub fn or_dearer(self, other: Self) -> Self {
        Self {
            input: self.input.max(other.input),
            cached: self.cached.max(other.cached),
            output: self.output.max(other.output),
        }
    }
}

/// The price of a million tokens is also the number of millionths for one token.
fn nanos(per_million: f64) -> Option<u64> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it was just compared with its bounds"
    )]
    (0.0..=PER_MILLION_MAX)
        .contains(&per_million)
        .then(|| (per_million * NANOS as f64).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::{PER_MILLION_MAX, Price};
    use crate::thread::model::Usage;

    #[test]
    fn tokens_cost_what_a_million_of_them_costs_and_a_begun_millionth_is_a_whole_one() {
        let price = Price::per_million(3.0, Some(0.3), 15.0).unwrap();
        for (input_tokens, cached_tokens, output_tokens, expected) in [
            (0, 0, 0, 0),
            (1_000_000, 0, 0, 3_000_000),
            (0, 0, 1_000_000, 15_000_000),
            (1_000_000, 1_000_000, 0, 300_000),
            (1, 1, 0, 1),
            (10, 4, 2, 50),
            // More from a cache than there is makes nothing cheaper.
            (10, 40, 0, 3),
            (u64::MAX, 0, u64::MAX, u64::MAX),
        ] {
            assert_eq!(
                price.cost(Usage {
                    input_tokens,
                    output_tokens,
                    cached_tokens
                }),
                expected,
                "{input_tokens} {cached_tokens}"
            );
        }
        assert_eq!(
            (
                price.at_most(0, 100),
                price.at_most(10, 100),
                price.at_most(0, 0)
            ),
            (1_500, 1_530, 0)
        );
        let uncached = Price::per_million(0.1, None, 0.0).unwrap();
        assert_eq!(
            uncached.cost(Usage {
                input_tokens: 30,
                output_tokens: 9,
                cached_tokens: 30
            }),
            3
        );
        assert_eq!(uncached.or_dearer(price), price);
    }

    #[test]
    fn what_is_negative_too_high_or_no_number_is_no_price() {
        for wrong in [-0.1, PER_MILLION_MAX + 1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(Price::per_million(wrong, None, 1.0), None, "{wrong}");
            assert_eq!(Price::per_million(1.0, Some(wrong), 1.0), None, "{wrong}");
            assert_eq!(Price::per_million(1.0, None, wrong), None, "{wrong}");
        }
    }
}
