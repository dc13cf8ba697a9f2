import unittest

from nimbus_agent import wire
from nimbus_agent.replica import Position, Replica

from .build import EPOCH, KIND, SCOPE, batch, bookmark, digest, item, key, root, snapshot_begin, snapshot_end, thing, welcome


def names(replica):
    return sorted(each.name for each in replica.held)


def holding(*held, position=Position(EPOCH, 5, SCOPE)):
    return Replica({key(name): item(name) for name in held}, position)


class ReplicaTest(unittest.TestCase):
    def test_a_snapshot_is_taken_as_it_comes_and_has_a_position_at_its_end(self):
        replica = Replica()
        self.assertIsNone(replica.resume(), "who holds nothing has nothing to resume")
        replica.welcome(welcome())
        replica.snapshot_begin(snapshot_begin())
        self.assertEqual(list(replica.batch(batch("a", "b")).changes), [key("a"), key("b")])
        self.assertIsNone(replica.position)
        step = replica.snapshot_end(snapshot_end(3, "a", "b"))
        self.assertTrue(step.in_sync and step.moved)
        self.assertEqual((replica.position, replica.received), (Position(EPOCH, 3, SCOPE), 3))

    def test_a_group_is_kept_aside_until_its_last_batch(self):
        replica = holding("a", "b")
        replica.welcome(welcome(wire.MODE_DELTA))
        self.assertEqual(replica.received, 5)
        self.assertFalse(replica.batch(batch("c")).changes)
        self.assertEqual((names(replica), replica.position.revision), (["a", "b"], 5))
        step = replica.batch(batch("-a", revision=7))
        self.assertEqual(list(step.changes), [key("c"), key("a")])
        self.assertEqual((names(replica), replica.position.revision), (["b", "c"], 7))

    def test_what_was_staged_is_forgotten_when_the_group_or_the_stream_begins_again(self):
        for again in (Replica.group_restarted, Replica.begin_session):
            replica = holding("a")
            replica.welcome(welcome(wire.MODE_DELTA))
            replica.batch(batch("lost"))
            again(replica)
            replica.welcome(welcome(wire.MODE_DELTA))
            replica.batch(batch("b", revision=6))
            self.assertTrue(replica.bookmark(bookmark(6, "a", "b")).in_sync)

    def test_the_sweep_is_of_covered_buckets_only(self):
        replica = holding("a", "b", "c")
        self.assertEqual(len({digest(name)[0] for name in "abc"}), 3, "the names must be in different buckets")
        replica.welcome(welcome(3, epoch=99))
        replica.snapshot_begin(snapshot_begin("a", "b"))
        replica.batch(batch("a"))
        step = replica.snapshot_end(snapshot_end(2, "a", "c"))
        self.assertEqual(step.changes, {key("b"): None})
        self.assertTrue(step.in_sync)
        self.assertEqual(replica.position, Position(99, 2, SCOPE))

    def test_a_snapshot_that_is_restarted_sweeps_what_came_of_it_and_does_not_come_again(self):
        replica = holding("old")
        replica.welcome(welcome())
        replica.snapshot_begin(snapshot_begin())
        replica.batch(batch("a", "gone"))
        replica.group_restarted()
        replica.batch(batch("a"))
        step = replica.snapshot_end(snapshot_end(9, "a"))
        self.assertEqual(set(step.changes), {key("old"), key("gone")})
        self.assertTrue(step.in_sync)

    def test_changes_within_an_open_snapshot_count_as_seen(self):
        replica = Replica()
        replica.welcome(welcome())
        replica.snapshot_begin(snapshot_begin())
        replica.batch(batch("a", "b"))
        replica.batch(batch(("a", "new"), "c"))
        replica.batch(batch("-b"))
        step = replica.snapshot_end(snapshot_end(4, ("a", "new"), "c"))
        self.assertFalse(step.changes)
        self.assertTrue(step.in_sync)

    def test_a_snapshot_that_breaks_off_leaves_no_position_but_digests(self):
        replica = holding("a", "b")
        replica.welcome(welcome())
        self.assertTrue(replica.snapshot_begin(snapshot_begin()).moved)
        replica.batch(batch("c"))
        replica.begin_session()
        resume = replica.resume()
        self.assertFalse(resume.HasField("position"))
        self.assertEqual(resume.root, root("a", "b", "c"))

    def test_waiting_changes_nothing(self):
        replica = holding("a")
        replica.welcome(welcome(wire.MODE_WAITING, epoch=99))
        replica.batch(batch())
        self.assertEqual((replica.position, replica.received), (Position(EPOCH, 5, SCOPE), 0))
        replica.welcome(welcome(2, epoch=99))
        self.assertEqual(replica.position, Position(EPOCH, 5, SCOPE), "the answer alone moves nothing")
        self.assertTrue(replica.bookmark(bookmark(3, "a")).in_sync)
        self.assertEqual((replica.position, replica.received), (Position(99, 3, SCOPE), 3))

    def test_the_resume_has_position_root_buckets_and_origins(self):
        held = [item("a"), item("b", manager="other"), item("c")]
        replica = Replica({each.key: each for each in held}, Position(EPOCH, 5, SCOPE))
        resume = replica.resume()
        position = resume.position
        self.assertEqual((position.epoch, position.revision, position.scope), (EPOCH, 5, SCOPE))
        self.assertEqual(resume.root, root("a", "b", "c"))
        self.assertEqual(len(resume.buckets), 4096)
        bucket = digest("b")[0] * 16
        self.assertEqual(resume.buckets[bucket : bucket + 16], digest("b"))
        origins = [(origin.manager, list(origin.kinds)) for origin in resume.origins]
        self.assertEqual(origins, [("controller", [KIND]), ("other", [KIND])])

    def test_who_has_seen_that_there_is_nothing_resumes_from_there(self):
        replica = Replica({}, Position(EPOCH, 5, SCOPE))
        self.assertEqual(replica.resume().position.revision, 5)

    def test_a_wrong_digest_or_count_is_a_mismatch_and_costs_the_position_only(self):
        for proof in (bookmark(6, "a"), bookmark(6, "a", "x")):
            replica = holding("a", "b")
            replica.welcome(welcome(wire.MODE_DELTA))
            step = replica.bookmark(proof)
            self.assertTrue(step.mismatch and not step.in_sync and step.moved)
            self.assertIsNone(replica.position)
            self.assertEqual(names(replica), ["a", "b"])
            resume = replica.resume()
            self.assertFalse(resume.HasField("position"))
            self.assertEqual((resume.root, len(resume.buckets)), (root("a", "b"), 4096))

    def test_the_position_has_the_new_scope_when_the_difference_is_complete(self):
        replica = holding("a")
        replica.welcome(welcome(wire.MODE_DELTA))
        replica.scope_changed(77)
        self.assertEqual((replica.position.scope, replica.received, replica.scope_changes), (SCOPE, 0, 1))
        replica.batch(batch("b"))
        self.assertEqual(replica.position.scope, SCOPE)
        replica.batch(batch("-a", revision=5))
        self.assertEqual((replica.position, replica.received), (Position(EPOCH, 5, 77), 5))

    def test_a_delete_of_what_was_never_held_is_nothing(self):
        replica = holding("a")
        replica.welcome(welcome(wire.MODE_DELTA))
        step = replica.batch(batch("-never", revision=6))
        self.assertFalse(step.changes)
        self.assertTrue(replica.bookmark(bookmark(6, "a")).in_sync)

    def test_a_status_changes_the_digest_and_not_the_fingerprint(self):
        plain, other = thing("a"), thing("a")
        other.status.value, other.observed_generation, other.revision = b"fine", 1, 9
        made = [wire.Event(put=each, digest=digest("a", str(each.revision))) for each in (plain, other)]
        replica = Replica({}, Position(EPOCH, 5, SCOPE))
        replica.welcome(welcome(wire.MODE_DELTA))
        fingerprints = set()
        for event in made:
            replica.batch(wire.Batch(events=[event], revision=6))
            fingerprints.add(replica.held[key("a")].fingerprint)
        self.assertEqual(len(fingerprints), 1)
        self.assertEqual(replica.resume().root, digest("a", "9"))
