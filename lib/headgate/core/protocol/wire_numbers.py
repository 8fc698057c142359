"""The numbers that the throttle protocol adds to Pulsar's wire, outside any range that is handed out in sequence.

Pulsar uses feature flags 1 to 9, and command types 2 to 40, 50 to 68 and 70 to 81. A command is the field of
BaseCommand that has the number of its type. Source: throttle-protocol 5
"""

SUPPORTS_THROTTLE_PRODUCER_COMMANDS = 385
"""The feature flag. PIP-385 asks for 6, which is a flag of replication and never read as this one."""

THROTTLE_PRODUCER = 3850
THROTTLE_PRODUCER_RECEIPT = 3851
