//! Files that were moved aside.

use std::fs;

use crate::cache::tests::{Place, names_in, open, place};

#[tokio::test]
async fn files_that_were_moved_aside_do_not_pile_up_and_the_last_ones_are_kept() {
    let Place { directory, path } = place();
    for number in 1..=7 {
        fs::write(&path, format!("garbage {number}")).unwrap();
        let (keeper, _, aside) = open(&path);
        let aside = aside.unwrap();
        assert_eq!(aside.path.file_name().unwrap().to_str(), Some(&*format!("memory.db.bad-{number}")));
        assert_eq!(fs::read_to_string(&aside.path).unwrap(), format!("garbage {number}"));
        keeper.close().await;
    }
    let kept = ["memory.db", "memory.db.bad-5", "memory.db.bad-6", "memory.db.bad-7", "memory.db.lock"];
    assert_eq!(names_in(directory.path()), kept);
}

#[tokio::test]
async fn a_file_that_was_moved_aside_is_never_overwritten_and_others_are_left_alone() {
    let Place { directory, path } = place();
    let others = ["memory.db.bad-", "memory.db.bad-x", "memory.db.bad-07x", "other.db.bad-1", "memory.db.bad-41"];
    for name in others {
        fs::write(directory.path().join(name), name).unwrap();
    }
    fs::write(&path, "garbage").unwrap();
    let (keeper, _, aside) = open(&path);
    assert_eq!(aside.unwrap().path, directory.path().canonicalize().unwrap().join("memory.db.bad-42"));
    keeper.close().await;
    for name in others {
        assert_eq!(fs::read_to_string(directory.path().join(name)).unwrap(), name);
    }
}
