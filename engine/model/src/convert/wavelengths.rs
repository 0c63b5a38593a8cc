//! The wavelengths of rotary positions: a geometric series, and the ways to stretch it for texts that are longer than those of the
//! training.

use std::f64::consts::TAU;
use std::fmt;

use isovec_engine::error::Result;

use super::config::Config;
use super::sight::Sight;

/// The wavelengths `2 π base^(pair / pairs)`, stretched.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Wavelengths {
    base: f64,
    stretch: Stretch,
}

/// How wavelengths are stretched.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Stretch {
    None,
    /// All of them by one factor (<https://arxiv.org/abs/2306.15595>).
    Linear(f64),
    /// GTE's (<https://kexue.fm/archives/9706>, formula 6): the last by the factor, and each before it by an equal ratio less.
    Ntk(f64),
    /// Llama 3.1's, as transformers computes it: a pair that turns more often than `most` times in a text of `trained` tokens keeps
    /// its wavelength, one that turns less often than `fewest` times has it times `factor`, and frequencies go from one to the other
    /// in a straight line between.
    Llama3 {
        factor: f64,
        fewest: f64,
        most: f64,
        trained: f64,
    },
}

impl Wavelengths {
    /// The series as it is.
    pub(super) fn of_base(base: f64) -> Self {
        Self {
            base,
            stretch: Stretch::None,
        }
    }

    /// The series stretched by GTE's way: that of the pair `i` of `n` is `factor^((i + 1) / n)` times as long.
    pub(super) fn ntk(base: f64, factor: f64) -> Self {
        Self {
            base,
            stretch: Stretch::Ntk(factor),
        }
    }

    /// Those of the layers with a sight: by `rope_parameters` in newer configs, which may hold a part for each sight; by `rope_scaling`
    /// in older ones. `base` is that of a config whose parameters have no `rope_theta`.
    pub(super) fn of(config: &Config, sight: Sight, base: f64) -> Result<Self> {
        let (newer, older) = ("rope_parameters", "rope_scaling");
        let key = match (config.value(newer), config.value(older)) {
            (Some(_), Some(_)) => {
                return Err(config.unsupported(format!(
                    "config.json has {newer} and {older}, and one need not say what the other does"
                )));
            }
            (Some(_), None) => newer,
            _ => older,
        };
        let mut parameters = config.part(key)?;
        let nested = |sight: &Sight| parameters.value(sight.key()).is_some();
        if Sight::ALL.iter().any(nested) {
            parameters = parameters.part(sight.key())?;
        }
        for part in [config, &parameters] {
            if part.positive_or("partial_rotary_factor", 1.0)? != 1.0 {
                return Err(config.unsupported(
                    "config.json sets partial_rotary_factor: some elements of a head are not turned",
                ));
            }
        }
        Ok(Self {
            base: parameters.positive_or("rope_theta", base)?,
            stretch: Stretch::of(&parameters, key)?,
        })
    }

    /// By how much a pair turns from one position to the next, in radians, fastest first.
    pub(super) fn frequencies(&self, pairs: usize) -> Vec<f64> {
        // libm and not the platform's functions, so that every target makes the same bytes.
        let series = (0..pairs).map(|pair| libm::pow(self.base, -(pair as f64) / pairs as f64));
        let stretched = series
            .enumerate()
            .map(|(pair, frequency)| match self.stretch {
                Stretch::None => frequency,
                Stretch::Linear(factor) => frequency / factor,
                Stretch::Ntk(factor) => {
                    frequency * libm::pow(factor, -((pair + 1) as f64) / pairs as f64)
                }
                Stretch::Llama3 {
                    factor,
                    fewest,
                    most,
                    trained,
                } => {
                    let turns = trained * frequency / TAU;
                    let kept = ((turns - fewest) / (most - fewest)).clamp(0.0, 1.0);
                    frequency * (kept + (1.0 - kept) / factor)
                }
            });
        stretched.collect()
    }
}

impl Stretch {
    /// Reads what stands under `key`.
    fn of(parameters: &Config, key: &str) -> Result<Self> {
        let older = parameters.text_or("type", "")?;
        let kind = parameters.text_or("rope_type", older)?;
        match kind {
            "" if parameters.value("factor").is_some() => {
                Err(parameters.wrong("rope_type", &format!("is missing in {key}")))
            }
            "" | "default" => Ok(Self::None),
            "linear" => Ok(Self::Linear(parameters.positive("factor")?)),
            "llama3" => {
                let fewest = parameters.positive("low_freq_factor")?;
                let most = parameters.positive("high_freq_factor")?;
                if fewest >= most {
                    return Err(parameters.wrong(
                        "high_freq_factor",
                        &format!("is {most}, not above low_freq_factor {fewest}"),
                    ));
                }
                Ok(Self::Llama3 {
                    factor: parameters.positive("factor")?,
                    fewest,
                    most,
                    trained: parameters.positive("original_max_position_embeddings")?,
                })
            }
            other => Err(parameters.unsupported(format!(
                "{key} in config.json asks for rope_type {other:?}; default, linear and llama3 can \
                 be converted"
            ))),
        }
    }
}

/// All that decides them, in one form for each.
impl fmt::Display for Wavelengths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let base = self.base;
        match self.stretch {
            Stretch::None => write!(f, "{base}"),
            Stretch::Linear(factor) => write!(f, "{base}.linear.{factor}"),
            Stretch::Ntk(factor) => write!(f, "{base}.ntk.{factor}"),
            Stretch::Llama3 {
                factor,
                fewest,
                most,
                trained,
            } => write!(f, "{base}.llama3.{factor}.{fewest}.{most}.{trained}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The figures are those of the formula as its authors write it: another base, and all of it by one factor more.
    #[test]
    fn ntk_stretches_the_last_pair_by_the_whole_factor() {
        let plain = Wavelengths::of_base(10_000.0).frequencies(32);
        let stretched = Wavelengths::ntk(10_000.0, 8.0).frequencies(32);
        let larger = Wavelengths::of_base(80_000.0).frequencies(32);
        for (found, larger) in stretched.iter().zip(larger) {
            let wanted = larger / 8f64.powf(1.0 / 32.0);
            assert!((found / wanted - 1.0).abs() < 1e-14, "{found} and {wanted}");
        }
        assert!((plain[31] / stretched[31] - 8.0).abs() < 1e-12);
    }

    #[test]
    fn llama3_keeps_fast_pairs_and_stretches_slow_ones() {
        let waves = Wavelengths {
            base: 500_000.0,
            stretch: Stretch::Llama3 {
                factor: 8.0,
                fewest: 1.0,
                most: 4.0,
                trained: 8192.0,
            },
        };
        let plain = Wavelengths::of_base(500_000.0).frequencies(64);
        let stretched = waves.frequencies(64);
        assert_eq!(stretched[0], plain[0]);
        assert_eq!(stretched[63], plain[63] / 8.0);
        let mut ratios = plain.iter().zip(&stretched).map(|(a, b)| a / b);
        assert!(ratios.any(|ratio| ratio > 1.1 && ratio < 7.9));
    }
}
