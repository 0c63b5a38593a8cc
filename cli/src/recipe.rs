//! A recipe: the options of `isovec optimize` as a TOML file, under the same names in snake case.
//!
//! A value is read by the parser of its option, so both take the same and give the same bytes. A key is an entry of [`KEYS`].

use std::path::Path;
use std::str::FromStr;

use clap::ValueEnum;
use isovec::optimize::OptimizeError;
use toml::{Table, Value};

use crate::args::{self, DtypeArg, Optimize};
use crate::error::{CliError, Result};

/// A key of a recipe.
struct Key {
    name: &'static str,
    /// What it takes: "a share, as \"10%\" or 0.1".
    takes: &'static str,
    /// Reads a value, and uses it where the option was not given. Paths are relative to this folder.
    set: fn(&mut Optimize, &Value, &Path) -> Result<(), String>,
}

/// In the order of `isovec optimize --help`.
static KEYS: &[Key] = &[
    Key {
        name: "level",
        takes: "\"none\", \"basic\", \"extended\" or \"all\"",
        set: |args, value, _| absent(&mut args.level, parsed(word(value)?)?),
    },
    Key {
        name: "pass",
        takes: "a list of names: [\"constants\", \"gelus\"]",
        set: |args, value, _| {
            let passes = words(value)?.into_iter();
            let passes: Result<_, _> = passes.map(|pass| parsed(&pass)).collect();
            fill(&mut args.passes, passes?)
        },
    },
    Key {
        name: "keep_tokens_of",
        takes: PATHS,
        set: |args, value, folder| fill(&mut args.keep_tokens_of, paths(value, folder)?),
    },
    Key {
        name: "keep_languages",
        takes: "a list of languages: [\"en\", \"de\"]",
        set: |args, value, _| fill(&mut args.keep_languages, words(value)?),
    },
    Key {
        name: "static_dimension",
        takes: COUNT,
        set: |args, value, _| absent(&mut args.static_dimension, read(value, args::at_least_one)?),
    },
    Key {
        name: "prune",
        takes: "a share, as \"10%\" or 0.1",
        set: |args, value, _| absent(&mut args.prune, read(value, args::share)?),
    },
    Key {
        name: "int8",
        takes: "\"static\" or \"dynamic\"",
        set: |args, value, _| absent(&mut args.int8, one_of(value)?),
    },
    Key {
        name: "smooth",
        takes: "a number from 0 to 1",
        set: |args, value, _| absent(&mut args.smooth, read(value, args::strength)?),
    },
    Key {
        name: "int4",
        takes: SWITCH,
        set: |args, value, _| switch(&mut args.int4, value),
    },
    Key {
        name: "bits",
        takes: "a number from 3 to 6",
        set: |args, value, _| absent(&mut args.bits, read(value, args::average_bits)?),
    },
    Key {
        name: "in_f32",
        takes: "a list of names, as the report has them: [\"MatMul_1\"]",
        set: |args, value, _| fill(&mut args.in_f32, words(value)?),
    },
    Key {
        name: "seven_bits",
        takes: SWITCH,
        set: |args, value, _| switch(&mut args.seven_bits, value),
    },
    Key {
        name: "each_node",
        takes: SWITCH,
        set: |args, value, _| switch(&mut args.each_node, value),
    },
    Key {
        name: "budget",
        takes: "a list of bounds: [\"cosine>=0.995\", \"size<=12MB\"]",
        set: |args, value, _| {
            let bounds = words(value)?.into_iter();
            let bounds: Result<_, _> = bounds.map(|bound| parsed(&bound)).collect();
            fill(&mut args.budget, bounds?)
        },
    },
    Key {
        name: "rounds",
        takes: "a whole number from 6 to 1000",
        set: |args, value, _| absent(&mut args.rounds, read(value, args::rounds)?),
    },
    Key {
        name: "seconds",
        takes: "a number of seconds, as 0.25",
        set: |args, value, _| absent(&mut args.seconds, read(value, args::positive)?),
    },
    Key {
        name: "texts",
        takes: PATHS,
        set: |args, value, folder| fill(&mut args.texts, paths(value, folder)?),
    },
    Key {
        name: "calibrate",
        takes: PATHS,
        set: |args, value, folder| fill(&mut args.calibrate, paths(value, folder)?),
    },
    #[cfg(feature = "image")]
    Key {
        name: "images",
        takes: PATHS,
        set: |args, value, folder| fill(&mut args.images, paths(value, folder)?),
    },
    #[cfg(feature = "image")]
    Key {
        name: "calibrate_images",
        takes: PATHS,
        set: |args, value, folder| fill(&mut args.calibrate_images, paths(value, folder)?),
    },
    Key {
        name: "field",
        takes: "the name of a JSON field or CSV column",
        set: |args, value, _| absent(&mut args.field, word(value)?.to_owned()),
    },
    Key {
        name: "dtype",
        takes: "\"auto\", \"f32\", \"f16\", \"bf16\", \"int8\" or \"int8-fast\"; 4 bits are int4 = true",
        set: |args, value, _| match one_of(value)? {
            DtypeArg::Int4 => Err("int4 is a dtype of export alone".into()),
            dtype => absent(&mut args.model.knobs.dtype, dtype),
        },
    },
    Key {
        name: "engine",
        takes: "\"auto\", \"onnxruntime\" or \"portable\"",
        set: |args, value, _| absent(&mut args.model.knobs.engine, one_of(value)?),
    },
    Key {
        name: "threads",
        takes: COUNT,
        set: |args, value, _| {
            absent(
                &mut args.model.knobs.threads,
                read(value, args::at_least_one)?,
            )
        },
    },
    Key {
        name: "max_length",
        takes: COUNT,
        set: |args, value, _| {
            absent(
                &mut args.model.knobs.max_length,
                read(value, args::at_least_one)?,
            )
        },
    },
    Key {
        name: "dimension",
        takes: COUNT,
        set: |args, value, _| {
            absent(
                &mut args.model.knobs.dimension,
                read(value, args::at_least_one)?,
            )
        },
    },
];

