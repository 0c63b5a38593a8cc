//! `isovec similarity A B`.

use isovec::EmbedOptions;
use isovec::blocking::Embedder;
use serde_json::json;

use crate::args::SimilarityArgs;
use crate::error::Result;
use crate::{commands, interrupt, profile};

pub(crate) fn run(args: &SimilarityArgs) -> Result<()> {
    let cancel = interrupt::on_ctrl_c()?;
    let (embedder, profiling) = args.profile.load::<Embedder>(&args.model, &cancel)?;
    let pair = embedder.embed_with(
        [&args.a, &args.b],
        EmbedOptions::default().with_cancel(cancel),
    )?;
    profile::finish(profiling)?;
    let score = pair.similarity(&pair)?[[0, 1]];
    if args.json {
        let mut answer = json!({
            "score": score,
            "similarity": embedder.metric(),
            "truncated": pair.truncated(),
            "provider": embedder.provider(),
        });
        if args.stats {
            answer["stats"] = json!(embedder.stats());
        }
        return commands::print_json(&answer);
    }
    commands::print(&format!("{score:.6}\n"))?;
    if args.stats {
        commands::print_stats(&embedder.stats())?;
    }
    Ok(())
}
