//! Documents that say what to type, step by step.

use std::fs;

use crate::{outside, walkthrough::Walkthrough};

/// Every file of docs/TUTORIAL.md is written as it is shown there, and every command is run where it is shown, and prints
/// what is shown.
#[tokio::test]
async fn the_tutorial_works_as_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let document = fs::read_to_string(outside::root().join("docs/TUTORIAL.md")).unwrap();
    Walkthrough::begin(&folder.path().join("hosts")).follow(&document).await;
}

/// What the README says of a bus of one's own is done in the same way.
#[tokio::test]
async fn the_readme_works_as_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let document = fs::read_to_string(outside::root().join("README.md")).unwrap();
    let (_, section) = document.split_once("A bus of your own,").expect("the README has a bus of one's own");
    let (section, _) = section.split_once("## Write a controller").expect("the README goes on with controllers");
    Walkthrough::without_building(folder.path()).follow(section).await;
}