const PATHS: &str = "a path or a list of paths, relative to the recipe's folder";
const COUNT: &str = "a whole number of at least 1";
const SWITCH: &str = "true or false";

/// The options with what a recipe says in place of those that were not given.
pub(crate) fn over(mut args: Optimize, path: &Path) -> Result<Optimize> {
    let name = path.display();
    let text = std::fs::read_to_string(path).map_err(CliError::io(name.to_string()))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    match fill_in(&mut args, &text, folder) {
        Ok(()) => Ok(args),
        Err(fault) => Err(CliError::Usage(format!("{name}: {fault}"))),
    }
}

/// Reads a recipe's text, or says what is wrong with it.
pub(crate) fn fill_in(args: &mut Optimize, text: &str, folder: &Path) -> Result<(), String> {
    let recipe: Table =
        toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())?;
    for (name, value) in &recipe {
        let Some(key) = KEYS.iter().find(|key| key.name == name) else {
            let all: Vec<&str> = KEYS.iter().map(|key| key.name).collect();
            return Err(format!(
                "a recipe has no key {name}; its keys are {}",
                all.join(", ")
            ));
        };
        (key.set)(args, value, folder)
            .map_err(|why| format!("{name} = {value} cannot be used: {why}; give {}", key.takes))?;
    }
    Ok(())
}

/// A flag wins over the recipe's value.
#[allow(clippy::unnecessary_wraps, reason = "as every other way to set a key")]
fn absent<T>(option: &mut Option<T>, value: T) -> Result<(), String> {
    option.get_or_insert(value);
    Ok(())
}

/// The same for an option that may be repeated: all of its values are replaced, and none are joined.
#[allow(clippy::unnecessary_wraps, reason = "as every other way to set a key")]
fn fill<T>(option: &mut Vec<T>, values: Vec<T>) -> Result<(), String> {
    if option.is_empty() {
        *option = values;
    }
    Ok(())
}

/// A flag without a value: given, it wins over the recipe's `false`.
fn switch(flag: &mut bool, value: &Value) -> Result<(), String> {
    *flag |= value.as_bool().ok_or_else(|| is_a(value))?;
    Ok(())
}

/// A number, or a text that is one, by the parser of its option.
fn read<T>(value: &Value, parse: fn(&str) -> Result<T, String>) -> Result<T, String> {
    match value {
        Value::String(text) => parse(text),
        Value::Integer(number) => parse(&number.to_string()),
        Value::Float(number) => parse(&number.to_string()),
        _ => Err(is_a(value)),
    }
}

fn one_of<T: ValueEnum>(value: &Value) -> Result<T, String> {
    let word = word(value)?;
    T::from_str(word, false).map_err(|_| "it is none of its values".to_owned())
}

/// A value that is written as its option takes it.
fn parsed<T: FromStr<Err = OptimizeError>>(text: &str) -> Result<T, String> {
    text.parse()
        .map_err(|error: OptimizeError| error.to_string())
}

