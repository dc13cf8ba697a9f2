"""The state of an agent on disk: what it holds, up to which position, and what of it is applied.

One SQLite file, because a change of a few objects must not write all of them again: objects and position move in one
transaction, so a process that is killed at any moment finds an older state that is true, never half a newer one.
"""

import contextlib
import itertools
import json
import os
import sqlite3
import sys

from google.protobuf.message import DecodeError

from .item import Item
from .key import Key
from .replica import Position
from .resolver import Applied

_VERSION = 1
_SCHEMA = """
CREATE TABLE IF NOT EXISTS position (one INTEGER PRIMARY KEY CHECK (one = 1), epoch TEXT, revision TEXT, scope TEXT);
CREATE TABLE IF NOT EXISTS held (kind TEXT, namespace TEXT, name TEXT, digest BLOB NOT NULL, object BLOB NOT NULL,
    PRIMARY KEY (kind, namespace, name)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS applied (kind TEXT, namespace TEXT, name TEXT, uid TEXT NOT NULL, generation TEXT NOT NULL,
    fingerprint BLOB NOT NULL, refs TEXT NOT NULL, PRIMARY KEY (kind, namespace, name)) WITHOUT ROWID;
"""


class Store:
    def __init__(self, path):
        self._path = str(path)
        try:
            self._open()
        except sqlite3.OperationalError as error:
            # Not readable, or in use by another process: that is no reason to touch the file.
            raise SystemExit(f"cannot open {self._path}: {error}") from error
        except (sqlite3.DatabaseError, DecodeError, TypeError, ValueError) as error:
            self._move_aside(error)
            self._open()

    def _open(self):
        self._db = sqlite3.connect(self._path, isolation_level=None, timeout=1)
        # Nobody else opens the file while this process lives: two agents on one state would overwrite each other.
        self._db.execute("PRAGMA locking_mode = EXCLUSIVE")
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = NORMAL")
        if self._db.execute("PRAGMA quick_check").fetchone() != ("ok",):
            raise ValueError("the check of the file failed")
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        if version not in (0, _VERSION):
            raise ValueError(f"the file has version {version}")
        with self._transaction():
            self._db.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} PRAGMA user_version = {_VERSION}; COMMIT;")
        self._load()

    def _load(self):
        # Numbers of 64 bits without a sign do not fit into an integer of SQLite, so they are text.
        row = self._db.execute("SELECT epoch, revision, scope FROM position").fetchone()
        self.position = Position(*map(int, row)) if row else None
        self.held, self.applied = {}, {}
        for kind, namespace, name, digest, encoded in self._db.execute("SELECT * FROM held"):
            item = Item.load(encoded, digest)
            if len(digest) != 16 or item.key != (kind, namespace, name):
                raise ValueError(f"the row of {kind}/{namespace}/{name} holds something else")
            self.held[item.key] = item
        for *key, uid, generation, fingerprint, refs in self._db.execute("SELECT * FROM applied"):
            refs = tuple(Key(*ref) for ref in json.loads(refs))
            self.applied[Key(*key)] = Applied(uid, int(generation), fingerprint, refs)

    def _move_aside(self, error):
        with contextlib.suppress(AttributeError, sqlite3.Error):
            self._db.close()
        for number in itertools.count(1):
            aside = f"{self._path}.corrupt-{number}"
            if not os.path.exists(aside):
                break
        os.replace(self._path, aside)
        for suffix in ("-wal", "-shm"):
            with contextlib.suppress(FileNotFoundError):
                os.replace(self._path + suffix, aside + suffix)
        print(f"{self._path} is corrupt ({error}); moved to {aside}", file=sys.stderr, flush=True)

    @contextlib.contextmanager
    def _transaction(self):
        try:
            yield
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    def save(self, changes, position):
        """What the replica changed, and where it is now, at once."""
        with self._transaction():
            self._db.execute("BEGIN IMMEDIATE")
            gone = [key for key, item in changes.items() if item is None]
            self._db.executemany("DELETE FROM held WHERE kind = ? AND namespace = ? AND name = ?", gone)
            rows = [(*key, item.digest, item.encoded()) for key, item in changes.items() if item is not None]
            self._db.executemany("REPLACE INTO held VALUES (?, ?, ?, ?, ?)", rows)
            if position is None:
                self._db.execute("DELETE FROM position")
            else:
                self._db.execute("REPLACE INTO position VALUES (1, ?, ?, ?)", tuple(map(str, position)))
            self._db.execute("COMMIT")

    def save_applied(self, key, applied):
        if applied is None:
            self._db.execute("DELETE FROM applied WHERE kind = ? AND namespace = ? AND name = ?", key)
        else:
            refs = json.dumps([list(ref) for ref in applied.refs])
            row = (*key, applied.uid, str(applied.generation), applied.fingerprint, refs)
            self._db.execute("REPLACE INTO applied VALUES (?, ?, ?, ?, ?, ?, ?)", row)

    def close(self):
        self._db.close()
