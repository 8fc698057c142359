"""throttle_pb2 is what the compiler makes of throttle.proto, with the numbers of the protocol."""

import subprocess
import sys
from pathlib import Path

import pytest

from headgate.core.protocol import wire_numbers
from headgate.core.protocol.reasons import TOLD
from headgate.wire import throttle_pb2
from headgate.wire.messages import MESSAGES
from headgate.wire.throttle_pb2 import BaseCommand, CommandThrottleProducer, FeatureFlags

LIB = Path(throttle_pb2.__file__).parents[2]
SOURCE = "headgate/wire/throttle.proto"


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the compiler has written anew."""
    folder = tmp_path_factory.mktemp("generated")
    options = ["-I", ".", f"--python_out={folder}", f"--pyi_out={folder}"]
    subprocess.run([sys.executable, "-m", "grpc_tools.protoc", *options, SOURCE], cwd=LIB, check=True)
    return folder


@pytest.mark.parametrize("name", ["headgate/wire/throttle_pb2.py", "headgate/wire/throttle_pb2.pyi"])
def test_generating_again_gives_the_files_of_the_repository(generated: Path, name: str) -> None:
    assert (LIB / name).read_text() == (generated / name).read_text()


def test_the_numbers_of_the_protocol_are_those_of_the_module_of_constants() -> None:
    fields = BaseCommand.DESCRIPTOR.fields_by_name
    flags = FeatureFlags.DESCRIPTOR.fields_by_number

    assert (BaseCommand.THROTTLE_PRODUCER, fields["throttleProducer"].number) == (3850, 3850)
    assert (BaseCommand.THROTTLE_PRODUCER_RECEIPT, fields["throttleProducerReceipt"].number) == (3851, 3851)
    assert {number: field.name for number, field in flags.items()} == {385: "supports_throttle_producer_commands"}
    assert wire_numbers.THROTTLE_PRODUCER == 3850
    assert wire_numbers.THROTTLE_PRODUCER_RECEIPT == 3851
    assert wire_numbers.SUPPORTS_THROTTLE_PRODUCER_COMMANDS == 385


def test_the_reasons_on_the_wire_are_those_that_clients_are_told_of() -> None:
    assert dict(CommandThrottleProducer.ThrottlingReason.items()) == {reason.name: reason.value for reason in TOLD}


@pytest.mark.parametrize("message", MESSAGES)
def test_the_fields_that_are_read_by_hand_are_those_of_the_proto_file(message: str) -> None:
    name = message if message == "FeatureFlags" else f"Command{message}"
    in_file = throttle_pb2.DESCRIPTOR.message_types_by_name[name].fields

    assert [(field.number, field.name, field.is_required) for field in in_file] == list(MESSAGES[message])


def test_the_field_of_a_command_has_the_number_of_its_type() -> None:
    by_type = {field.number for field in BaseCommand.DESCRIPTOR.fields if field.name != "type"}

    assert by_type == set(BaseCommand.Type.values())
