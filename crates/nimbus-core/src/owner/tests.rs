//! An owner is the same whether it is known here or was read.

use nimbus_wire::v1;

use crate::{Kind, ObjectKey, Owner, Uid};

#[test]
fn an_owner_that_was_read_is_the_object_that_it_names() {
    let key = ObjectKey::new(Kind::new("demo.v1.Policy").unwrap(), "prod", "web").unwrap();
    let uid = Uid::new("u1").unwrap();
    let known = Owner::new(key.clone(), uid.clone());
    let read = Owner::from(known.to_wire());
    assert_eq!((&known, &read), (&read, &known), "whichever of them is asked");
    assert!(read.is(&key, &uid));
    let [kind, namespace, name, uid] = ["demo.v1.Policy", "prod", "web", "u1"].map(str::to_owned);
    let wire = v1::Owner { kind, namespace, name, uid };
    assert_eq!(read.to_wire(), wire);
    let others = [
        v1::Owner { kind: "demo.v1.Other".to_owned(), ..wire.clone() },
        v1::Owner { namespace: String::new(), ..wire.clone() },
        v1::Owner { name: "db".to_owned(), ..wire.clone() },
        v1::Owner { uid: "u2".to_owned(), ..wire },
    ];
    for other in others.map(Owner::from) {
        assert_ne!(other, known);
        assert_ne!(known, other);
        assert_ne!(other, read);
        assert!(!other.is(&key, &Uid::new("u1").unwrap()), "{other:?}");
    }
}
