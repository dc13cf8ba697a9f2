"""Tests without a network: frames go in, and what the agent makes of them is looked at."""
