import unittest

from nimbus_agent.backoff import Backoff


class BackoffTest(unittest.TestCase):
    def test_the_bound_doubles_up_to_the_cap_and_begins_again(self):
        backoff = Backoff(1, 5, pick=lambda low, high: (low, high))
        self.assertEqual([backoff.next() for _ in range(4)], [(0, 1), (0, 2), (0, 4), (0, 5)])
        backoff.reset()
        self.assertEqual(backoff.next(), (0, 1))
