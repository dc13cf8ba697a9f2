import unittest

from nimbus_agent import wire
from nimbus_agent.reporter import Reporter
from nimbus_agent.runner import Trouble

from .build import key


def trouble(**fields):
    return Trouble(3, wire.PHASE_FAILED, "CODE", "message", since=1.0, attempts=2, **fields)


class ReporterTest(unittest.TestCase):
    def setUp(self):
        self.reporter = Reporter()
        self.reporter.begin(5)
        self.troubles, self.touched = {}, set()

    def build(self, received, applied, now=2.0, scope_changes=0):
        return self.reporter.build(now, (received, applied, scope_changes), self.troubles, self.touched)

    def test_the_first_report_of_a_session_is_full_and_the_sequence_begins_with_one(self):
        self.troubles[key("a")] = trouble(retry_at=2.5)
        for session in (5, 6):
            self.reporter.begin(session)
            first = self.build(4, 3)
            self.assertEqual((first.session, first.sequence, first.full), (session, 1, True))
            self.assertEqual((first.received, first.applied), (4, 3))
            (exception,) = first.exceptions
            self.assertEqual((exception.age_ms, exception.retry_in_ms, exception.attempts), (1000, 500, 2))
            self.assertIsNone(self.build(4, 3), "nothing is new")
            second = self.build(4, 4)
            self.assertEqual((second.sequence, second.full, len(second.exceptions)), (2, False, 0))

    def test_later_reports_have_what_changed_and_what_is_over(self):
        self.build(1, 1)
        self.troubles[key("a")] = trouble(waits_for=(key("b"),))
        self.touched.update([key("a"), key("gone")])
        report = self.build(1, 1)
        self.assertEqual([each.key.name for each in report.exceptions], ["a"])
        self.assertEqual([each.name for each in report.exceptions[0].waits_for], ["b"])
        self.assertEqual([each.name for each in report.cleared], ["gone"])
        self.assertFalse(self.touched)

    def test_a_report_that_was_lost_or_is_asked_for_makes_the_next_one_full(self):
        self.build(1, 1)
        self.troubles[key("a")] = trouble()
        for again in (self.reporter.lost, self.reporter.want_full):
            again()
            report = self.build(1, 1)
            self.assertTrue(report.full)
            self.assertEqual(len(report.exceptions), 1)

    def test_a_rescope_is_said_again_if_the_report_was_lost(self):
        self.reporter.rescope(wire.Rescope(kinds=["one"]))
        self.assertTrue(self.build(1, 1).HasField("rescope"))
        self.reporter.lost()
        self.assertTrue(self.build(1, 1).HasField("rescope"))
        self.assertFalse(self.build(2, 2).HasField("rescope"))

    def test_events_are_counted(self):
        self.build(1, 1)
        self.reporter.event("DigestMismatch", "one", 3.0)
        self.reporter.event("DigestMismatch", "two", 4.0)
        (event,) = self.build(1, 1, now=5.0).events
        self.assertEqual((event.count, event.message, event.first_ms, event.last_ms), (2, "two", 2000, 1000))

    def test_exceptions_that_there_is_no_room_for_are_left_out_and_the_rest_is_said_in_full(self):
        for name in "abcd":
            self.troubles[key(name)] = trouble()
        self.build(1, 1)
        self.reporter.too_many(self.troubles)
        self.assertEqual(self.reporter.omitted(self.troubles), {key("c"), key("d")})
        report = self.build(1, 0)
        self.assertTrue(report.full)
        self.assertEqual([each.key.name for each in report.exceptions], ["a", "b"])
        for name in "ab":
            del self.troubles[key(name)]
        self.touched.add(key("a"))
        report = self.build(1, 1)
        self.assertTrue(report.full, "what was left out before is said now")
        self.assertEqual([each.key.name for each in report.exceptions], ["c", "d"])
