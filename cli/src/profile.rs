//! `--profile FILE`: a trace of what a command embedded.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use isovec::blocking::Embedder;
use isovec::{Cancel, EmbeddingConfig, ProfileOptions, ProfileSession};

use crate::args::ModelArgs;
use crate::error::{CliError, Result};

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
    file: File,
    path: PathBuf,
    /// Goes when the profile is written.
    _own: Option<Folder>,
}

/// A folder of our own for the profile that ONNX Runtime takes by itself, which it writes to a file.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// The configuration under which ONNX Runtime takes its own profile, and where it writes it, if
    /// that was not said.
    pub(crate) fn of(config: EmbeddingConfig) -> Result<(EmbeddingConfig, Option<Self>)> {
        if config.runtime.session.profiling.is_some() {
            return Ok((config, None));
        }
        let folder = Self::new()?;
        let config = config.with_profiling(folder.0.join("onnxruntime"));
        Ok((config, Some(folder)))
    }

    fn new() -> Result<Self> {
        let path = std::env::temp_dir().join(format!("isovec-profile-{}", std::process::id()));
        std::fs::create_dir_all(&path).map_err(named(&path))?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed is the system's to clean up, as other temporary files are.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl ProfileArgs {
    /// Loads the model, and begins a profile, where one was asked for. The file is made first, so that
    /// one that cannot be written is known before anything is done.
    pub(crate) fn load(
        &self,
        model: &ModelArgs,
        cancel: &Cancel,
    ) -> Result<(Embedder, Option<Profiling>)> {
        let Some(path) = &self.profile else {
            return Ok((model.load(cancel)?, None));
        };
        let file = File::create(path).map_err(named(path))?;
        let (config, own) = Folder::of(model.embedding_config()?)?;
        let embedder = model.load_as(config, cancel)?;
        let options = ProfileOptions::default().with_capacity(self.profile_events);
        let session = embedder.profile(options)?;
        let profiling = Profiling {
            session,
            file,
            path: path.clone(),
            _own: own,
        };
        Ok((embedder, Some(profiling)))
    }
}

/// Ends a profile, if one is being taken, and writes it.
pub(crate) fn finish(profiling: Option<Profiling>) -> Result<()> {
    let Some(Profiling {
        session,
        file,
        path,
        _own,
    }) = profiling
    else {
        return Ok(());
    };
    let profile = session.finish();
    let written = profile.write_chrome_trace(BufWriter::new(file));
    written.map_err(named(&path))?;
    if profile.dropped() > 0 {
        eprintln!(
            "isovec: {} earlier events had no room in the trace; --profile-events keeps more",
            profile.dropped()
        );
    }
    Ok(())
}

fn named(path: &Path) -> impl FnOnce(std::io::Error) -> CliError {
    CliError::io(path.display().to_string())
}
