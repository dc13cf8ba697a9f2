//! The tutorial, step by step.

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
