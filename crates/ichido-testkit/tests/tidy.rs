//! The style of the repository, held mechanically: what a reader may rely on in every file.
//! Each check is a pure function over a text, and is itself shown to catch what it is for.
#![expect(clippy::unwrap_used, reason = "a test fails where its set-up fails")]

mod tracked;

use std::path::Path;

use tracked::tracked;

const FILE_LINES_MAX: usize = 400;
const FUNCTION_LINES_MAX: usize = 60;
const LINE_COLUMNS_MAX: usize = 100;

/// Files that may break a rule, and why: `(ending of the path, rule, reason)`.
const EXCEPTIONS: [(&str, &str, &str); 1] =
    [("tests/tidy.rs", "words", "names the words that it looks for")];

fn assert_none(rule: &str, endings: &[&str], check: impl Fn(&str, &str) -> Vec<String>) {
    let excused = |name: &str| EXCEPTIONS.iter().any(|(e, r, _)| name.ends_with(e) && *r == rule);
    let files = tracked(endings);
    assert!(files.len() > 3, "found only {} files", files.len());
    let broken: Vec<_> = files
        .iter()
        .filter(|(name, _)| !excused(name))
        .flat_map(|(name, text)| check(name, text).into_iter().map(move |b| format!("{name}:{b}")))
        .collect();
    assert!(broken.is_empty(), "{rule}:\n{}", broken.join("\n"));
}

/// Rust files say what they are for; SQL files which rule they hold.
fn opening(name: &str, text: &str) -> Vec<String> {
    let want = if has_ending(name, "sql") { "--" } else { "//!" };
    if text.starts_with(want) { vec![] } else { vec![format!("1: does not open with {want}")] }
}

fn has_ending(name: &str, ending: &str) -> bool {
    Path::new(name).extension().is_some_and(|found| found == ending)
}

fn size(_: &str, text: &str) -> Vec<String> {
    let lines = text.lines().count();
    let mut broken = Vec::new();
    if lines > FILE_LINES_MAX {
        broken.push(format!("{lines}: more than {FILE_LINES_MAX} lines"));
    }
    for (number, line) in text.lines().enumerate() {
        let columns = line.chars().count();
        if columns > LINE_COLUMNS_MAX {
            broken.push(format!("{}: {columns} columns", number + 1));
        }
    }
    broken
}

/// Functions by their indentation, which rustfmt makes reliable.
fn functions(_: &str, text: &str) -> Vec<String> {
    let lines: Vec<_> = text.lines().collect();
    let mut broken = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        let words = [
            "fn ",
            "pub fn ",
            "async fn ",
            "pub async fn ",
            "pub(crate) fn ",
            "pub(super) fn ",
            "pub(crate) async fn ",
            "pub(super) async fn ",
            "const fn ",
        ];
        if !words.iter().any(|word| code.starts_with(word)) {
            continue;
        }
        let end = format!("{}}}", &line[..line.len() - code.len()]);
        let Some(length) = lines[start..].iter().position(|l| *l == end) else { continue };
        if length >= FUNCTION_LINES_MAX {
            broken.push(format!("{}: a function of {} lines", start + 1, length + 1));
        }
    }
    broken
}

/// Words that must not stand in code, and a promise that must not stand alone.
fn words(name: &str, text: &str) -> Vec<String> {
    let mut banned = vec![];
    if has_ending(name, "rs") {
        banned = vec!["#[allow", "#![allow", "todo!(", "dbg!(", "unimplemented!("];
    }
    let mut broken: Vec<_> = text
        .lines()
        .enumerate()
        .filter_map(|(n, line)| {
            let word = banned.iter().find(|word| line.contains(**word))?;
            Some(format!("{}: {word}", n + 1))
        })
        .collect();
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    let bare = flat.matches("exactly once").count();
    if bare > flat.matches("exactly once in your database, in your transaction").count() {
        broken.push("0: a promise without its clause".into());
    }
    broken
}

/// Crates forbid unsafe code at their roots.
fn forbids_unsafe(name: &str, text: &str) -> Vec<String> {
    let root = name.ends_with("src/lib.rs") || name.ends_with("src/main.rs");
    if root && !text.contains("#![forbid(unsafe_code)]") {
        return vec!["1: no #![forbid(unsafe_code)]".into()];
    }
    vec![]
}

/// Every direct dependency has its reason beside it; those of the workspace are our own.
fn reasons(name: &str, text: &str) -> Vec<String> {
    let mut section = String::new();
    let mut broken = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if line.starts_with('[') {
            line.clone_into(&mut section);
        }
        let dependencies = section.contains("dependencies") && !section.contains("workspace.");
        let ours = line.starts_with("ichido");
        if dependencies && line.contains(" = ") && !ours && !line.contains(" # ") {
            broken.push(format!("{}: no reason beside {line}", number + 1));
        }
    }
    if name.starts_with("examples/") { vec![] } else { broken }
}

#[test]
fn every_file_opens_with_what_it_is_for() {
    assert_none("opening", &[".rs", ".sql"], opening);
}

#[test]
fn files_and_lines_are_short() {
    assert_none("size", &[".rs", ".sql"], size);
}

#[test]
fn functions_are_short() {
    assert_none("functions", &[".rs"], functions);
}

#[test]
fn no_word_stands_where_it_must_not() {
    assert_none("words", &[".rs", ".sql", ".md"], words);
}

#[test]
fn every_crate_forbids_unsafe_code() {
    assert_none("unsafe", &[".rs"], forbids_unsafe);
}

#[test]
fn every_direct_dependency_has_its_reason() {
    assert_none("reasons", &["Cargo.toml"], reasons);
}

#[test]
fn each_check_catches_what_it_is_for() {
    let long = format!("fn f() {{\n{}}}\n", "    x();\n".repeat(60));
    let caught = [
        opening("a.rs", "use x;"),
        opening("a.sql", "SELECT 1"),
        size("a.rs", &"\n".repeat(401)),
        size("a.rs", &"x".repeat(101)),
        functions("a.rs", &long),
        words("a.rs", "#[allow(dead_code)]"),
        words("a.md", "We deliver exactly\nonce."),
        forbids_unsafe("crates/x/src/lib.rs", "//! x"),
        reasons("crates/x/Cargo.toml", "[dependencies]\nserde = \"1\"\n"),
    ];
    for (number, caught) in caught.iter().enumerate() {
        assert_eq!(caught.len(), 1, "check {number}");
    }
    let good = "exactly once in your database, in your transaction";
    assert!(words("a.md", good).is_empty());
}
