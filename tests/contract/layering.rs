//! Arrows point one way: cli, agents → nimbus → {ctkit, kube, etcd} → {agent, bus} → {client, store} → core → wire.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    process::Command,
};

use serde_json::Value;

use crate::tree;

/// The crates from the bottom up. One may depend on those of the layers below its own, never on one beside it.
const LAYERS: [&[&str]; 10] = [
    &["nimbus-wire"],
    &["nimbus-core", "nimbus-disk", "nimbus-http2"],
    &["nimbus-store", "nimbus-client"],
    &["nimbus-bus", "nimbus-agent"],
    &["ctkit", "nimbus-etcd"],
    &["nimbus-kube"],
    &["nimbus"],
    &["nimbus-testkit", "nimbus-sim"],
    &["nimbus-cli"],
    &["nimbus-bench", "nimbus-bench-kube", "nimbus-fuzz"],
];

/// Programs in `agents/` are users of the facade, so they stand beside the command.
const LAYER_OF_AGENTS: usize = 8;

/// Crates that need a protoc binary, or are too heavy for everybody's build.
const NOT_BY_DEFAULT: [&str; 6] =
    ["protoc-bin-vendored", "protobuf-src", "etcd-client", "kube", "kube-client", "k8s-openapi"];

/// A member of the workspace.
#[derive(Debug)]
struct Package {
    layer: Option<usize>,
    /// What it is built from. Tests may use everything.
    dependencies: BTreeSet<String>,
}

fn cargo(arguments: &[&str]) -> String {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo).args(arguments).current_dir(tree::root()).output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo {} failed: {complaint}", arguments.join(" "));
    String::from_utf8(output.stdout).unwrap()
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field]
        .as_str()
        .unwrap_or_else(|| panic!("cargo metadata without a text in `{field}`: {value}"))
}

fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value[field]
        .as_array()
        .unwrap_or_else(|| panic!("cargo metadata without a list in `{field}`"))
}

fn layer(name: &str, manifest: &str) -> Option<usize> {
    let agents = tree::root().join("agents");
    LAYERS
        .iter()
        .position(|layer| layer.contains(&name))
        .or_else(|| manifest.starts_with(agents.to_str().unwrap()).then_some(LAYER_OF_AGENTS))
}

fn packages(metadata: &Value) -> BTreeMap<&str, Package> {
    let package = |package| {
        let name = text(package, "name");
        let built_from = list(package, "dependencies").iter().filter(|dependency| dependency["kind"] != "dev");
        let dependencies = built_from.map(|dependency| text(dependency, "name").to_owned()).collect();
        (name, Package { layer: layer(name, text(package, "manifest_path")), dependencies })
    };
    list(metadata, "packages").iter().map(package).collect()
}

/// Every arrow that does not point downwards.
fn wrong_arrows(packages: &BTreeMap<&str, Package>) -> Vec<String> {
    let mut wrong = Vec::new();
    for (name, package) in packages {
        let Some(layer) = package.layer else {
            wrong.push(format!("{name} has no layer: give it one in tests/contract/layering.rs"));
            continue;
        };
        for dependency in &package.dependencies {
            let Some(below) = packages.get(dependency.as_str()) else { continue };
            if below.layer.is_some_and(|below| below >= layer) {
                wrong.push(format!("{name} -> {dependency} does not point to a lower layer"));
            }
        }
    }
    wrong
}

