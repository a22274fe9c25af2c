//! The order in which items are asked.

use agent_host_sdk::Turn;

/// The first `count` of `all` items, or as many of them chosen and ordered at random. The random
/// numbers follow from what the step reads, so that the same step, run again, makes the same
/// choice. The order is kept from then on.
pub(crate) fn order(turn: Turn<'_>, all: usize, count: usize, shuffle: bool) -> Vec<usize> {
    let mut order: Vec<usize> = (0..all).collect();
    if shuffle {
        let seed = format!("{} {} {}", turn.agent_id(), turn.user(), turn.now_ms());
        let mut chance = Chance::seeded(&seed);
        for last in (1..all).rev() {
            order.swap(last, chance.below(last + 1));
        }
    }
    order.truncate(count);
    order
}

/// SplitMix64: short, and good enough for an order.
struct Chance(u64);

impl Chance {
    /// Seeded with the FNV-1a hash of some text.
    fn seeded(text: &str) -> Self {
        Self(text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        }))
    }

    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let bound = u64::try_from(bound).unwrap_or(u64::MAX).max(1);
        usize::try_from((mixed ^ (mixed >> 31)) % bound).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_host_sdk::harness::Scene;

    #[test]
    fn the_same_turn_gets_the_same_order_and_another_user_or_time_another_one() {
        let of = |scene: Scene| order(scene.turn(), 30, 30, true);
        let order_of_ann = of(Scene::new().user("ann"));
        assert_eq!(order_of_ann, of(Scene::new().user("ann")));
        assert_ne!(order_of_ann, of(Scene::new().user("ben")));
        assert_ne!(order_of_ann, of(Scene::new().user("ann").now_ms(1)));
        let mut sorted = order_of_ann;
        sorted.sort_unstable();
        assert_eq!(sorted, (0..30).collect::<Vec<_>>());
    }

    #[test]
    fn without_chance_the_first_items_are_asked() {
        assert_eq!(order(Scene::new().turn(), 5, 3, false), [0, 1, 2]);
        assert_eq!(order(Scene::new().turn(), 5, 3, true).len(), 3);
    }
}
