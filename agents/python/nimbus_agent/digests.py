"""The digest of a set of objects: the XOR of theirs, as a whole and for each bucket."""

BUCKETS = 256
SIZE = 16


class Digests:
    def __init__(self, digests=()):
        self._root = 0
        self._buckets = [0] * BUCKETS
        for digest in digests:
            self.toggle(digest)

    def toggle(self, digest):
        """Adds what is not in the set, and takes out what is."""
        number = int.from_bytes(digest, "big")
        self._root ^= number
        self._buckets[digest[0]] ^= number

    def root(self):
        return self._root.to_bytes(SIZE, "big")

    def buckets(self):
        return b"".join(bucket.to_bytes(SIZE, "big") for bucket in self._buckets)


def covers(bitmap, bucket):
    """Whether a snapshot covers a bucket: one bit for each, lowest bit first; no bits at all cover everything."""
    return not bitmap or bool(bitmap[bucket // 8] >> bucket % 8 & 1)