#[test]
fn crates_depend_on_lower_layers_only() {
    let metadata: Value = serde_json::from_str(&cargo(&["metadata", "--format-version", "1", "--no-deps"])).unwrap();
    let packages = packages(&metadata);
    assert!(packages.contains_key("nimbus-wire"), "cargo metadata does not list the workspace");
    let wrong = wrong_arrows(&packages);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn arrows_that_point_up_or_sideways_are_found() {
    fn check(name: &str, dependencies: &[&str], expected: &[&str]) {
        let package = |name: &str, dependencies: &[&str]| Package {
            layer: layer(name, "elsewhere"),
            dependencies: dependencies.iter().map(|&name| name.to_owned()).collect(),
        };
        let mut packages = BTreeMap::from(
            ["nimbus-wire", "nimbus-store", "nimbus-client", "nimbus-bus", "nimbus-agent", "nimbus-cli"]
                .map(|name| (name, package(name, &[]))),
        );
        packages.insert(name, package(name, dependencies));
        assert_eq!(wrong_arrows(&packages), expected);
    }

    check("nimbus-store", &["nimbus-wire", "bytes"], &[]);
    check("nimbus-store", &["nimbus-bus"], &["nimbus-store -> nimbus-bus does not point to a lower layer"]);
    check("nimbus-agent", &["nimbus-client"], &[]);
    check("nimbus-client", &["nimbus-store"], &["nimbus-client -> nimbus-store does not point to a lower layer"]);
    check("nimbus-bus", &["nimbus-agent"], &["nimbus-bus -> nimbus-agent does not point to a lower layer"]);
    check("nimbus-agent", &["nimbus-cli"], &["nimbus-agent -> nimbus-cli does not point to a lower layer"]);
    check("nimbus-utils", &[], &["nimbus-utils has no layer: give it one in tests/contract/layering.rs"]);
}

/// `cargo tree` without a package looks at the default members, with the features that they really turn on.
#[test]
fn a_default_build_needs_no_protoc_and_nothing_heavy() {
    let tree = cargo(&["tree", "--frozen", "--edges", "normal,build,dev", "--prefix", "none", "--format", "{p}"]);
    let names: BTreeSet<_> = tree.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.contains("nimbus-wire") && names.contains("protox"), "cargo tree does not list the default members");
    let unwanted: Vec<_> = NOT_BY_DEFAULT.iter().filter(|name| names.contains(*name)).collect();
    assert!(unwanted.is_empty(), "default members need {unwanted:?}: keep that in a crate outside default-members");
}

/// A second program among the default members made `cargo run -- serve`, the first command of the README, ask which one
/// was meant.
#[test]
fn cargo_run_knows_which_program_is_meant() {
    let metadata = cargo(&["metadata", "--frozen", "--no-deps", "--format-version", "1"]);
    let metadata: Value = serde_json::from_str(&metadata).unwrap();
    let defaults: BTreeSet<_> = list(&metadata, "workspace_default_members").iter().map(Value::as_str).collect();
    let is_default = |package: &&Value| defaults.contains(&package["id"].as_str());
    let is_program = |target: &&Value| list(target, "kind").iter().any(|kind| kind == "bin");
    let packages = list(&metadata, "packages").iter().filter(is_default);
    let programs: Vec<_> = packages.flat_map(|package| list(package, "targets")).filter(is_program).collect();
    let programs: Vec<_> = programs.into_iter().map(|target| text(target, "name")).collect();
    assert_eq!(programs, ["nimbus"]);
}

/// The parts that decide what should be true. A machine that only makes it true has no use for them.
const CONTROLLER_STACK: [&str; 5] = ["nimbus-store", "nimbus-bus", "ctkit", "nimbus-etcd", "nimbus-kube"];

/// Long enough for a handler, its arguments and an explanation.
const MAX_AGENT_LINES: usize = 80;

#[test]
fn an_agent_does_not_compile_the_controller_stack() {
    for agent in ["nimbus-client", "nimbus-agent", "file-agent", "sim-agent", "zone-agent"] {
        let tree =
            cargo(&["tree", "--frozen", "-p", agent, "--edges", "normal,build", "--prefix", "none", "--format", "{p}"]);
        let names: BTreeSet<_> = tree.lines().filter_map(|line| line.split_whitespace().next()).collect();
        assert!(names.contains(agent), "cargo tree does not list {agent}");
        let unwanted: Vec<_> = CONTROLLER_STACK.iter().filter(|name| names.contains(*name)).collect();
        assert!(unwanted.is_empty(), "{agent} needs {unwanted:?}");
    }
}

#[test]
fn agents_and_controllers_are_under_80_lines() {
    for file in [
        "crates/nimbus-agent/examples/motd.rs",
        "crates/ctkit/examples/policies/main.rs",
        "agents/file-agent/src/main.rs",
        "agents/sim-agent/src/main.rs",
        "agents/zone-agent/src/main.rs",
        "crates/nimbus-cli/src/demo/agent.rs",
        "crates/nimbus-cli/src/demo/controller.rs",
    ] {
        let lines = std::fs::read_to_string(tree::root().join(file)).unwrap().lines().count();
        assert!(lines < MAX_AGENT_LINES, "{file} has {lines} lines");
    }
}
