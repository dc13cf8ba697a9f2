import os
import tempfile
import unittest

from nimbus_agent.replica import Position
from nimbus_agent.resolver import Applied
from nimbus_agent.store import Store

from .build import item, key


class StoreTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "state.db")

    def again(self, store=None):
        if store:
            store.close()
        made = Store(self.path)
        self.addCleanup(made.close)
        return made

    def test_what_was_saved_is_there_again(self):
        store = self.again()
        self.assertEqual((store.held, store.position, store.applied), ({}, None, {}))
        position = Position(2**64 - 1, 2**63, 7)
        made = item("a", "content", refs=["b"])
        store.save({key("a"): made, key("b"): item("b")}, position)
        store.save({key("b"): None}, position)
        store.save_applied(key("a"), Applied.of(made))
        store = self.again(store)
        self.assertEqual((set(store.held), store.position), ({key("a")}, position))
        self.assertEqual(store.held[key("a")].object, made.object)
        self.assertEqual(store.applied, {key("a"): Applied.of(made)})
        store.save({}, None)
        store.save_applied(key("a"), None)
        store = self.again(store)
        self.assertEqual((store.position, store.applied), (None, {}))

    def test_a_corrupt_file_is_moved_aside(self):
        for number in (1, 2):
            with open(self.path, "wb") as file:
                file.write(b"nonsense" * 1000)
            store = self.again()
            self.assertEqual(store.held, {})
            store.close()
            self.assertTrue(os.path.exists(f"{self.path}.corrupt-{number}"))

    def test_a_file_with_a_torn_object_is_moved_aside(self):
        store = self.again()
        store.save({key("a"): item("a")}, Position(1, 1, 1))
        store._db.execute("UPDATE held SET object = x'ffff'")
        store = self.again(store)
        self.assertEqual((store.held, store.position), ({}, None))

    def test_a_file_in_use_is_left_alone(self):
        self.again()
        with self.assertRaises(SystemExit):
            Store(self.path)
        self.assertFalse(os.path.exists(f"{self.path}.corrupt-1"))
