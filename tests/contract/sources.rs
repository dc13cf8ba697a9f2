//! Every source file belongs to a program or a library.

use std::{fs, path::Path};

use crate::tree;

/// Where sources are: in each of these, of every package.
const PLACES: [&str; 3] = ["src", "tests", "examples"];

/// Whether the file that a module would be declared in says that there is such a module.
fn is_declared(file: &Path) -> bool {
    let (Some(name), Some(folder)) = (file.file_stem().and_then(|name| name.to_str()), file.parent()) else {
        return false;
    };
    let declaration = format!("mod {name};");
    let declares = |parent: &Path| {
        let text = fs::read_to_string(parent).unwrap_or_default();
        text.lines()
            .any(|line| line.trim_start_matches("pub ").trim_start_matches("pub(crate) ").trim() == declaration)
    };
    ["lib.rs", "main.rs"].iter().any(|root| declares(&folder.join(root))) || declares(&folder.with_extension("rs"))
}

/// Roots are named by cargo, by a build script, or by convention.
fn is_root(file: &Path) -> bool {
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let programs = ["examples", "fuzz_targets"];
    let is_program = file
        .parent()
        .is_some_and(|folder| programs.iter().any(|programs| folder.ends_with(programs)));
    matches!(name, "lib.rs" | "main.rs") || is_program
}

/// What had moved to a crate of its own was still where it came from, and nobody noticed, because nothing compiled it.
#[test]
fn every_source_file_is_a_module_of_something() {
    let mut lost = Vec::new();
    for member in ["crates", "agents"] {
        let packages = fs::read_dir(tree::root().join(member)).unwrap();
        for package in packages.map(|package| package.unwrap().path()) {
            for place in PLACES {
                let files = tree::files_below(&package.join(place), &["rs"]);
                lost.extend(files.into_iter().filter(|file| !is_root(file) && !is_declared(file)));
            }
        }
    }
    lost.extend(
        tree::files_below(&tree::root().join("tests"), &["rs"])
            .into_iter()
            .filter(|file| !is_root(file) && !is_declared(file)),
    );
    assert!(lost.is_empty(), "nothing compiles {lost:#?}");
}
