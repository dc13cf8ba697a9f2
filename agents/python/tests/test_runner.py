import unittest

from nimbus_agent import Failure, wire
from nimbus_agent.backoff import Backoff
from nimbus_agent.resolver import Applied, Resolver
from nimbus_agent.runner import Runner

from .build import item, key


class Recorder:
    """A handler that writes down what it is told, and fails where it should."""

    def __init__(self):
        self.done = []
        self.fails = {}

    def apply(self, item):
        self._do(f"+{item.key.name}")

    def remove(self, key, applied):
        self._do(f"-{key.name}")

    def _do(self, what):
        if what[1:] in self.fails:
            raise self.fails[what[1:]]
        self.done.append(what)


class RunnerTest(unittest.TestCase):
    def setUp(self):
        self.handler = Recorder()
        self.held = {}
        self.resolver = Resolver(self.held, {})
        self.saved = {}
        backoff = lambda: Backoff(1, 8, pick=lambda low, high: high)
        self.runner = Runner(self.handler, self.resolver, self.saved.__setitem__, backoff=backoff)

    def want(self, *items, floor=0):
        """Everything that should be, in the order in which it is told."""
        wanted = {each.key: each for each in items}
        gone = self.held.keys() - wanted.keys()
        changed = [each.key for each in items if self.held.get(each.key) is not each]
        self.held.clear()
        self.held.update(wanted)
        self.runner.changed([*changed, *sorted(gone)], floor)

    def work(self, now=0.0):
        self.handler.done.clear()
        self.runner.step(now)
        while self.runner.busy():
            self.runner.step(now)
        return self.handler.done[:]

    def test_referents_come_first_and_go_last_whatever_the_order_in_which_they_are_told(self):
        self.want(item("a", refs=["b"]), item("b", refs=["c"]), item("c"))
        self.assertEqual(self.work(), ["+c", "+b", "+a"])
        self.held.clear()
        self.runner.changed([key("c"), key("b"), key("a")], 0)
        self.assertEqual(self.work(), ["-a", "-b", "-c"])
        self.assertTrue(self.runner.idle())
        self.assertEqual(set(self.saved.values()), {None})

    def test_what_failed_holds_back_its_dependants_only(self):
        self.handler.fails["b"] = Failure("BROKEN", "it is broken")
        self.want(item("b"), item("a", refs=["b"]), item("top", refs=["a"]), item("free"), floor=3)
        self.assertEqual(self.runner.applied(7), 3)
        self.assertEqual(self.work(), ["+free"])
        self.assertEqual(self.runner.applied(7), 7, "but for the exceptions")
        troubles = self.runner.exceptions
        self.assertEqual(set(troubles), {key("a"), key("b"), key("top")})
        failed = troubles[key("b")]
        self.assertEqual((failed.phase, failed.code, failed.message), (wire.PHASE_FAILED, "BROKEN", "it is broken"))
        self.assertEqual((failed.attempts, failed.retry_at), (1, 1.0))
        held = troubles[key("top")]
        self.assertEqual((held.phase, held.waits_for), (wire.PHASE_PENDING, (key("a"),)))

        self.assertEqual(self.work(0.5), [], "it is not yet time")
        self.assertEqual(self.runner.next_retry(), 1.0)
        self.assertEqual(self.work(1.0), [])
        self.assertEqual((troubles[key("b")].attempts, self.runner.next_retry()), (2, 3.0))
        self.handler.fails.clear()
        self.runner.touched.clear()
        self.assertEqual(self.work(3.0), ["+b", "+a", "+top"])
        self.assertEqual((troubles, self.runner.touched), ({}, {key("a"), key("b"), key("top")}))

    def test_what_may_not_be_tried_again_waits_for_another_version(self):
        self.handler.fails["a"] = Failure("BAD", "never", retryable=False)
        self.want(item("a"))
        self.work()
        self.assertIsNone(self.runner.next_retry())
        self.assertFalse(self.runner.exceptions[key("a")].retryable)
        self.handler.fails.clear()
        self.assertEqual(self.work(1000.0), [])
        self.want(item("a", "better", generation=2), floor=4)
        self.assertEqual(self.runner.applied(5), 4, "the exception speaks of the version before")
        self.assertEqual(self.work(1000.0), ["+a"])

    def test_an_object_that_is_gone_before_it_could_be_applied_is_no_exception_any_more(self):
        self.handler.fails["a"] = OSError(28, "No space left on device")
        self.want(item("a"))
        self.work()
        self.assertEqual(self.runner.exceptions[key("a")].code, "ENOSPC")
        self.want()
        self.assertEqual((self.work(), self.runner.exceptions), ([], {}))

    def test_a_missing_referent_is_waited_for(self):
        self.want(item("a", refs=["b"]))
        self.assertEqual(self.work(), [])
        self.assertEqual(self.runner.exceptions[key("a")].waits_for, (key("b"),))
        self.want(item("b"), self.held[key("a")])
        self.assertEqual(self.work(), ["+b", "+a"])

    def test_another_uid_is_removed_before_it_is_applied(self):
        self.want(item("a", uid="first"))
        self.work()
        self.want(item("a", uid="second"))
        self.assertEqual(self.work(), ["-a", "+a"])

    def test_a_runner_that_starts_does_what_the_one_before_left(self):
        held = {key("b"): item("b"), key("same"): item("same")}
        applied = {key("old"): Applied.of(item("old")), key("same"): Applied.of(item("same"))}
        runner = Runner(self.handler, Resolver(held, applied))
        while runner.busy():
            runner.step(0.0)
        self.assertEqual(sorted(self.handler.done), ["+b", "-old"])
