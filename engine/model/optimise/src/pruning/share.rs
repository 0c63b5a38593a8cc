//! How much each region gives, so that a model's vectors change least for the bytes and the multiplications that it loses.

/// Bytes, and multiplications.
pub(super) type Amounts = [usize; 2];

/// What a region can give.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Giver {
    /// What the loss of `0`, `step`, `2 · step` … units costs, in any unit that is the same for all regions.
    pub(super) costs: Vec<f64>,
    /// Units that go together.
    pub(super) step: usize,
    /// What a unit has.
    pub(super) unit: Amounts,
    /// Cost and amounts of the whole region, where it can go as a whole.
    pub(super) whole: Option<(f64, Amounts)>,
}

/// What a region gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Given {
    /// So many units.
    Units(usize),
    /// All of it.
    Whole,
}

impl Giver {
    /// What it gives.
    pub(super) fn amounts(&self, given: Given) -> Amounts {
        match given {
            Given::Units(units) => self.unit.map(|unit| units * unit),
            Given::Whole => self.whole.map_or([0, 0], |(_, amounts)| amounts),
        }
    }

    fn cost(&self, given: Given) -> f64 {
        match given {
            Given::Units(units) => self.costs[units / self.step],
            Given::Whole => self.whole.map_or(f64::INFINITY, |(cost, _)| cost),
        }
    }

    /// All that it can give.
    fn choices(&self) -> impl Iterator<Item = Given> {
        let units = (0..self.costs.len()).map(|at| Given::Units(at * self.step));
        units.chain(self.whole.map(|_| Given::Whole))
    }

    /// All that can be had of it.
    pub(super) fn most(&self) -> Amounts {
        self.choices().fold([0, 0], |most, given| {
            let amounts = self.amounts(given);
            [0, 1].map(|of| most[of].max(amounts[of]))
        })
    }

    /// What is best at these prices.
    fn at(&self, prices: [f64; 2]) -> Given {
        let worth = |given: &Given| self.cost(*given) - paid(self.amounts(*given), prices);
        let best = self.choices().min_by(|a, b| worth(a).total_cmp(&worth(b)));
        best.unwrap_or(Given::Units(0))
    }
}

fn paid(amounts: Amounts, prices: [f64; 2]) -> f64 {
    amounts[0] as f64 * prices[0] + amounts[1] as f64 * prices[1]
}

fn sum(all: impl Iterator<Item = Amounts>) -> Amounts {
    all.fold([0, 0], |sum, one| [sum[0] + one[0], sum[1] + one[1]])
}

fn covers(amounts: Amounts, needs: Amounts) -> bool {
    amounts[0] >= needs[0] && amounts[1] >= needs[1]
}

/// What each region gives for at least so much at the least cost; `None` where all of them have less.
///
/// At one price of a byte for all regions each gives what is best for it (Lagrange's multiplier, as in Y. Shoham and A. Gersho, 1988,
/// "Efficient bit allocation for an arbitrary set of quantizers"). Where that leaves too many multiplications, these have a price as
/// well, and the ratio of both prices is the one at which the cost is least.
pub(super) fn shared(givers: &[Giver], needs: Amounts) -> Option<Vec<Given>> {
    /// How many ratios of the prices are tried.
    const RATIOS: u32 = 16;
    if !covers(sum(givers.iter().map(Giver::most)), needs) {
        return None;
    }
    let by_bytes = at_prices(givers, [needs[0], 0], [1.0, 0.0])?;
    if covers(all(givers, &by_bytes), needs) {
        return Some(by_bytes);
    }
    let cost = |given: &Vec<Given>| -> f64 {
        let pairs = givers.iter().zip(given);
        pairs.map(|(giver, &given)| giver.cost(given)).sum()
    };
    let found = (0..=RATIOS).filter_map(|at| {
        let of_work = f64::from(at) / f64::from(RATIOS);
        at_prices(givers, needs, [1.0 - of_work, of_work])
    });
    found.min_by(|a, b| cost(a).total_cmp(&cost(b)))
}

fn all(givers: &[Giver], given: &[Given]) -> Amounts {
    let pairs = givers.iter().zip(given);
    sum(pairs.map(|(giver, &given)| giver.amounts(given)))
}

