"""What every space refuses, in the same words."""

from __future__ import annotations

from viewkeeper.errors import ConflictError, InputError, StoreError
from viewkeeper.store.key_value import MAX_KEY_BYTES


def check_key(key: bytes) -> None:
    """Refuse a key that no space can write.

    Raises:
        InputError: KEY_LENGTH_INVALID for a key of no or of more than 511 bytes.
    """
    if not 0 < len(key) <= MAX_KEY_BYTES:
        raise key_length_invalid()


def key_length_invalid() -> InputError:
    """Return the error for a key of no or of more than 511 bytes."""
    return InputError("KEY_LENGTH_INVALID", f"A key cannot be written: keys have 1 to {MAX_KEY_BYTES} bytes.")


def keys_not_ascending(database: str) -> InputError:
    """Return the error for appended keys that do not ascend behind all that is there."""
    return InputError(
        "KEYS_NOT_ASCENDING",
        f"Keys appended to {database!r} must ascend and lie behind all keys that are there: put them instead.",
    )


def write_in_progress() -> ConflictError:
    """Return the error for a second write transaction of a thread, which would wait for itself."""
    return ConflictError(
        "WRITE_IN_PROGRESS",
        "This thread has a write transaction open on this store: leave its block before you open another.",
    )


def transaction_closed() -> StoreError:
    """Return the error for the use of a transaction after its end."""
    return StoreError("TRANSACTION_CLOSED", "This transaction is over: open a new one and read again.")


def store_closed() -> StoreError:
    """Return the error for the use of a closed store."""
    return StoreError("STORE_CLOSED", "This store is closed: open it again to use it.")
