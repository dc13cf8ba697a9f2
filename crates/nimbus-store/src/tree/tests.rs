//! The tree against the map of the standard library, and how full its nodes are.

use std::{cmp::Ordering, collections::BTreeMap, ops::Bound, sync::Arc};

use proptest::prelude::*;

use crate::tree::{
    Item, Node, Tree,
    row::{Row, WIDTH},
};

/// A number, and which of several with that number.
type Numbered = (u16, u32);

impl Item for Arc<Numbered> {
    type Key<'a> = u16;
    type Mark = u16;

    fn key(&self) -> u16 {
        self.0
    }

    fn mark(&self) -> u16 {
        self.0
    }

    fn place(mark: &u16) -> u16 {
        *mark
    }

    fn order(one: u16, two: u16) -> Ordering {
        one.cmp(&two)
    }
}

type Numbers = Tree<Arc<Numbered>>;

#[derive(Debug, Clone)]
enum Step {
    Insert(u16),
    /// Many, one after the other, upwards or downwards.
    Run(u16, u8, bool),
    /// Many at once: upwards, and every so many a step back.
    Extend(u16, u8, u8),
    Remove(u16),
    Clear(u16, u8),
    Keep,
}

fn step() -> impl Strategy<Value = Step> {
    let number = 0..1200_u16;
    prop_oneof![
        6 => number.clone().prop_map(Step::Insert),
        2 => (number.clone(), 1..100_u8, any::<bool>()).prop_map(|(from, len, up)| Step::Run(from, len, up)),
        2 => (number.clone(), 1..100_u8, 1..40_u8).prop_map(|(from, len, back)| Step::Extend(from, len, back)),
        6 => number.clone().prop_map(Step::Remove),
        2 => (number, 1..100_u8).prop_map(|(from, len)| Step::Clear(from, len)),
        1 => Just(Step::Keep),
    ]
}

fn all<T>(row: &Row<T>) -> impl Iterator<Item = &T> {
    (0..row.len()).map(|at| row.get(at))
}

fn contents(tree: &Numbers) -> Vec<Numbered> {
    tree.iter().map(|item| **item).collect()
}

/// Checks what must hold within a node, and returns how deep it is, with the items of each leaf.
fn check(node: &Node<Arc<Numbered>>, leaves: &mut Vec<usize>) -> usize {
    match node {
        Node::Leaf(row) => {
            let numbers: Vec<_> = all(row).map(|item| item.0).collect();
            assert!(numbers.is_sorted_by(|one, two| one < two) && !numbers.is_empty());
            assert_eq!(numbers.len(), row.len());
            leaves.push(row.len());
            0
        }
        Node::Branch(row) => {
            assert!(row.len() > 0);
            let depths: Vec<_> = all(row).map(|child| check(&child.node, leaves)).collect();
            assert!(depths.iter().all(|depth| *depth == depths[0]), "leaves are on one level");
            for (before, child) in all(row).zip(all(row).skip(1)) {
                assert!(last(&before.node) < child.mark && child.mark <= first(&child.node));
            }
            depths[0] + 1
        }
    }
}

fn first(node: &Node<Arc<Numbered>>) -> u16 {
    match node {
        Node::Leaf(row) => row.get(0).0,
        Node::Branch(row) => first(&row.get(0).node),
    }
}

fn last(node: &Node<Arc<Numbered>>) -> u16 {
    match node {
        Node::Leaf(row) => row.get(row.len() - 1).0,
        Node::Branch(row) => last(&row.get(row.len() - 1).node),
    }
}

fn leaves(tree: &Numbers) -> Vec<usize> {
    let mut leaves = Vec::new();
    if let Some(root) = &tree.root {
        check(root, &mut leaves);
    }
    assert_eq!(leaves.iter().sum::<usize>(), tree.len());
    leaves
}

/// Items per place for them, in percent.
fn filled(tree: &Numbers) -> usize {
    tree.len() * 100 / (leaves(tree).len() * WIDTH)
}

