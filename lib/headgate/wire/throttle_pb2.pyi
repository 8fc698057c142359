from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CommandThrottleProducer(_message.Message):
    __slots__ = ("request_id", "producer_id", "throttling_reason", "pause_for_millis")
    class ThrottlingReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        TopicProduceQuotaExceeded: _ClassVar[CommandThrottleProducer.ThrottlingReason]
        ResourceGroupProduceQuotaExceeded: _ClassVar[CommandThrottleProducer.ThrottlingReason]
        ConnectionPendingMessagesBreach: _ClassVar[CommandThrottleProducer.ThrottlingReason]
        MessageBufferSizeBreach: _ClassVar[CommandThrottleProducer.ThrottlingReason]
        BrokerProduceQuotaExceeded: _ClassVar[CommandThrottleProducer.ThrottlingReason]
    TopicProduceQuotaExceeded: CommandThrottleProducer.ThrottlingReason
    ResourceGroupProduceQuotaExceeded: CommandThrottleProducer.ThrottlingReason
    ConnectionPendingMessagesBreach: CommandThrottleProducer.ThrottlingReason
    MessageBufferSizeBreach: CommandThrottleProducer.ThrottlingReason
    BrokerProduceQuotaExceeded: CommandThrottleProducer.ThrottlingReason
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    PRODUCER_ID_FIELD_NUMBER: _ClassVar[int]
    THROTTLING_REASON_FIELD_NUMBER: _ClassVar[int]
    PAUSE_FOR_MILLIS_FIELD_NUMBER: _ClassVar[int]
    request_id: int
    producer_id: int
    throttling_reason: CommandThrottleProducer.ThrottlingReason
    pause_for_millis: int
    def __init__(self, request_id: _Optional[int] = ..., producer_id: _Optional[int] = ..., throttling_reason: _Optional[_Union[CommandThrottleProducer.ThrottlingReason, str]] = ..., pause_for_millis: _Optional[int] = ...) -> None: ...

class CommandThrottleProducerReceipt(_message.Message):
    __slots__ = ("request_id",)
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    request_id: int
    def __init__(self, request_id: _Optional[int] = ...) -> None: ...

class FeatureFlags(_message.Message):
    __slots__ = ("supports_throttle_producer_commands",)
    SUPPORTS_THROTTLE_PRODUCER_COMMANDS_FIELD_NUMBER: _ClassVar[int]
    supports_throttle_producer_commands: bool
    def __init__(self, supports_throttle_producer_commands: _Optional[bool] = ...) -> None: ...

class CommandConnect(_message.Message):
    __slots__ = ("client_version", "auth_data", "protocol_version", "auth_method_name", "feature_flags", "connection")
    CLIENT_VERSION_FIELD_NUMBER: _ClassVar[int]
    AUTH_DATA_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_VERSION_FIELD_NUMBER: _ClassVar[int]
    AUTH_METHOD_NAME_FIELD_NUMBER: _ClassVar[int]
    FEATURE_FLAGS_FIELD_NUMBER: _ClassVar[int]
    CONNECTION_FIELD_NUMBER: _ClassVar[int]
    client_version: str
    auth_data: bytes
    protocol_version: int
    auth_method_name: str
    feature_flags: FeatureFlags
    connection: str
    def __init__(self, client_version: _Optional[str] = ..., auth_data: _Optional[bytes] = ..., protocol_version: _Optional[int] = ..., auth_method_name: _Optional[str] = ..., feature_flags: _Optional[_Union[FeatureFlags, _Mapping]] = ..., connection: _Optional[str] = ...) -> None: ...

class CommandConnected(_message.Message):
    __slots__ = ("server_version", "protocol_version", "max_message_size", "feature_flags")
    SERVER_VERSION_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_VERSION_FIELD_NUMBER: _ClassVar[int]
    MAX_MESSAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    FEATURE_FLAGS_FIELD_NUMBER: _ClassVar[int]
    server_version: str
    protocol_version: int
    max_message_size: int
    feature_flags: FeatureFlags
    def __init__(self, server_version: _Optional[str] = ..., protocol_version: _Optional[int] = ..., max_message_size: _Optional[int] = ..., feature_flags: _Optional[_Union[FeatureFlags, _Mapping]] = ...) -> None: ...

class CommandPing(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class CommandPong(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class CommandError(_message.Message):
    __slots__ = ("request_id", "error", "message")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    request_id: int
    error: int
    message: str
    def __init__(self, request_id: _Optional[int] = ..., error: _Optional[int] = ..., message: _Optional[str] = ...) -> None: ...

class BaseCommand(_message.Message):
    __slots__ = ("type", "connect", "connected", "error", "ping", "pong", "throttleProducer", "throttleProducerReceipt")
    class Type(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        CONNECT: _ClassVar[BaseCommand.Type]
        CONNECTED: _ClassVar[BaseCommand.Type]
        ERROR: _ClassVar[BaseCommand.Type]
        PING: _ClassVar[BaseCommand.Type]
        PONG: _ClassVar[BaseCommand.Type]
        THROTTLE_PRODUCER: _ClassVar[BaseCommand.Type]
        THROTTLE_PRODUCER_RECEIPT: _ClassVar[BaseCommand.Type]
    CONNECT: BaseCommand.Type
    CONNECTED: BaseCommand.Type
    ERROR: BaseCommand.Type
    PING: BaseCommand.Type
    PONG: BaseCommand.Type
    THROTTLE_PRODUCER: BaseCommand.Type
    THROTTLE_PRODUCER_RECEIPT: BaseCommand.Type
    TYPE_FIELD_NUMBER: _ClassVar[int]
    CONNECT_FIELD_NUMBER: _ClassVar[int]
    CONNECTED_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    PING_FIELD_NUMBER: _ClassVar[int]
    PONG_FIELD_NUMBER: _ClassVar[int]
    THROTTLEPRODUCER_FIELD_NUMBER: _ClassVar[int]
    THROTTLEPRODUCERRECEIPT_FIELD_NUMBER: _ClassVar[int]
    type: BaseCommand.Type
    connect: CommandConnect
    connected: CommandConnected
    error: CommandError
    ping: CommandPing
    pong: CommandPong
    throttleProducer: CommandThrottleProducer
    throttleProducerReceipt: CommandThrottleProducerReceipt
    def __init__(self, type: _Optional[_Union[BaseCommand.Type, str]] = ..., connect: _Optional[_Union[CommandConnect, _Mapping]] = ..., connected: _Optional[_Union[CommandConnected, _Mapping]] = ..., error: _Optional[_Union[CommandError, _Mapping]] = ..., ping: _Optional[_Union[CommandPing, _Mapping]] = ..., pong: _Optional[_Union[CommandPong, _Mapping]] = ..., throttleProducer: _Optional[_Union[CommandThrottleProducer, _Mapping]] = ..., throttleProducerReceipt: _Optional[_Union[CommandThrottleProducerReceipt, _Mapping]] = ...) -> None: ...
