use nimbus_core::KeyMap;

use crate::{
    fixtures::key,
    publications::outlook::{Outlook, TELLING},
};

/// How large a table was each time that it was moved while so many objects were looked at, of which one in `every` has an
/// entry, and its room then. It holds `before` from the beginning.
fn moved(outlook: &mut Outlook, before: usize, owners: usize, every: usize) -> (Vec<usize>, usize) {
    let mut table: KeyMap<()> = (0..before).map(|number| (key(&format!("before-{number}")), ())).collect();
    let mut moved = Vec::new();
    for number in 0..owners {
        let is_new = number % every == 0;
        outlook.saw(usize::from(is_new));
        if is_new {
            let (room, len) = (table.capacity(), table.len());
            outlook.make_room(&mut table, 1);
            table.insert(key(&number.to_string()), ());
            if table.capacity() != room {
                moved.push(len);
            }
        }
    }
    (moved, table.capacity())
}

fn outlook(owners: usize) -> Outlook {
    let mut outlook = Outlook::default();
    outlook.expect(owners);
    outlook
}

#[test]
fn a_table_is_not_moved_any_more_once_it_is_known_what_it_is_for() {
    let (moved, room) = moved(&mut outlook(10_000), 0, 10_000, 1);
    assert!(moved.iter().all(|len| *len < 4 * TELLING), "it was moved with {moved:?} in it");
    assert!((10_000..20_000).contains(&room), "room for {room}");
}

#[test]
fn few_entries_make_room_for_few_whatever_was_there_before() {
    for before in [0, 14] {
        let (_, room) = moved(&mut outlook(100_000), before, 100_000, 100);
        assert!((1000..4000).contains(&room), "room for {room}");
    }
}

#[test]
fn nothing_is_held_ready_for_what_nobody_expects_or_what_is_over() {
    let mut over = outlook(1_000_000);
    over.expect(0);
    for mut outlook in [Outlook::default(), over] {
        let (moved, room) = moved(&mut outlook, 0, 10_000, 1);
        assert!(moved.len() > 5 && room < 20_000, "moved with {moved:?} in it, room for {room}");
    }
}
