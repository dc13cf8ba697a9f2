//! Objects that make sense, and objects that do not.

use crate::{
    command::Allowed,
    file::{Content, File},
    wanted::Wanted,
};

fn file() -> File {
    let content = Some(Content::Text("hello".to_owned()));
    File { path: "a/b".to_owned(), content, ..File::default() }
}

#[test]
fn an_object_that_makes_no_sense_is_refused_for_good_before_anything_is_touched() {
    fn check(change: impl FnOnce(&mut File), code: &str, words: &str) {
        let mut file = file();
        change(&mut file);
        let allowed = Allowed::new(["/bin/true".to_owned()]);
        let failure = Wanted::new(&file, &allowed).err().unwrap_or_else(|| panic!("{file:?} is taken"));
        assert!(failure.is_permanent() && failure.code() == code, "{failure:?}");
        assert!(failure.message().contains(words), "{failure:?}");
    }
    let command = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();

    check(|file| file.path = "../x".to_owned(), "INVALID", "path \"../x\"");
    check(|file| file.content = None, "INVALID", "an empty text is an empty file");
    for mode in ["rw", "0999", "4755", "01000", "-644", "+644", " 644", "99999999999"] {
        check(|file| file.mode = mode.to_owned(), "INVALID", "octal, such as 0644");
    }
    check(|file| file.validate = command(&["/bin/true", "x"]), "INVALID", "hint: add {}");
    check(|file| file.validate = command(&["/bin/false", "{}"]), "NOT_ALLOWED", "--allow /bin/false");
    check(|file| file.reload = command(&["true"]), "NOT_ALLOWED", "--allow true");
    check(|file| file.owner = u32::MAX.to_string(), "INVALID", "no user");
}

#[test]
fn what_is_left_out_has_a_sensible_value() {
    let wanted = Wanted::new(&file(), &Allowed::default()).unwrap();
    assert_eq!((wanted.stamp.mode, wanted.stamp.size), (0o644, 5));
    assert_eq!(wanted.stamp.uid, rustix::process::geteuid().as_raw());
    assert!(wanted.validate.is_none() && wanted.reload.is_none() && !wanted.adopt);
    let strict = Wanted::new(&File { mode: "0600".to_owned(), ..file() }, &Allowed::default()).unwrap();
    assert_eq!(strict.stamp.mode, 0o600);
}

#[test]
fn what_is_in_a_file_is_never_printed() {
    let secret = "correct horse battery staple";
    for content in [Content::Text(secret.to_owned()), Content::Data(secret.into())] {
        let file = File { content: Some(content), ..file() };
        let shown = format!("{file:?} {:#?}", file.content);
        assert!(!shown.contains("horse") && shown.contains("28 bytes"), "{shown}");
    }
}
