//! Reading `preprocessor_config.json`. Whatever could change pixels is followed or refused by its name.

use serde_json::{Map, Value};

use super::family::{Family, Own};
use super::geometry::Size;
use super::tone::{Tone, Tones};
use super::{Processor, Reference};
use crate::resize::Filter;
use crate::{Alpha, ImageError, Result};

/// Keys that do not change pixels, whatever they say.
const HARMLESS: [&str; 10] = [
    "_valid_processor_keys",
    "device",
    "disable_grouping",
    "do_reduce_labels",
    "input_data_format",
    "model_input_names",
    "processor_class",
    "reduce_labels",
    "return_tensors",
    "transformers_version",
];

/// The most that a file may ask for on a side.
const LONGEST: u64 = 65_535;

pub(super) fn read(
    json: &str,
    model_type: Option<&str>,
    reference: Reference,
) -> Result<Processor> {
    let map: Map<String, Value> =
        serde_json::from_str(json).map_err(|error| wrong(error.to_string()))?;
    let mut keys = Keys(map);
    let family = family(&mut keys, model_type)?;
    let square = keys.flag("default_to_square")?.unwrap_or(family.square);
    let mut size = keys.size("size", square)?.unwrap_or(family.size);
    let filter = keys.filter()?.unwrap_or(family.filter);
    let resizes = keys.flag("do_resize")?.unwrap_or(true);
    let mut crops = Vec::new();
    if family.own == Own::CropShare {
        let share = keys.number("crop_pct")?.unwrap_or(224.0 / 256.0);
        let Size::Shortest(edge) = size else {
            return Err(wrong("size has to name shortest_edge alone for ConvNext"));
        };
        if resizes && edge < 384 {
            let larger = edge as f64 / share;
            if !(1.0..=LONGEST as f64).contains(&larger) {
                return Err(wrong(format!(
                    "crop_pct of {share} makes no size of {edge}"
                )));
            }
            size = Size::Shortest(larger as usize);
            crops.push((edge, edge));
        } else {
            size = Size::Exact(edge, edge);
        }
    }
    let crop = match keys.size("crop_size", true)? {
        None => family.crop.0,
        Some(Size::Exact(height, width)) => Some((height, width)),
        Some(_) => return Err(wrong("crop_size has to name height and width")),
    };
    if keys.flag("do_center_crop")?.unwrap_or(family.crop.1) {
        crops.push(crop.ok_or_else(|| wrong("do_center_crop needs crop_size"))?);
    }
    let numbers = family.own == Own::Numbers;
    if numbers && (!crops.is_empty() || filter != Filter::Bilinear) {
        return Err(wrong(format!(
            "do_center_crop, and another resample than 2, are not known for {}",
            family.name
        )));
    }
    let tones = Tones::new(tones(&mut keys, family)?, reference);
    let only_rgb = keys.flag("do_convert_rgb")? == Some(false);
    keys.finish(family)?;
    if resizes && reference == Reference::Torchvision && !of_torchvision(filter) {
        return Err(wrong(format!(
            "torchvision does not resize bytes with resample {} ({filter:?}); take Pillow's weights",
            filter as u8
        )));
    }
    Ok(Processor {
        reference,
        alpha: Alpha::default(),
        only_rgb,
        size: resizes.then_some((size, filter)),
        crops,
        numbers,
        tones,
    })
}

fn of_torchvision(filter: Filter) -> bool {
    matches!(filter, Filter::Nearest | Filter::Bilinear | Filter::Bicubic)
}

fn family(keys: &mut Keys, model_type: Option<&str>) -> Result<&'static Family> {
    let named = keys.text("image_processor_type")?;
    let named = match (named, keys.text("feature_extractor_type")?) {
        (Some(name), _) | (None, Some(name)) => Some(name),
        (None, None) => None,
    };
    let found = match (&named, model_type) {
        (Some(name), _) => Family::of_processor(name),
        (None, Some(model)) => Family::of_model(model),
        (None, None) => {
            return Err(wrong(
                "it names no image_processor_type, and no model_type is given",
            ));
        }
    };
    found.ok_or_else(|| {
        let what = match (named, model_type) {
            (Some(name), _) => format!("image_processor_type {name:?}"),
            (None, model) => {
                format!("a file without image_processor_type of the model_type {model:?}")
            }
        };
        wrong(format!(
            "{what} is not known; known are {}",
            Family::names()
        ))
    })
}

/// What becomes of a byte in each channel.
fn tones(keys: &mut Keys, family: &Family) -> Result<[Tone; 3]> {
    let rescales = keys.flag("do_rescale")?.unwrap_or(true);
    let scale = keys.number("rescale_factor")?.unwrap_or(1.0 / 255.0);
    let normalizes = keys.flag("do_normalize")?.unwrap_or(true);
    let mean = keys.channels("image_mean")?.unwrap_or(family.mean);
    let deviation = keys.channels("image_std")?.unwrap_or(family.deviation);
    let (offset, top) = match family.own {
        Own::Top => (
            keys.flag("rescale_offset")?.unwrap_or(false),
            keys.flag("include_top")?.unwrap_or(true),
        ),
        _ => (false, false),
    };
    if scale == 0.0 || deviation.contains(&0.0) {
        return Err(wrong("rescale_factor and image_std must not be 0"));
    }
    Ok(std::array::from_fn(|channel| Tone {
        scale: rescales.then_some(scale),
        offset,
        normal: normalizes.then_some((mean[channel], deviation[channel])),
        again: top.then_some(deviation[channel]),
    }))
}

