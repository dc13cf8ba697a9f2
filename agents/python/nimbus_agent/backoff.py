"""How long to wait before the next try."""

import random


class Backoff:
    """Exponential with full jitter: anything between nothing and a bound that doubles. A thousand agents that lost the
    same bus come back at a thousand different times."""

    def __init__(self, base, cap, pick=random.uniform):
        self._base, self._cap, self._pick = base, cap, pick
        self._tries = 0

    def next(self):
        bound = min(self._cap, self._base * 2 ** min(self._tries, 32))
        self._tries += 1
        return self._pick(0, bound)

    def reset(self):
        self._tries = 0
