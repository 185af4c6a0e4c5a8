//! Pages that name tests are held to them: what a page names is there, and the catalogue of bad
//! input names every test of its rows. Each check is a pure function over texts, and is itself
//! shown to catch what it is for.
#![expect(clippy::unwrap_used, reason = "a test fails where its set-up fails")]

mod tracked;

use std::collections::BTreeSet;

use tracked::tracked;

/// The page that names every test of a row.
const CATALOGUE: &str = "docs/bad-input.md";
const PAGES: [&str; 2] = [CATALOGUE, "docs/rules.md"];
const ROWS: u32 = 102;

/// Names of functions in Rust sources.
fn functions<'t>(texts: impl IntoIterator<Item = &'t str>) -> BTreeSet<&'t str> {
    let lines = texts.into_iter().flat_map(str::lines);
    lines.filter_map(function).collect()
}

fn function(line: &str) -> Option<&str> {
    let code = line.trim_start().trim_start_matches("pub(crate) ").trim_start_matches("async ");
    let rest = code.strip_prefix("fn ")?;
    rest.split(['(', '<']).next()
}

/// What stands between backquotes.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Whether this is the name of a test, or the beginning of one: a fact has many words.
fn is_fact(name: &str) -> bool {
    let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let begins = name.strip_suffix("...");
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && begins.unwrap_or(name).chars().all(word)
        && (begins.is_some() || name.matches('_').count() > 2)
}

/// Facts that a page names and nobody tests.
fn made_up(page: &str, functions: &BTreeSet<&str>) -> Vec<String> {
    let is_there = |name: &str| match name.strip_suffix("...") {
        Some(begin) => functions.iter().any(|function| function.starts_with(begin)),
        None => functions.contains(name),
    };
    quoted(page).filter(|name| is_fact(name) && !is_there(name)).map(str::to_owned).collect()
}

/// The rows of the catalogue: their numbers, and the line that they are in.
fn rows(page: &str) -> Vec<(u32, &str)> {
    let numbered = |line: &'_ str| {
        let cell = line.strip_prefix("| ")?.split(" | ").next()?.to_owned();
        cell.split(", ").map(|number| number.parse().ok()).collect::<Option<Vec<u32>>>()
    };
    let lines = page.lines().filter_map(|line| Some((numbered(line)?, line)));
    lines.flat_map(|(numbers, line)| numbers.into_iter().map(move |n| (n, line))).collect()
}

/// Tests of a row that the catalogue does not name beside its number.
fn not_named(page: &str, functions: &BTreeSet<&str>) -> Vec<String> {
    let rows = rows(page);
    let of_row = |name: &&&str| {
        let number = name.strip_prefix("row_")?.split('_').next()?;
        number.parse::<u32>().ok()
    };
    let named = |number: u32, name: &str| {
        rows.iter().any(|(row, line)| *row == number && quoted(line).any(|quote| quote == name))
    };
    let tests = functions.iter().filter_map(|name| Some((of_row(&name)?, *name)));
    tests.filter(|(number, name)| !named(*number, name)).map(|(_, name)| name.to_owned()).collect()
}

fn sources() -> Vec<(String, String)> {
    tracked(&[".rs"])
}

fn page(name: &str) -> String {
    tracked(&[name]).pop().unwrap().1
}

#[test]
fn every_test_that_a_page_names_is_there() {
    let sources = sources();
    let functions = functions(sources.iter().map(|(_, text)| text.as_str()));
    for name in PAGES {
        assert_eq!(made_up(&page(name), &functions), [""; 0], "{name}");
    }
}

#[test]
fn the_catalogue_of_bad_input_names_every_test_of_a_row() {
    let sources = sources();
    let functions = functions(sources.iter().map(|(_, text)| text.as_str()));
    assert_eq!(not_named(&page(CATALOGUE), &functions), [""; 0]);
}

#[test]
fn the_catalogue_of_bad_input_has_each_row_once() {
    let page = page(CATALOGUE);
    let mut numbers: Vec<_> = rows(&page).into_iter().map(|(number, _)| number).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=ROWS).collect::<Vec<_>>());
}

#[test]
fn each_check_catches_what_it_is_for() {
    let source = "async fn row_07_a_is_b(world: World) {\n    pub(crate) fn a_b_c_d<T>() {}\n";
    let functions = functions([source]);
    assert_eq!(functions, BTreeSet::from(["a_b_c_d", "row_07_a_is_b"]));
    let good = "| 7 | `limits.a` | `row_07_a_is_b` and `a_b_...`, `a_b` |\n";
    assert!(made_up(good, &functions).is_empty() && not_named(good, &functions).is_empty());
    assert_eq!(made_up("`row_07_a_is_c`, `b_a_...`", &functions), ["row_07_a_is_c", "b_a_..."]);
    assert_eq!(not_named(&good.replace("| 7 |", "| 8 |"), &functions), ["row_07_a_is_b"]);
    assert_eq!(
        rows("| 7, 8 | a |\n| rows | b |\n| --- |"),
        [(7, "| 7, 8 | a |"), (8, "| 7, 8 | a |")]
    );
}
