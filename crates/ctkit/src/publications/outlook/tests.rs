use nimbus_core::KeyMap;

use crate::{fixtures::key, publications::outlook::Outlook};

/// How often a table is moved while these look at so many objects, of which one in `every` has an entry, and its room then.
fn moved(outlook: &mut Outlook, owners: usize, every: usize) -> (usize, usize) {
    let (mut table, mut moved) = (KeyMap::default(), 0);
    for number in 0..owners {
        outlook.saw();
        if number % every == 0 {
            outlook.make_room(&mut table);
            let before = table.capacity();
            table.insert(key(&number.to_string()), ());
            moved += usize::from(table.capacity() != before && number > 0);
        }
    }
    (moved, table.capacity())
}

#[test]
fn a_table_grows_once_for_all_that_is_expected() {
    let mut outlook = Outlook::default();
    outlook.expect(10_000);
    let (moved, room) = moved(&mut outlook, 10_000, 1);
    assert_eq!(moved, 0, "room was made before it was full, and once");
    assert!((10_000..20_000).contains(&room), "room for {room}");
}

#[test]
fn few_entries_make_room_for_few() {
    let mut outlook = Outlook::default();
    outlook.expect(100_000);
    let (_, room) = moved(&mut outlook, 100_000, 100);
    assert!((1000..4000).contains(&room), "room for {room}");
}

#[test]
fn nothing_is_held_ready_for_what_nobody_expects() {
    let (moved, room) = moved(&mut Outlook::default(), 10_000, 1);
    assert!(moved > 5 && room < 20_000, "moved {moved} times, room for {room}");
}
