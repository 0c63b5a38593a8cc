//! `--profile FILE`: a trace of what a command computed.

use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use isovec::profile::{ProfileOptions, ProfileSession};
use isovec::{Cancel, EmbeddingConfig};
use isovec_engine::fresh::FreshFolder;

use crate::args::ModelArgs;
use crate::error::{CliError, Result};
use crate::in_place::Draft;
use crate::model::Handle;

/// Where a profile goes.
#[derive(Debug, clap::Args)]
pub(crate) struct ProfileArgs {
    /// Write when what was done, request by request and operator by operator, as a Chrome trace, for
    /// `isovec trace`, <https://ui.perfetto.dev> or chrome://tracing.
    #[arg(long, value_name = "FILE")]
    pub(crate) profile: Option<PathBuf>,

    /// Events that the trace keeps, about 150 bytes of memory each; past that the oldest go.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1 << 18,
        requires = "profile",
        value_parser = crate::args::at_least_one
    )]
    pub(crate) profile_events: usize,
}

/// A profile that is being taken.
pub(crate) struct Profiling {
    session: ProfileSession,
    draft: Draft,
    /// Goes when the profile is written.
    _own: Option<FreshFolder>,
}

/// The configuration under which ONNX Runtime takes its own profile, and the folder of our own that it writes it to, if no
/// other place was named.
pub(crate) fn of_runtime(
    config: EmbeddingConfig,
) -> Result<(EmbeddingConfig, Option<FreshFolder>)> {
    if config.runtime.session.profiling.is_some() {
        return Ok((config, None));
    }
    let temporary = std::env::temp_dir();
    let folder = FreshFolder::new(&temporary, "isovec-profile");
    let folder = folder.map_err(CliError::io(temporary.display().to_string()))?;
    let config = config.with_profiling(folder.path().join("onnxruntime"));
    Ok((config, Some(folder)))
}

impl ProfileArgs {
    /// Refuses a trace that would be written into the command's own output.
    pub(crate) fn not_into(&self, out: Option<&Path>) -> Result<()> {
        if out.is_some() && out == self.profile.as_deref() {
            return Err(CliError::Usage(
                "--out and --profile name the same file; name two".into(),
            ));
        }
        Ok(())
    }

    /// Loads the model, and begins a profile, where one was asked for. The file is made first, beside its
    /// place, so that one that cannot be written is known before anything is done.
    pub(crate) fn load<H: Handle>(
        &self,
        model: &ModelArgs,
        cancel: &Cancel,
    ) -> Result<(H, Option<Profiling>)> {
        let Some(path) = &self.profile else {
            return Ok((model.load(cancel)?, None));
        };
        let draft = Draft::create(path)?;
        let (config, own) = of_runtime(model.embedding_config()?)?;
        let loaded: H = model.load_as(config, cancel)?;
        let options = ProfileOptions::default().with_capacity(self.profile_events);
        let session = loaded.record(options)?;
        let profiling = Profiling {
            session,
            draft,
            _own: own,
        };
        Ok((loaded, Some(profiling)))
    }
}

/// Ends a profile, if one is being taken, and writes it.
pub(crate) fn finish(profiling: Option<Profiling>) -> Result<()> {
    let Some(Profiling {
        session,
        draft,
        _own,
    }) = profiling
    else {
        return Ok(());
    };
    let profile = session.finish();
    let mut writer = BufWriter::new(draft.file()?);
    let written = profile
        .write_chrome_trace(&mut writer)
        .and_then(|()| writer.flush());
    written.map_err(CliError::io(draft.name()))?;
    drop(writer);
    draft.complete()?;
    if profile.dropped() > 0 {
        eprintln!(
            "isovec: {} earlier events had no room in the trace; raise --profile-events",
            profile.dropped()
        );
    }
    Ok(())
}