fn insert(tree: &mut Numbers, model: &mut BTreeMap<u16, u32>, number: u16, version: u32) {
    let old = tree.insert(Arc::new((number, version)));
    assert_eq!(old.map(|old| old.1), model.insert(number, version));
}

fn remove(tree: &mut Numbers, model: &mut BTreeMap<u16, u32>, number: u16) {
    assert_eq!(tree.remove(number).map(|item| item.1), model.remove(&number));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_tree_has_what_a_map_has_and_its_clones_stay_as_they_were(steps in prop::collection::vec(step(), 1..120)) {
        let (mut tree, mut model, mut kept) = (Numbers::new(), BTreeMap::new(), Vec::new());
        for (version, step) in (0..).zip(steps) {
            match step {
                Step::Insert(number) => insert(&mut tree, &mut model, number, version),
                Step::Run(from, len, up) => {
                    let numbers = (0..u16::from(len)).map(|at| if up { from + at } else { (from + 100) - at });
                    numbers.for_each(|number| insert(&mut tree, &mut model, number, version));
                }
                Step::Extend(from, len, back) => {
                    let back = u16::from(back);
                    let numbers = (0..u16::from(len)).map(|at| from + at - at / back * back / 2);
                    let numbers: Vec<_> = numbers.map(|number| (number, version)).collect();
                    tree.extend(numbers.iter().copied().map(Arc::new));
                    model.extend(numbers);
                }
                Step::Remove(number) => remove(&mut tree, &mut model, number),
                Step::Clear(from, len) => {
                    (from..from + u16::from(len)).for_each(|number| remove(&mut tree, &mut model, number));
                }
                Step::Keep => kept.push((tree.clone(), contents(&tree))),
            }
            prop_assert_eq!((tree.len(), tree.is_empty()), (model.len(), model.is_empty()));
            leaves(&tree);
        }
        prop_assert_eq!(contents(&tree), model.iter().map(|(number, version)| (*number, *version)).collect::<Vec<_>>());
        for number in 0..1400 {
            prop_assert_eq!(tree.get(number).map(|item| item.1), model.get(&number).copied());
            for from in [Bound::Included(number), Bound::Excluded(number)] {
                let expected = model.range((from, Bound::Unbounded)).next().map(|(number, _)| *number);
                prop_assert_eq!(tree.from(from).next().map(|item| item.0), expected);
            }
        }
        for (clone, then) in kept {
            prop_assert_eq!(contents(&clone), then);
        }
    }
}

#[test]
fn what_comes_in_order_fills_its_nodes() {
    let upwards: Numbers = (0..10_000).map(|number| Arc::new((number, 0))).collect();
    assert_eq!(filled(&upwards), 100);
    let downwards: Numbers = (0..10_000).rev().map(|number| Arc::new((number, 0))).collect();
    assert_eq!(filled(&downwards), 100);
}

#[test]
fn what_comes_in_any_order_fills_its_nodes_well() {
    let mut random = 1_u32;
    let mut next = move || {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (random >> 16) as u16
    };
    let mut tree = Numbers::new();
    while tree.len() < 20_000 {
        tree.insert(Arc::new((next(), 0)));
    }
    // Halves would be 69 on average.
    assert!(filled(&tree) >= 78, "{}", filled(&tree));
    while tree.len() > 5_000 {
        tree.remove(next());
    }
    assert!(filled(&tree) >= 55, "{}", filled(&tree));
    // As the slots of objects that are updated: any of them goes, and comes back at the end.
    let mut tree: Numbers = (0..2_000).map(|number| Arc::new((number, 0))).collect();
    for number in 2_000..u16::MAX {
        let at = usize::from(next()) % tree.len();
        let gone = tree.iter().nth(at).map(|item| item.0);
        tree.remove(gone.unwrap());
        tree.insert(Arc::new((number, 0)));
    }
    assert!(filled(&tree) >= 65, "{}", filled(&tree));
}
