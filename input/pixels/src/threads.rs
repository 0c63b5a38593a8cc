//! Work on a slice, on several threads.

/// Cuts a slice into parts of whole chunks of `chunk` values, one for each thread, and calls `job` with the number of
/// each part's first chunk and the part, on a thread of its own; the caller's thread has the first.
pub(crate) fn split<T: Send>(
    threads: usize,
    to: &mut [T],
    chunk: usize,
    job: impl Fn(usize, &mut [T]) + Sync,
) {
    let chunks = to.len() / chunk;
    let threads = threads.min(chunks);
    if threads < 2 {
        job(0, to);
        return;
    }
    let each = chunks.div_ceil(threads);
    let (first, rest) = to.split_at_mut(each * chunk);
    std::thread::scope(|scope| {
        for (number, part) in rest.chunks_mut(each * chunk).enumerate() {
            let job = &job;
            scope.spawn(move || job((number + 1) * each, part));
        }
        job(0, first);
    });
}

/// As [`split`], of three slices of one length.
pub(crate) fn split_planes(
    threads: usize,
    to: [&mut [f32]; 3],
    chunk: usize,
    job: impl Fn(usize, [&mut [f32]; 3]) + Sync,
) {
    let chunks = to[0].len() / chunk;
    let threads = threads.min(chunks);
    if threads < 2 {
        job(0, to);
        return;
    }
    let each = chunks.div_ceil(threads);
    let [red, green, blue] = to;
    let planes = red
        .chunks_mut(each * chunk)
        .zip(green.chunks_mut(each * chunk));
    let planes = planes.zip(blue.chunks_mut(each * chunk));
    let mut parts = (0..).step_by(each).zip(planes);
    let mine = parts.next();
    std::thread::scope(|scope| {
        for (first, ((red, green), blue)) in parts {
            let job = &job;
            scope.spawn(move || job(first, [red, green, blue]));
        }
        if let Some((first, ((red, green), blue))) = mine {
            job(first, [red, green, blue]);
        }
    });
}
