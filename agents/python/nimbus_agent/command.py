"""The command line that every agent has."""

import argparse
import signal

from .agent import Agent, Scope
from .trace import silent, trace


def parser(description):
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--bus", default="127.0.0.1:7400", metavar="ADDRESS", help="where the bus listens")
    made.add_argument("--agent", required=True, metavar="NAME", help="the name of this agent")
    made.add_argument("--label", action="append", default=[], metavar="KEY=VALUE", help="a label of this agent")
    made.add_argument("--kind", action="append", default=[], help="a kind to subscribe to; none means all")
    made.add_argument("--state", required=True, metavar="FILE", help="where to remember what is held and applied")
    made.add_argument("--trace", action="store_true", help="print one line of JSON for every event")
    return made


def run(arguments, handler):
    labels = dict(label.partition("=")[::2] for label in arguments.label)
    scope = Scope(kinds=arguments.kind, labels=labels)
    tell = trace if arguments.trace else silent
    agent = Agent(arguments.bus, arguments.agent, scope, handler, arguments.state, tell)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: agent.stop())
    agent.run()
