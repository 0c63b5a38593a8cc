//! The errors of a saved benchmark.

/// Why a benchmark that was kept cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum KeptError {
    /// Nothing has that name.
    #[error("no benchmark has this name; `isovec bench --list` lists the saved ones")]
    NotThere,

    /// A name that cannot be that of a file everywhere.
    #[error(
        "a name has at most 64 letters, digits, `-`, `_` and `.`, begins with a letter or digit and has no `..`; a \
         file has a separator in it or ends in .json"
    )]
    Name,

    /// It ends in the middle.
    #[error("it ends in the middle; measure it again with --save")]
    Truncated,

    /// It cannot be read, or says what no benchmark says.
    #[error("it is damaged or was edited ({0}); measure it again with --save")]
    Damaged(String),

    /// A file of something else.
    #[error("it is not a benchmark of isovec")]
    Foreign,

    /// A file of another isovec.
    #[error(
        "it has version {found} of the format, and this isovec reads {known}; use the isovec that \
         wrote it, or measure again"
    )]
    Version { found: u32, known: u32 },

    /// It cannot be compared with.
    #[error("it measures something else, so a comparison would mean nothing: {}", .0.join("; "))]
    Other(Vec<String>),

    /// It is of another machine.
    #[error(
        "it was measured on another machine ({then}; this is {now}); use --allow-other-machine to compare anyway"
    )]
    OtherMachine { then: String, now: String },
}

impl KeptError {
    /// Whether another command would do.
    pub(crate) fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::Name | Self::Other(_) | Self::OtherMachine { .. }
        )
    }
}
