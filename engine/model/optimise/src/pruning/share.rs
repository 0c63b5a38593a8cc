//! How much each region gives, so that a model's vectors change least for the bytes that it loses.

/// What a region can give.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Giver {
    /// What the loss of `0`, `step`, `2 · step` … units costs, in any unit that is the same for all regions.
    pub(super) costs: Vec<f64>,
    /// Units that go together.
    pub(super) step: usize,
    /// Bytes of a unit.
    pub(super) unit_bytes: usize,
    /// Cost and bytes of the whole region, where it can go as a whole.
    pub(super) whole: Option<(f64, usize)>,
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
    fn step_bytes(&self) -> usize {
        self.step * self.unit_bytes
    }

    /// Bytes of what it gives.
    pub(super) fn bytes(&self, given: Given) -> usize {
        match given {
            Given::Units(units) => units * self.unit_bytes,
            Given::Whole => self.whole.map_or(0, |(_, bytes)| bytes),
        }
    }

    /// All that can be had of it.
    pub(super) fn most(&self) -> usize {
        let steps = (self.costs.len() - 1) * self.step_bytes();
        steps.max(self.bytes(Given::Whole))
    }

    /// What is best at a price of a byte.
    fn at(&self, price: f64) -> Given {
        let steps = self.costs.iter().enumerate().map(|(at, cost)| {
            let worth = cost - price * (at * self.step_bytes()) as f64;
            (worth, Given::Units(at * self.step))
        });
        let whole = self
            .whole
            .map(|(cost, bytes)| (cost - price * bytes as f64, Given::Whole));
        let best = steps.chain(whole).min_by(|a, b| a.0.total_cmp(&b.0));
        best.map_or(Given::Units(0), |(_, given)| given)
    }
}

/// What each region gives for at least so many bytes at the least cost; `None` where all of them have fewer.
///
/// At one price of a byte for all regions each gives what is best for it (Lagrange's multiplier, as in Y. Shoham and A. Gersho, 1988,
/// "Efficient bit allocation for an arbitrary set of quantizers"). The price is halved down to the lowest at which there is enough; what
/// is more than enough is given back where it saves most.
pub(super) fn shared(givers: &[Giver], bytes: usize) -> Option<Vec<Given>> {
    let sum = |given: &[Given]| -> usize {
        let each = givers.iter().zip(given);
        each.map(|(giver, &given)| giver.bytes(given)).sum()
    };
    if givers.iter().map(Giver::most).sum::<usize>() < bytes {
        return None;
    }
    let at = |price: f64| -> Vec<Given> { givers.iter().map(|giver| giver.at(price)).collect() };
    let (mut low, mut high) = (0.0, 1e-12);
    while sum(&at(high)) < bytes && high < 1e12 {
        high *= 4.0;
    }
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        match sum(&at(middle)) < bytes {
            true => low = middle,
            false => high = middle,
        }
    }
    let mut given = at(high);
    loop {
        let over = sum(&given).checked_sub(bytes)?;
        let back = givers
            .iter()
            .zip(&given)
            .enumerate()
            .filter_map(|(place, (giver, given))| {
                let Given::Units(units @ 1..) = *given else {
                    return None;
                };
                let steps = units / giver.step;
                let saved = giver.costs[steps] - giver.costs[steps - 1];
                (giver.step_bytes() <= over).then_some((place, units - giver.step, saved))
            });
        let Some((place, units, _)) = back.max_by(|a, b| a.2.total_cmp(&b.2)) else {
            return Some(given);
        };
        given[place] = Given::Units(units);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn giver(costs: &[f64], whole: Option<(f64, usize)>) -> Giver {
        Giver {
            costs: costs.to_vec(),
            step: 2,
            unit_bytes: 5,
            whole,
        }
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
        assert_eq!(layer.most(), 30);
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