fn word(value: &Value) -> Result<&str, String> {
    value.as_str().ok_or_else(|| is_a(value))
}

/// A text, or a list of them.
fn words(value: &Value) -> Result<Vec<String>, String> {
    match value {
        Value::Array(values) => {
            let words = values.iter().map(|value| Ok(word(value)?.to_owned()));
            words.collect()
        }
        value => Ok(vec![word(value)?.to_owned()]),
    }
}

fn paths(value: &Value, folder: &Path) -> Result<Vec<std::path::PathBuf>, String> {
    let words = words(value)?;
    Ok(words.iter().map(|word| folder.join(word)).collect())
}

fn is_a(value: &Value) -> String {
    format!("{value} is of the type {}", value.type_str())
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::{Args, Command};

    /// The options of a command line.
    fn given(flags: &[&str]) -> Optimize {
        let all = ["isovec", "optimize", "model", "--out", "small"];
        let args = Args::try_parse_from(all.iter().chain(flags)).expect("usable");
        match args.command {
            Command::Optimize(optimize) => *optimize,
            other => panic!("{other:?}"),
        }
    }

    fn filled(flags: &[&str], recipe: &str) -> Result<Optimize, String> {
        let mut args = given(flags);
        fill_in(&mut args, recipe, Path::new("folder")).map(|()| args)
    }

    /// Every key, with two values and the flags that say the same.
    const ALL: &[(&str, [&str; 2], [&str; 2])] = &[
        (
            "level",
            ["\"basic\"", "--level basic"],
            ["\"all\"", "--level all"],
        ),
        (
            "pass",
            ["[\"gelus\", \"layout\"]", "--pass gelus --pass layout"],
            ["\"shapes\"", "--pass shapes"],
        ),
        (
            "keep_tokens_of",
            ["\"a.txt\"", "--keep-tokens-of folder/a.txt"],
            [
                "[\"b.txt\", \"/c.txt\"]",
                "--keep-tokens-of folder/b.txt /c.txt",
            ],
        ),
        (
            "keep_languages",
            ["[\"en\", \"de\"]", "--keep-languages en,de"],
            ["\"ja\"", "--keep-languages ja"],
        ),
        (
            "static_dimension",
            ["16", "--static 16"],
            ["\"32\"", "--static 32"],
        ),
        ("prune", ["\"10%\"", "--prune 10%"], ["0.2", "--prune 0.2"]),
        (
            "int8",
            ["\"static\"", "--int8 static"],
            ["\"dynamic\"", "--int8 dynamic"],
        ),
        ("smooth", ["0", "--smooth 0"], ["0.25", "--smooth 0.25"]),
        ("bits", ["3", "--bits 3"], ["4.36", "--bits 4.36"]),
        (
            "in_f32",
            ["[\"one\", \"two\"]", "--in-f32 one --in-f32 two"],
            ["\"three\"", "--in-f32 three"],
        ),
        (
            "budget",
            [
                "[\"cosine>=0.9\", \"size<=1MB\"]",
                "--budget cosine>=0.9 --budget size<=1MB",
            ],
            ["\"cosine>=0.5\"", "--budget cosine>=0.5"],
        ),
        ("rounds", ["6", "--rounds 6"], ["7", "--rounds 7"]),
        ("seconds", ["0.5", "--seconds 0.5"], ["2", "--seconds 2"]),
        (
            "texts",
            ["\"a.txt\"", "--texts folder/a.txt"],
            ["[\"b.txt\"]", "--texts folder/b.txt"],
        ),
        (
            "calibrate",
            ["\"a.txt\"", "--calibrate folder/a.txt"],
            ["[\"b.txt\"]", "--calibrate folder/b.txt"],
        ),
        #[cfg(feature = "image")]
        (
            "images",
            ["\"a.png\"", "--images folder/a.png"],
            ["[\"b\"]", "--images folder/b"],
        ),
        #[cfg(feature = "image")]
        (
            "calibrate_images",
            ["\"a.png\"", "--calibrate-images folder/a.png"],
            ["[\"b\"]", "--calibrate-images folder/b"],
        ),
        (
            "field",
            ["\"body\"", "--field body"],
            ["\"text\"", "--field text"],
        ),
        (
            "dtype",
            ["\"f16\"", "--dtype f16"],
            ["\"int8-fast\"", "--dtype int8-fast"],
        ),
        (
            "engine",
            ["\"portable\"", "--engine portable"],
            ["\"auto\"", "--engine auto"],
        ),
        ("threads", ["1", "--threads 1"], ["2", "--threads 2"]),
        (
            "max_length",
            ["64", "--max-length 64"],
            ["32", "--max-length 32"],
        ),
        (
            "dimension",
            ["128", "--dimension 128"],
            ["64", "--dimension 64"],
        ),
    ];

    #[test]
    fn a_key_says_what_its_flag_says_and_a_flag_wins() {
        // Windows separates folders in its own way.
        let said = |args: &Optimize| format!("{args:?}").replace("\\\\", "/");
        let split = |flags: &'static str| flags.split(' ').collect::<Vec<_>>();
        for (key, [one, as_one], [other, as_other]) in ALL {
            let (as_one, as_other) = (split(as_one), split(as_other));
            let with = |value: &str, flags: &[&str]| filled(flags, &format!("{key} = {value}\n"));
            let (one_args, other_args) = (said(&given(&as_one)), said(&given(&as_other)));
            assert_ne!(one_args, other_args, "{key}");
            assert_eq!(said(&with(one, &[]).expect(key)), one_args, "{key}");
            assert_eq!(said(&with(other, &[]).expect(key)), other_args, "{key}");
            assert_eq!(said(&with(one, &as_other).expect(key)), other_args, "{key}");
        }
        const SWITCHES: [(&str, &str); 3] = [
            ("int4", "--int4"),
            ("seven_bits", "--seven-bits"),
            ("each_node", "--each-node"),
        ];
        for (key, flag) in SWITCHES {
            let set = |flags: &[&str], to: &str| {
                said(&filled(flags, &format!("{key} = {to}")).expect("usable"))
            };
            let on = said(&given(&[flag]));
            assert_eq!([set(&[], "true"), set(&[flag], "false")], [on.clone(), on]);
            assert_eq!(set(&[], "false"), said(&given(&[])), "{key}");
        }
        assert_eq!(ALL.len() + SWITCHES.len(), KEYS.len(), "every key is here");
    }

    #[test]
    fn what_is_wrong_names_the_key_and_what_to_give() {
        for (recipe, says) in [
            (
                "prun = 0.1",
                "a recipe has no key prun; its keys are level, pass, keep_tokens_of",
            ),
            ("[int8]\nscales = 1", "int8 = { scales = 1 } cannot be used"),
            (
                "prune = 1.5",
                "prune = 1.5 cannot be used: has to be more than 0 and less than all",
            ),
            ("prune = \"100%\"", "give a share, as \"10%\" or 0.1"),
            ("prune = true", "true is of the type boolean; give a share"),
            (
                "int8 = \"fast\"",
                "it is none of its values; give \"static\" or \"dynamic\"",
            ),
            ("int8 = true", "true is of the type boolean"),
            ("int4 = 1", "1 is of the type integer; give true or false"),
            (
                "smooth = 2",
                "smooth = 2 cannot be used: has to be from 0 to 1",
            ),
            ("smooth = nan", "has to be from 0 to 1"),
            (
                "bits = 2.5",
                "bits = 2.5 cannot be used: has to be from 3 to 6",
            ),
            ("static_dimension = 0", "has to be at least 1"),
            ("static_dimension = -4", "give a whole number of at least 1"),
            (
                "static_dimension = 2.5",
                "give a whole number of at least 1",
            ),
            ("rounds = 5", "has to be from 6 to 1000"),
            ("seconds = 0", "has to be more than 0"),
            (
                "texts = 3",
                "3 is of the type integer; give a path or a list of paths",
            ),
            ("texts = [\"a\", 3]", "3 is of the type integer"),
            ("budget = [\"speed>=2\"]", "no figure named"),
            ("in_f32 = {}", "of the type table"),
            ("field = 1", "give the name of a JSON field"),
            ("dtype = \"int4\"", "4 bits are int4 = true"),
            ("dtype = \"f64\"", "it is none of its values; give \"auto\""),
            ("engine = \"gpu\"", "\"onnxruntime\" or \"portable\""),
            ("prune = ", "TOML parse error at line 1"),
            ("prune = 0.1\nprune = 0.2", "duplicate key"),
        ] {
            let wrong = filled(&[], recipe).expect_err(recipe);
            assert!(wrong.contains(says), "{recipe}: {wrong}");
        }
        // Also where a flag would win.
        filled(&["--prune", "0.2"], "prune = 7").expect_err("out of range");
    }
}