/// The keys that nobody has asked for yet.
struct Keys(Map<String, Value>);

impl Keys {
    /// The value of a key; `null` is none, as it is in Python's constructors.
    fn take(&mut self, key: &str) -> Option<Value> {
        self.0.remove(key).filter(|value| !value.is_null())
    }

    fn flag(&mut self, key: &str) -> Result<Option<bool>> {
        let flag = |value: Value| {
            value
                .as_bool()
                .ok_or_else(|| wrong(format!("{key} is {value}, and has to be true or false")))
        };
        self.take(key).map(flag).transpose()
    }

    fn text(&mut self, key: &str) -> Result<Option<String>> {
        match self.take(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(value) => Err(wrong(format!("{key} is {value}, and has to be a string"))),
        }
    }

    fn number(&mut self, key: &str) -> Result<Option<f64>> {
        self.take(key).map(|value| number(key, &value)).transpose()
    }

    /// A number for all three channels, or one for each.
    fn channels(&mut self, key: &str) -> Result<Option<[f64; 3]>> {
        let Some(value) = self.take(key) else {
            return Ok(None);
        };
        let Some(list) = value.as_array() else {
            return Ok(Some([number(key, &value)?; 3]));
        };
        match &list[..] {
            [r, g, b] => Ok(Some([number(key, r)?, number(key, g)?, number(key, b)?])),
            _ => Err(wrong(format!(
                "{key} has {} numbers, and pictures have 3 channels",
                list.len()
            ))),
        }
    }

    fn filter(&mut self) -> Result<Option<Filter>> {
        let Some(value) = self.take("resample") else {
            return Ok(None);
        };
        let filter = value.as_u64().and_then(Filter::of_number);
        let wrong = || {
            wrong(format!(
                "resample is {value}, and has to be a number from 0 to 5"
            ))
        };
        filter.ok_or_else(wrong).map(Some)
    }

    fn size(&mut self, key: &str, square: bool) -> Result<Option<Size>> {
        let Some(value) = self.take(key) else {
            return Ok(None);
        };
        let side = |value: &Value| {
            let side = value.as_u64().filter(|side| (1..=LONGEST).contains(side));
            let side = side.map(|side| side as usize);
            side.ok_or_else(|| {
                wrong(format!(
                    "{key} has a side of {value}, and has to have one from 1 to {LONGEST}"
                ))
            })
        };
        let unknown = || {
            wrong(format!(
                "{key} is {value}, and has to be a number, height and width, shortest_edge (and longest_edge), or max_height and max_width"
            ))
        };
        Ok(Some(match &value {
            Value::Number(_) if square => Size::Exact(side(&value)?, side(&value)?),
            Value::Number(_) => Size::Shortest(side(&value)?),
            Value::Array(sides) => match &sides[..] {
                [height, width] => Size::Exact(side(height)?, side(width)?),
                _ => return Err(unknown()),
            },
            Value::Object(sides) => {
                let named = |names: &[&str]| {
                    let given = sides.iter().filter(|(_, side)| !side.is_null());
                    let count = given.count();
                    let found: Vec<&Value> =
                        names.iter().filter_map(|name| sides.get(*name)).collect();
                    (found.len() == names.len() && count == names.len()).then_some(found)
                };
                if let Some(found) = named(&["height", "width"]) {
                    Size::Exact(side(found[0])?, side(found[1])?)
                } else if let Some(found) = named(&["shortest_edge"]) {
                    Size::Shortest(side(found[0])?)
                } else if let Some(found) = named(&["shortest_edge", "longest_edge"]) {
                    Size::Between(side(found[0])?, side(found[1])?)
                } else if let Some(found) = named(&["max_height", "max_width"]) {
                    Size::Within(side(found[0])?, side(found[1])?)
                } else {
                    return Err(unknown());
                }
            }
            _ => return Err(unknown()),
        }))
    }

    /// Refuses what is left, unless it asks for nothing.
    fn finish(mut self, family: &Family) -> Result<()> {
        for key in HARMLESS {
            self.0.remove(key);
        }
        if let Some(format) = self.text("data_format")?
            && format != "channels_first"
        {
            return Err(wrong(format!("data_format {format:?} is not known")));
        }
        let asks = |value: &Value| !matches!(value, Value::Null | Value::Bool(false));
        match self.0.iter().find(|(_, value)| asks(value)) {
            Some((key, value)) => Err(wrong(format!(
                "{key}: {value} is not known for {}; take it out if it does not change pixels",
                family.name
            ))),
            None => Ok(()),
        }
    }
}

fn number(key: &str, value: &Value) -> Result<f64> {
    let number = value.as_f64().filter(|number| number.is_finite());
    number.ok_or_else(|| wrong(format!("{key} has {value}, and has to have numbers")))
}

fn wrong(what: impl Into<String>) -> ImageError {
    ImageError::Config(format!("preprocessor_config.json: {}", what.into()))
}
