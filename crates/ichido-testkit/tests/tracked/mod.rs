//! The files of the repository, as git lists them. Must never read what is not under version
//! control: builds and notes lie beside it.

use std::{fs, path::Path, process::Command};

/// Name and text of each file whose name ends so.
pub(crate) fn tracked(endings: &[&str]) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let listed = Command::new("git").args(["ls-files"]).current_dir(&root).output().unwrap();
    assert!(listed.status.success(), "git ls-files");
    let names = String::from_utf8(listed.stdout).unwrap();
    let wanted = names.lines().filter(|name| endings.iter().any(|e| name.ends_with(e)));
    // A file may be deleted and still be listed.
    wanted.filter_map(|n| Some((n.to_owned(), fs::read_to_string(root.join(n)).ok()?))).collect()
}
