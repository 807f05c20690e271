"""Types of elements, and operators."""

import enum


class DType(enum.IntEnum):
    """The type of an element. NumPy has no name for those of the last line but one: say them as `dtype=`."""

    INT8 = 0
    UINT8 = 1
    INT32 = 2
    UINT32 = 3
    INT64 = 4
    UINT64 = 5
    FLOAT16 = 6
    FLOAT32 = 7
    FLOAT64 = 8
    BFLOAT16 = 9
    FLOAT8_E4M3 = 10
    FLOAT8_E5M2 = 11
    BOOL = 100

    @property
    def bytes(self) -> int:
        """The bytes of an element."""
        return _BYTES[self]


_BYTES = {
    DType.INT8: 1,
    DType.UINT8: 1,
    DType.INT32: 4,
    DType.UINT32: 4,
    DType.INT64: 8,
    DType.UINT64: 8,
    DType.FLOAT16: 2,
    DType.FLOAT32: 4,
    DType.FLOAT64: 8,
    DType.BFLOAT16: 2,
    DType.FLOAT8_E4M3: 1,
    DType.FLOAT8_E5M2: 1,
    DType.BOOL: 1,
}


class Op(enum.IntEnum):
    """How elements are combined: in the canonical order, so the result has the same bits everywhere."""

    SUM = 0  #: their sum; integers wrap around
    PROD = 1  #: their product; integers wrap around
    MAX = 2  #: the largest
    MIN = 3  #: the smallest
    AVG = 4  #: the sum divided by the number of ranks
    BAND = 100  #: the bits that all have; integers and BOOL
    BOR = 101  #: the bits that any has; integers and BOOL
    BXOR = 102  #: the bits that an odd number of ranks has; integers and BOOL


class Order(enum.IntEnum):
    """In which order inputs are combined."""

    CANONICAL = 0  #: the same bits with every algorithm, transport, message size and placement
    ANY = 1  #: also by algorithms that cannot keep this order, such as ring


# By the letter of the struct module, which the buffer protocol has, and the bytes of an element.
_OF_FORMAT = {
    "b": {1: DType.INT8},
    "h": {},
    "i": {4: DType.INT32},
    "l": {4: DType.INT32, 8: DType.INT64},
    "q": {8: DType.INT64},
    "n": {8: DType.INT64},
    "B": {1: DType.UINT8},
    "H": {},
    "I": {4: DType.UINT32},
    "L": {4: DType.UINT32, 8: DType.UINT64},
    "Q": {8: DType.UINT64},
    "N": {8: DType.UINT64},
    "e": {2: DType.FLOAT16},
    "f": {4: DType.FLOAT32},
    "d": {8: DType.FLOAT64},
    "?": {1: DType.BOOL},
    "c": {1: DType.UINT8},
}


def is_swapped_or_opaque(format: str) -> bool:
    """Elements whose bytes are in the other order, or are no numbers: the library can take them for nothing."""
    return format[:1] in (">", "!") or any(letter in format for letter in "OPT{")


def dtype_of(format: str, item_bytes: int) -> DType | None:
    """The type of elements that the buffer protocol describes so; None if the library has none."""
    return _OF_FORMAT.get(format.lstrip("@=<"), {}).get(item_bytes)
