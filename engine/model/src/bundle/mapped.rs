//! A mapped file. Only the parts that are lent take memory.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use isovec_engine::content::ByteSource;
use memmap2::Mmap;

/// A file in the address space.
#[derive(Debug)]
pub(super) struct Mapped(Arc<Mmap>);

impl Mapped {
    pub(super) fn new(file: &File) -> io::Result<Self> {
        // SAFETY: a mapping is sound as long as nobody changes or shortens the file while it lives,
        // which no operating system can promise. The files are a model's weights: the Hugging Face
        // cache never changes one in place, our downloads and exports replace files by renaming, and
        // the documentation of `ModelBundle` asks the same of everybody else. Every reader of large
        // models makes this choice; the other one is to hold each model in memory twice.
        let mapping = unsafe { Mmap::map(file)? };
        Ok(Self(Arc::new(mapping)))
    }
}

impl ByteSource for Mapped {
    fn size(&self) -> usize {
        self.0.len()
    }

    fn read(&self, from: usize, into: &mut [u8]) -> io::Result<()> {
        let end = from.checked_add(into.len());
        let part = end.and_then(|end| self.0.get(from..end));
        into.copy_from_slice(part.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn lend(&self, range: Range<usize>) -> Option<Bytes> {
        self.0.get(range.clone())?;
        let mapping = Arc::clone(&self.0);
        Some(Bytes::from_owner(Lent { mapping, range }))
    }
}

/// A part that somebody reads.
struct Lent {
    mapping: Arc<Mmap>,
    /// Inside the mapping.
    range: Range<usize>,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.mapping[self.range.clone()]
    }
}

/// Pages that were read count as the process's memory, and a container's limit knows no better, until they are given
/// back. Whoever reads them again finds them in the system's file cache.
#[cfg(unix)]
impl Drop for Lent {
    fn drop(&mut self) {
        use memmap2::UncheckedAdvice::DontNeed;
        // SAFETY: the mapping is shared and only read, so a page of it holds nothing but the file's bytes; one that is
        // read again, also by whoever was lent a part of the same page, is the same again. The range is inside.
        let given_back = unsafe {
            self.mapping
                .unchecked_advise_range(DontNeed, self.range.start, self.range.len())
        };
        // A system that does not take it back keeps it, which changes no vector.
        drop(given_back);
    }
}
