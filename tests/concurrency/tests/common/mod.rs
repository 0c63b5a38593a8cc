//! How a check is run.

use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, Runner};

/// Orders that each scheduler tries; `ISOVEC_ORDERS` names another number for a longer search.
const ORDERS: usize = 10_000;

/// Places at which a fault may hide: an order that finds it needs so many switches at most.
const DEPTH: usize = 3;

/// Tries orders of `check`'s threads at random and by rank (probabilistic concurrency testing,
/// Burckhardt et al. 2010, which finds what needs few switches in unlikely places).
pub(crate) fn in_many_orders(check: impl Fn() + Send + Sync + Clone + 'static) {
    let orders = std::env::var("ISOVEC_ORDERS").ok();
    let orders = orders.map_or(ORDERS, |orders| orders.parse().unwrap());
    let config = || {
        let mut config = Config::default();
        // Futures and errors are moved about on the stack.
        config.stack_size = 1 << 18;
        config
    };
    Runner::new(RandomScheduler::new(orders), config()).run(check.clone());
    Runner::new(PctScheduler::new(DEPTH, orders), config()).run(check);
}
