"""What the bus is told: how far the agent is, and what failed. It makes the reports and sends none."""

from . import wire

# What the bus keeps of a message, in bytes.
_MESSAGE = 1024
# Kinds of events that are counted. There are few; the bound only keeps a mistake from growing without end.
_EVENTS = 32


class _Counted:
    def __init__(self, now):
        self.first = now
        self.count = 0


class Reporter:
    def __init__(self):
        self._events = {}
        self._new_events = set()
        self.begin(0)

    def begin(self, session):
        """A new session: the bus knows nothing yet, so the first report is a full one."""
        self._session = session
        self._sequence = 0
        self._said = None
        # The subscription has just said what the scope is.
        self._rescope = self._sent_rescope = None
        # How many exceptions the bus takes; None until it has refused some.
        self._room = None
        self._crowded = False
        self.full = True

    def want_full(self):
        """The bus asked for it."""
        self.full = True

    def lost(self):
        """Nobody knows whether the last report arrived, so the next one says everything again."""
        self.full = True
        self._rescope = self._rescope or self._sent_rescope

    def too_many(self, exceptions):
        """The bus has no room for so many exceptions. It does not say how many it takes, so half of them are tried."""
        self.lost()
        self._room = max(1, min(len(exceptions), self._room or len(exceptions)) // 2)

    def omitted(self, exceptions):
        """The exceptions that there is no room for. Nothing that they speak of may count as applied."""
        if self._room is None or len(exceptions) <= self._room:
            return set()
        # Failures explain what waits for them, not the other way round.
        return set(sorted(exceptions, key=lambda key: (-exceptions[key].phase, key))[self._room :])

    def rescope(self, rescope):
        """Asks for another subscription with the next report."""
        self._rescope = rescope

    def event(self, reason, message, now):
        """Something that happened, for operators. The same again is counted."""
        if reason not in self._events and len(self._events) >= _EVENTS:
            return
        counted = self._events.setdefault(reason, _Counted(now))
        counted.count += 1
        counted.message, counted.last = message, now
        self._new_events.add(reason)

    def news(self, watermarks, touched):
        """Whether there is anything to say."""
        return bool(self.full or self._rescope or touched or self._new_events) or watermarks != self._said

    def build(self, now, watermarks, exceptions, touched):
        """The next report, or None if there is nothing new. `watermarks`: received, applied, scope_changes. `touched`
        are keys whose exceptions may be new to the bus; it is emptied."""
        if not self.news(watermarks, touched):
            return None
        omitted = self.omitted(exceptions)
        # As long as some are left out, and once after that, what the bus has is replaced as a whole.
        self.full = self.full or bool(omitted) or self._crowded
        self._crowded = bool(omitted)
        self._sequence += 1
        received, applied, scope_changes = watermarks
        report = wire.ReportRequest(
            session=self._session, sequence=self._sequence, received=received, applied=applied, full=self.full,
            scope_changes=scope_changes,
        )
        for key in sorted(exceptions if self.full else touched):
            if key in omitted:
                continue
            if key in exceptions:
                _describe(report.exceptions.add(), key, exceptions[key], now)
            else:
                report.cleared.add(kind=key.kind, namespace=key.namespace, name=key.name)
        for reason in sorted(self._events if self.full else self._new_events):
            counted = self._events[reason]
            report.events.add(
                reason=reason, message=_cut(counted.message), count=counted.count,
                first_ms=_ms(now - counted.first), last_ms=_ms(now - counted.last),
            )
        if self._rescope is not None:
            report.rescope.CopyFrom(self._rescope)
        self._said, self.full = watermarks, False
        self._sent_rescope, self._rescope = self._rescope, None
        touched.clear()
        self._new_events.clear()
        return report


def _describe(exception, key, trouble, now):
    exception.key.kind, exception.key.namespace, exception.key.name = key
    exception.generation, exception.phase = trouble.generation, trouble.phase
    exception.code, exception.message = trouble.code, _cut(trouble.message)
    exception.retryable, exception.attempts = trouble.retryable, trouble.attempts
    exception.age_ms = _ms(now - trouble.since)
    # 0 says that it is not planned, so what is due at once is due in a millisecond.
    exception.retry_in_ms = 0 if trouble.retry_at is None else max(1, _ms(trouble.retry_at - now))
    for other in trouble.waits_for:
        exception.waits_for.add(kind=other.kind, namespace=other.namespace, name=other.name)


def _ms(seconds):
    return max(0, round(seconds * 1000))


def _cut(text):
    return text.encode("utf-8", "replace")[:_MESSAGE].decode("utf-8", "ignore")
