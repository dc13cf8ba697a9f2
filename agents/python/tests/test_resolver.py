import unittest

from nimbus_agent.resolver import Applied, Resolver

from .build import KIND, item, key


def resolver(held=(), applied=(), **options):
    records = {each.key: Applied.of(each) for each in applied}
    return Resolver({each.key: each for each in held}, records, **options)


class ResolverTest(unittest.TestCase):
    def test_what_differs_is_pending(self):
        made = resolver(
            [item("same"), item("changed", "new", generation=2), item("new"), item("reborn", uid="second")],
            [item("same"), item("changed"), item("gone"), item("reborn", uid="first")],
        )
        self.assertEqual(set(made.out_of_step()), {key(name) for name in ("changed", "new", "reborn", "gone")})

    def test_a_put_waits_for_what_it_refers_to(self):
        held = [item("a", refs=["b", "missing"], weak=["c"]), item("b"), item("c")]
        self.assertEqual(resolver(held).blockers(key("a")), [key("b"), key("missing")])
        self.assertEqual(resolver(held, [item("b")]).blockers(key("a")), [key("missing")])
        self.assertEqual(resolver(held, [item("b", "old")]).blockers(key("a")), [key("b"), key("missing")])

    def test_kinds_that_are_not_subscribed_to_are_not_waited_for(self):
        held = [item("a", refs=["b"])]
        made = resolver(held, subscribed=lambda kind: kind != KIND)
        self.assertEqual(made.blockers(key("a")), [])

    def test_a_removal_waits_for_the_removal_of_those_that_refer_to_it(self):
        applied = [item("a", refs=["b"]), item("b")]
        made = resolver([], applied)
        self.assertEqual((made.blockers(key("b")), made.blockers(key("a"))), ([key("a")], []))
        made.done(key("a"), None)
        self.assertEqual(made.blockers(key("b")), [])

    def test_a_removal_waits_for_those_that_are_about_to_stop_referring_to_it(self):
        made = resolver([item("a", "new")], [item("a", refs=["b"]), item("b")])
        self.assertEqual(made.blockers(key("b")), [key("a")])
        made.done(key("a"), Applied.of(item("a", "new")))
        self.assertEqual(made.blockers(key("b")), [])

    def test_a_removal_does_not_wait_for_those_that_go_on_referring_to_it(self):
        applied = [item("a", refs=["b"]), item("b")]
        for a in (item("a", refs=["b"]), item("a", "new", refs=["b"])):
            self.assertEqual(resolver([a], applied).blockers(key("b")), [])
