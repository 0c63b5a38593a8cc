//! What was probably meant by a name that nothing has.

/// A name that was probably meant, else all there are: the end of a message about an unknown one.
pub(super) fn suggest<'a>(written: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    let written = written.to_ascii_lowercase().replace(['_', ' '], "-");
    let likely = known
        .clone()
        .map(|name| {
            let folded = name.to_ascii_lowercase().replace('_', "-");
            // Usual longer forms count as their beginning: `CUDAExecutionProvider`.
            let near = if written.starts_with(&folded) {
                1.0
            } else {
                strsim::jaro_winkler(&written, &folded)
            };
            (near, name)
        })
        .max_by(|a, b| a.0.total_cmp(&b.0));
    match likely {
        Some((near, name)) if near > 0.75 => format!("did you mean {name:?}?"),
        _ => format!("there are {}", known.collect::<Vec<_>>().join(", ")),
    }
}
