//! A zip archive of stored entries, as PyTorch writes it.
//!
//! Format: PKWARE's APPNOTE (<https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT>). The list at the end decides; the header
//! before an entry only says where its content begins.

use std::collections::HashMap;

use super::{Fault, damaged, unsupported};

const END: u32 = 0x0605_4b50;
const END_BYTES: usize = 22;
/// The records of large archives that stand between the list and the end, and which PyTorch always writes.
const LARGE_END_BYTES: usize = 56 + 20;
const LISTED: u32 = 0x0201_4b50;
const LISTED_BYTES: usize = 46;
const LOCAL: u32 = 0x0403_4b50;
const LOCAL_BYTES: usize = 30;

/// The bit of an entry that is encrypted.
const ENCRYPTED: u16 = 1;

/// The contents of an archive's files by their names.
///
/// # Errors
/// A fault for an archive that is cut short, has compressed or encrypted entries, a name twice, or a content that its checksum does
/// not fit.
pub(super) fn entries(file: &[u8]) -> Result<HashMap<&str, &[u8]>, Fault> {
    if !file.starts_with(&LOCAL.to_le_bytes()) {
        return unsupported("it is no zip archive");
    }
    let Some(end) = file.len().checked_sub(END_BYTES) else {
        return damaged("it is cut short");
    };
    let tail = &file[end..];
    if u32_at(tail, 0) != Some(END) || u16_at(tail, 20) != Some(0) {
        return damaged(
            "it does not end as a zip archive does; it is cut short, or has something behind it",
        );
    }
    let number = |at| u32_at(tail, at).and_then(|value| usize::try_from(value).ok());
    let (Some(count), Some(size), Some(start)) = (u16_at(tail, 10), number(12), number(16)) else {
        return damaged("it is cut short");
    };
    let list_end = start.checked_add(size);
    let fits = |&behind: &usize| behind == end || behind.checked_add(LARGE_END_BYTES) == Some(end);
    let Some(list_end) = list_end.filter(fits) else {
        return damaged("its list of entries is not where it says");
    };
    let mut rest = &file[start..list_end];
    let mut entries = HashMap::new();
    let mut unread = start;
    for _ in 0..count {
        let (name, content) = entry(&mut rest, &file[..start], &mut unread)?;
        if entries.insert(name, content).is_some() {
            return damaged(format!("the entry {name} occurs twice"));
        }
    }
    match rest.is_empty() {
        true => Ok(entries),
        false => damaged("its list of entries is longer than their number"),
    }
}

/// Takes the first entry off the list; `contents` is the archive before the list, of which `unread` bytes are in no entry yet.
fn entry<'f>(
    list: &mut &'f [u8],
    contents: &'f [u8],
    unread: &mut usize,
) -> Result<(&'f str, &'f [u8]), Fault> {
    let cut = || Fault::Damaged("its list of entries is cut short".into());
    let header = list.get(..LISTED_BYTES).ok_or_else(cut)?;
    if u32_at(header, 0) != Some(LISTED) {
        return damaged("its list of entries has something else in it");
    }
    let short = |at| u16_at(header, at).unwrap_or_default();
    let long = |at| u32_at(header, at).unwrap_or_default();
    let name_bytes = usize::from(short(28));
    let behind_name = usize::from(short(30)) + usize::from(short(32));
    let name = list
        .get(LISTED_BYTES..LISTED_BYTES + name_bytes)
        .ok_or_else(cut)?;
    *list = list
        .get(LISTED_BYTES + name_bytes + behind_name..)
        .ok_or_else(cut)?;
    let Ok(name) = std::str::from_utf8(name) else {
        return damaged("an entry's name is not UTF-8");
    };
    if short(8) & ENCRYPTED != 0 {
        return unsupported(format!("its entry {name} is encrypted"));
    }
    if short(10) != 0 || long(20) != long(24) {
        return unsupported(format!("its entry {name} is compressed"));
    }
    let outside = || Fault::Damaged(format!("the entry {name} is not inside the archive"));
    let place = |value| usize::try_from(value).map_err(|_| outside());
    let (at, size) = (place(long(42))?, place(long(24))?);
    let local = contents.get(at..).and_then(|from| from.get(..LOCAL_BYTES));
    let local = local.ok_or_else(outside)?;
    let lengths = u16_at(local, 26).zip(u16_at(local, 28));
    let (own_name, extra) = lengths.ok_or_else(outside)?;
    let begin = at + LOCAL_BYTES;
    let named = contents.get(begin..begin + usize::from(own_name));
    if u32_at(local, 0) != Some(LOCAL) || named != Some(name.as_bytes()) {
        return damaged(format!("the entry {name} is not where the list says"));
    }
    let begin = begin + usize::from(own_name) + usize::from(extra);
    let content = contents.get(begin..).and_then(|from| from.get(..size));
    let content = content.ok_or_else(outside)?;
    match unread.checked_sub(size) {
        Some(rest) => *unread = rest,
        None => return damaged("its entries share their contents"),
    }
    if crc32(content) != long(16) {
        return damaged(format!("the checksum of its entry {name} is another"));
    }
    Ok((name, content))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let own = bytes.get(at..)?.first_chunk()?;
    Some(u16::from_le_bytes(*own))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let own = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_le_bytes(*own))
}

/// The checksum of zip: CRC-32 of ISO 3309, bits reversed. The usual crate for it would put a table of 16 KiB into the
/// module that pages download.
fn crc32(bytes: &[u8]) -> u32 {
    let table: [u32; 256] = std::array::from_fn(|byte| {
        (0..8).fold(byte as u32, |rest, _| match rest & 1 {
            1 => (rest >> 1) ^ 0xedb8_8320,
            _ => rest >> 1,
        })
    });
    !bytes.iter().fold(!0, |rest: u32, &byte| {
        table[usize::from(rest as u8 ^ byte)] ^ (rest >> 8)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_has_its_published_check_value() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32(b""), 0);
    }
}
