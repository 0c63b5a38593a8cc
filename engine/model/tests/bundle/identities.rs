//! Hashes of checkpoints that are kept.

use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use isovec_model::bundle::{self, BundleOptions};
use isovec_test_models::checkpoint::Stored;
use isovec_test_models::models::bert;

/// Longer than files need to be taken for settled.
const A_WHILE: Duration = Duration::from_millis(2_300);

/// The hash of a folder's weights, with the hashes that `kept` holds or without any.
fn identity(folder: &Path, kept: Option<&Path>) -> String {
    let options = BundleOptions {
        identities: kept.map(Path::to_owned),
        ..BundleOptions::default()
    };
    bundle::from_folder(folder, &options).unwrap().identity.0
}

fn entries(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn files_that_did_not_change_are_hashed_once() {
    let (folder, kept) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (model, kept) = (folder.path(), kept.path());
    fs::write(model.join("config.json"), bert().config_json()).unwrap();
    let weights = model.join("model.safetensors");
    fs::write(&weights, bert().file(Stored::F32)).unwrap();
    let own = identity(model, None);
    // It has just been written, and may be written again in the same tick of a clock.
    assert_eq!(identity(model, Some(kept)), own);
    assert_eq!(entries(kept), Vec::<std::path::PathBuf>::new());
    sleep(A_WHILE);
    assert_eq!(identity(model, Some(kept)), own);
    let [entry] = &entries(kept)[..] else {
        panic!("one entry");
    };
    // What is kept is what is taken.
    let other = "0123456789abcdef".repeat(4);
    let text = fs::read_to_string(entry).unwrap().replace(&own, &other);
    fs::write(entry, text).unwrap();
    assert_eq!(identity(model, Some(kept)), other);
    assert_eq!(identity(model, None), own);
    // A file with other bytes of the same number, time and name.
    let times = fs::metadata(&weights).unwrap().modified().unwrap();
    let mut bytes = fs::read(&weights).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&weights, bytes).unwrap();
    let file = fs::File::options().write(true).open(&weights).unwrap();
    file.set_modified(times).unwrap();
    drop(file);
    let new = identity(model, Some(kept));
    assert!(new != own && new != other);
    sleep(A_WHILE);
    assert_eq!(identity(model, Some(kept)), new);
    assert_eq!(entries(kept).len(), 2);
}
