//! What people write: selectors, filters, manifests.

use nimbus_wire::v1;
use prost::Message as _;

use crate::corpus::{Files, named};

pub(super) fn selectors() -> Files {
    named([
        ("empty", ""),
        ("all-forms", "zone in (a,b),role=edge,tier!=db,os notin (bsd, mac),gpu,!canary"),
        ("double-equals", "zone==a"),
        ("prefixed", "example.com/zone=a,!example.com/canary"),
        ("no-values", "zone in ()"),
        ("an-empty-value", "zone="),
        ("an-empty-value-among-others", "zone in (,a)"),
        ("twice", "zone=a,zone=a,zone in (a)"),
        ("contradiction", "zone=a,zone!=a,!zone"),
        ("words-as-keys", "in in (in),notin notin (notin)"),
        ("spaces", "  zone   in  ( a ,  b )  , ! canary "),
        ("unbalanced", "zone in (a,b"),
        ("closed-twice", "zone in (a)),x"),
        ("nested", "zone in ((a))"),
        ("only-commas", ",,,"),
        ("not-equal-equal", "a!==b"),
        ("wide", "zöne=ä"),
        ("zero-width", "zone\u{200b}=a"),
    ])
}

pub(super) fn filters() -> Files {
    let filter = |namespaces: &[&str], names: &[&str], selector: &str, fields: &[&str]| {
        let strings = |texts: &[&str]| texts.iter().map(ToString::to_string).collect();
        let (namespaces, names, fields) = (strings(namespaces), strings(names), strings(fields));
        v1::Filter { namespaces, names, selector: selector.to_owned(), fields }.encode_to_vec()
    };
    named([
        ("everything", filter(&[], &[], "", &[])),
        ("all-parts", filter(&["", "prod"], &["web", "a"], "zone=a,!canary", &["spec.zone=a", "spec.inner.text!=b"])),
        ("names", filter(&[], &["web", "web", "a"], "", &[])),
        ("empty-namespace", filter(&[""], &[], "", &[])),
        ("selector", filter(&[], &[], "zone in (a,b),tier notin (db)", &[])),
        ("field", filter(&[], &[], "", &["spec.zone=a"])),
        ("field-with-equals-in-its-value", filter(&[], &[], "", &["spec.zone=a=b"])),
        ("field-with-a-test-in-its-value", filter(&[], &[], "", &["spec.zone=b!=c"])),
        ("field-without-a-value", filter(&[], &[], "", &["spec.zone="])),
        ("field-with-spaces", filter(&[], &[], "", &[" spec.zone = a "])),
        ("field-without-a-path", filter(&[], &[], "", &["spec.=a"])),
        ("field-of-something-else", filter(&[], &[], "", &["status.zone=a"])),
        ("field-too-long", filter(&[], &[], "", &[&format!("spec.zone={}", "a".repeat(1024))])),
        ("no-name", filter(&[], &[""], "", &[])),
        ("cut-off", vec![0x0a, 0x7f, b'a']),
    ])
}