/// What each gives at the lowest prices in this ratio at which there is enough; what is more than enough is given back where it saves
/// most.
fn at_prices(givers: &[Giver], needs: Amounts, ratio: [f64; 2]) -> Option<Vec<Given>> {
    let enough = |given: &[Given]| covers(all(givers, given), needs);
    let at = |price: f64| -> Vec<Given> {
        let prices = [0, 1].map(|of| price * ratio[of] / needs[of].max(1) as f64);
        givers.iter().map(|giver| giver.at(prices)).collect()
    };
    let (mut low, mut high) = (0.0, 1e-12);
    while !enough(&at(high)) && high < 1e24 {
        high *= 4.0;
    }
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        match enough(&at(middle)) {
            true => high = middle,
            false => low = middle,
        }
    }
    let mut given = at(high);
    while enough(&given) {
        let had = all(givers, &given);
        let places = givers.iter().zip(&given).enumerate();
        let back = places.filter_map(|(place, (giver, given))| {
            let Given::Units(units @ 1..) = *given else {
                return None;
            };
            let step = giver.unit.map(|unit| giver.step * unit);
            let left = covers(had, step).then(|| [had[0] - step[0], had[1] - step[1]])?;
            let fewer = Given::Units(units - giver.step);
            let saved = giver.cost(*given) - giver.cost(fewer);
            covers(left, needs).then_some((place, fewer, saved))
        });
        let Some((place, fewer, _)) = back.max_by(|a, b| a.2.total_cmp(&b.2)) else {
            return Some(given);
        };
        given[place] = fewer;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn giver(costs: &[f64], whole: Option<(f64, usize)>) -> Giver {
        Giver {
            costs: costs.to_vec(),
            step: 2,
            unit: [5, 0],
            whole: whole.map(|(cost, bytes)| (cost, [bytes, 0])),
        }
    }

    fn shared(givers: &[Giver], bytes: usize) -> Option<Vec<Given>> {
        super::shared(givers, [bytes, 0])
    }

    #[test]
    fn multiplications_are_looked_at_where_bytes_leave_too_many() {
        // As many bytes for each, and the second works on four times as many pixels, at twice the cost.
        let mut last = giver(&[0.0, 0.1, 0.3, 0.9], None);
        let mut first = giver(&[0.0, 0.2, 0.6, 1.8], None);
        (last.unit, first.unit) = ([5, 10], [5, 40]);
        let both = [last, first];
        let of = |needs| super::shared(&both, needs);
        let units = |last, first| Some(vec![Given::Units(last), Given::Units(first)]);
        assert_eq!(of([20, 0]), units(4, 0));
        assert_eq!(of([20, 40]), units(4, 0));
        assert_eq!(of([20, 100]), units(2, 2));
        assert_eq!(of([0, 160]), units(0, 4));
        assert_eq!(of([60, 300]), units(6, 6));
        assert_eq!(of([20, 301]), None);
    }

    #[test]
    fn those_give_that_cost_least() {
        let cheap = giver(&[0.0, 0.1, 0.3, 0.9], None);
        let dear = giver(&[0.0, 0.4, 1.2, 3.0], None);
        let both = [cheap, dear];
        assert_eq!(
            shared(&both, 0).unwrap(),
            [Given::Units(0), Given::Units(0)]
        );
        assert_eq!(
            shared(&both, 20).unwrap(),
            [Given::Units(4), Given::Units(0)]
        );
        assert_eq!(
            shared(&both, 21).unwrap(),
            [Given::Units(4), Given::Units(2)]
        );
        assert_eq!(
            shared(&both, 60).unwrap(),
            [Given::Units(6), Given::Units(6)]
        );
        assert_eq!(shared(&both, 61), None);
    }

    #[test]
    fn a_whole_region_goes_where_that_is_cheaper() {
        let layer = giver(&[0.0, 0.5, 1.5], Some((0.6, 30)));
        assert_eq!(layer.most(), [30, 0]);
        let other = giver(&[0.0, 0.3, 1.0], None);
        assert_eq!(
            shared(&[layer.clone(), other.clone()], 30).unwrap(),
            [Given::Whole, Given::Units(0)]
        );
        // What is more than enough is given back.
        assert_eq!(
            shared(&[layer, other], 35).unwrap(),
            [Given::Whole, Given::Units(2)]
        );
        let dear = giver(&[0.0, 0.1, 0.2], Some((9.0, 30)));
        assert_eq!(
            shared(std::slice::from_ref(&dear), 20).unwrap(),
            [Given::Units(4)]
        );
        assert_eq!(shared(&[dear], 30).unwrap(), [Given::Whole]);
    }
}