pub(super) fn manifests() -> Files {
    let deep = format!(
        "kind: fuzz.Everything\nname: a\nspec: {}{}\n",
        "{inner: ".repeat(63),
        "{}".to_owned() + &"}".repeat(63)
    );
    let aliases: String = (0..12).map(|n| format!("a{}: &a{} [*a{n}, *a{n}]\n", n + 1, n + 1)).collect();
    let mut files = named([
        ("policy.yaml", POLICY),
        (
            "policy.json",
            r#"{"kind": "fuzz.Policy", "name": "web", "spec": {"zone": "a", "priority": 7, "rules": ["allow"]}}"#,
        ),
        ("everything.yaml", EVERYTHING),
        (
            "list.json",
            r#"{"items": [{"kind":"fuzz.Policy","name":"a","spec":{}},{"kind":"fuzz.Policy","name":"b","spec":{}}]}"#,
        ),
        ("several.yaml", "---\nkind: fuzz.Policy\nname: a\nspec: {}\n---\nkind: fuzz.Policy\nname: b\nspec: {}\n...\n"),
        ("twice.yaml", "kind: fuzz.Policy\nname: a\nspec: {}\n---\nkind: fuzz.Policy\nname: a\nspec: {}\n"),
        ("bytes.yaml", "kind: fuzz.Policy\nname: a\nspecBytes: CgFhEAc=\n"),
        (
            "old.yaml",
            "kind: fuzz.Old\nname: a\nspec: {name: x, part: [{size: 1, text: t}], packed: [1, -2], state: DONE}\n",
        ),
        ("required-is-nothing.yaml", "kind: fuzz.Old\nname: a\nspec: {name: , part: [{size: ~}]}\n"),
        ("unknown.yaml", "kind: fuzz.Polcy\nname: a\nspecs: {}\n"),
        (
            "types.yaml",
            "kind: fuzz.Policy\nname: 7\nlabels: [a]\nrefs: {}\naudience: 1\nspec: {zone: 7, priority: -1}\n",
        ),
        (
            "anchors.yaml",
            "kind: fuzz.Policy\nname: a\nlabels: &l {zone: a}\nannotations: *l\nspec: {rules: [&r x, *r]}\n",
        ),
        ("tags.yaml", "kind: !!str fuzz.Policy\nname: !mine a\nspec: !!map {}\n"),
        (
            "block.yaml",
            "kind: fuzz.Policy\nname: a\nspec:\n  zone: |+\n    one\n\n    two\n\n  rules:\n  - >-\n    folded\n    text\n",
        ),
        ("tab.yaml", "kind:\tfuzz.Policy\n\tname: a\n"),
        ("surrogates.json", r#"{"kind":"fuzz.Policy","name":"a","spec":{"zone":"😀\ud800","rules":["\u0000"]}}"#),
        (
            "numbers.json",
            r#"{"kind":"fuzz.Everything","name":"a","spec":{"u64":18446744073709551615,"i32":1e2,"twice":-0.0,"single":3.5e38}}"#,
        ),
        ("trailing.json", r#"{"kind":"fuzz.Policy","name":"a","spec":{}} x"#),
        ("unclosed.json", r#"{"kind":"fuzz.Policy","name":"a","spec":{"zone":"#),
        ("empty.yaml", ""),
        ("nothing.yaml", "---\n...\n"),
        ("mark.yaml", "\u{feff}kind: fuzz.Policy\nname: a\nspec: {}\n"),
        ("lines.yaml", "kind: fuzz.Policy\r\nname: a\r\nspec: {zone: \"a\u{2028}b\u{85}c\"}\r\n"),
    ]);
    files.insert("deep.yaml".to_owned(), deep.into_bytes());
    files.insert("aliases.yaml".to_owned(), format!("a0: &a0 [x]\n{aliases}").into_bytes());
    files.insert("no-utf8.yaml".to_owned(), b"kind: fuzz.Policy\nname: \xff\n".to_vec());
    files
}

const POLICY: &str = r#"# A policy, with everything around its spec.
kind: fuzz.Policy
namespace: prod
name: web
labels: {zone: a, "example.com/role": edge}
annotations:
  note: "by hand: \u00e9"
owner: {kind: fuzz.Old, name: o, uid: u}
refs:
- {kind: fuzz.Everything, name: z, weak: true}
- kind: fuzz.Everything
  namespace: prod
  name: y
audience: {selector: "zone in (a,b),!canary"}
spec:
  zone: a
  priority: 7
  rules: [allow, "no", '12', ""]
bus: {uid: u, generation: 3, revision: 9, manager: p}
"#;

const EVERYTHING: &str = r#"kind: fuzz.Everything
name: all
audience: {agents: [edge-1, edge-2]}
spec:
  text: "a b: #c"
  raw: aGVsbG8=
  flag: true
  i32: -2147483648
  s64: "-9223372036854775808"
  f32: 4294967295
  sf64: -1
  u64: "18446744073709551615"
  single: 1.5
  twice: .inf
  tier: TIER_WEB
  numbers: [1, -1, 0]
  tiers: [TIER_LOW, 1, TIER_UNSPECIFIED]
  texts: ["", "~", "null", " x "]
  byName: {a: "1", b: -2}
  nested: {1: {text: x}, -7: {}}
  raws: {true: AA==}
  maybe: ""
  inner: {inner: {inner: {flag: true}}}
  many: [{}, {text: y}]
  right: {zone: z}
  packed: {"@type": type.googleapis.com/fuzz.Policy, zone: p}
  free: {a: 1, b: [null, {c: "d"}], e: true}
  value: null
  at: "2024-02-29T23:59:59.999999999Z"
  took: -1.5s
  mask: text,inner.flag
  wrapped: ""
  count: "7"
  secret: hush
  list: [1, two]
"#;
