"""Decimal numbers in text as the nearest float64, exactly: digits by integer arithmetic, powers of ten by a table of 128 bits.

A number is w 10^q with an integer w of at most 19 digits. Up to 2^53 and |q| <= 22 both are floats, and one product or quotient
rounds correctly (Clinger 1990). Beyond, w is multiplied with the first 128 bits of 5^q: enough to round correctly but for rare
cases, which are recognised (Lemire 2021). Those, and numbers of more than 19 digits that do not round alike from below and
above, are left to the caller.
"""

import numpy as np

from scoreline.kernels.compile import kernel

SMALLEST, LARGEST = -342, 308  # powers of ten beyond which every number of 19 digits is 0 or infinite
POWERS = np.array([10.0**k for k in range(23)])  # exact
NOT_A_NUMBER, UNSURE, EXACT = -1, 0, 1
ALL_ONES = np.uint64(0xFFFFFFFFFFFFFFFF)
LOW = np.uint64(0xFFFFFFFF)
EXACT_INTEGERS = np.uint64(1 << 53)


def _five_powers() -> np.ndarray:
    """Return the 128 leading bits of 5^q for every q, as pairs (high, low): truncated for q >= 0, rounded up below."""
    table = np.empty((LARGEST - SMALLEST + 1, 2), dtype=np.uint64)
    for q in range(SMALLEST, LARGEST + 1):
        power = 5 ** abs(q)
        if q >= 0:
            shift = 128 - power.bit_length()
            bits = power << shift if shift >= 0 else power >> -shift
        else:
            bits = (1 << (power.bit_length() + 127)) // power + 1
            bits >>= max(0, bits.bit_length() - 128)
        table[q - SMALLEST] = bits >> 64, bits & ((1 << 64) - 1)
    return table


FIVE_POWERS = _five_powers()


@kernel
def multiply(a, b):
    """Return the 128 bits of a b as (high, low)."""
    a0, a1, b0, b1 = a & LOW, a >> np.uint64(32), b & LOW, b >> np.uint64(32)
    low, middle, cross, high = a0 * b0, a1 * b0, a0 * b1, a1 * b1
    carry = (low >> np.uint64(32)) + (middle & LOW) + cross
    return high + (middle >> np.uint64(32)) + (carry >> np.uint64(32)), (carry << np.uint64(32)) | (low & LOW)


@kernel
def leading_zeros(w):
    """Return the number of zero bits above the highest one of w > 0."""
    count = 0
    for step in (32, 16, 8, 4, 2, 1):
        if w >> np.uint64(64 - step) == np.uint64(0):
            w <<= np.uint64(step)
            count += step
    return count


@kernel
def scaled(w, q, tables, bits):
    """Return (w 10^q rounded to the nearest float64, whether that is sure); bits: room for one uint64 to make floats from."""
    if q < SMALLEST:
        return 0.0, True
    if q > LARGEST:
        return np.inf, True
    lead = leading_zeros(w)
    w <<= np.uint64(lead)
    high, low = multiply(w, tables[q - SMALLEST, 0])
    if high & np.uint64(0x1FF) == np.uint64(0x1FF):  # the bits that decide are all ones: the rest of the power matters
        more, _ = multiply(w, tables[q - SMALLEST, 1])
        low += more
        if more > low:
            high += np.uint64(1)
        if low == ALL_ONES and not -27 <= q <= 55:
            return 0.0, False
    top = high >> np.uint64(63)
    mantissa = high >> (top + np.uint64(9))
    exponent = (((152170 + 65536) * q) >> 16) + 63 + np.int64(top) - lead + 1023
    if exponent <= 0:  # subnormal
        if 1 - exponent >= 64:
            return 0.0, True
        mantissa >>= np.uint64(1 - exponent)
        mantissa = (mantissa + (mantissa & np.uint64(1))) >> np.uint64(1)
        bits[0] = mantissa  # 2^52 becomes the smallest normal number by itself
        return bits.view(np.float64)[0], True
    # A tie of 53 bits exactly is rounded to even; it can only be one for small powers.
    if (
        low <= np.uint64(1)
        and -4 <= q <= 23
        and mantissa & np.uint64(3) == np.uint64(1)
        and (mantissa << (top + np.uint64(9))) == high
    ):
        mantissa &= ~np.uint64(1)
    mantissa = (mantissa + (mantissa & np.uint64(1))) >> np.uint64(1)
    if mantissa >= EXACT_INTEGERS:
        mantissa = np.uint64(1 << 52)
        exponent += 1
    if exponent >= 0x7FF:
        return np.inf, True
    bits[0] = (mantissa & np.uint64((1 << 52) - 1)) | (np.uint64(exponent) << np.uint64(52))
    return bits.view(np.float64)[0], True


@kernel
def short_decimal(text, i, stop):
    """Read a number of at most 15 digits without exponent, most of what there is; return (value, end, whether it is one)."""
    w, digits, behind, point = 0, 0, 0, False
    negative = i < stop and text[i] == 45
    i += 1 if negative else 0
    while i < stop and digits < 16:
        c = text[i]
        if 48 <= c <= 57:
            w = 10 * w + (np.int64(c) - 48)
            digits += 1
            behind += 1 if point else 0
        elif c == 46 and not point:
            point = True
        else:
            break
        i += 1
    fine = 0 < digits < 16 and not (i < stop and (text[i] | 32) == 101)
    value = np.float64(w) / POWERS[behind]
    return (-value if negative else value), i, fine


@kernel
def decimal(text, i, stop, tables, bits):
    """Read the number at text[i:stop]; return (value, where it ends, EXACT or UNSURE or NOT_A_NUMBER)."""
    negative = False
    if i < stop and (text[i] == 45 or text[i] == 43):
        negative, i = text[i] == 45, i + 1
    w, digits, q, seen, dropped = np.uint64(0), 0, 0, False, False
    point = False
    while i < stop:
        c = text[i]
        if c == 46 and not point:
            point = True
        elif 48 <= c <= 57:
            seen = True
            if digits < 19:
                w = w * np.uint64(10) + np.uint64(c - 48)
                digits += 1 if w > np.uint64(0) else 0
                q -= 1 if point else 0
            else:
                dropped = dropped or c != 48
                q += 0 if point else 1
        else:
            break
        i += 1
    if not seen:
        return 0.0, i, NOT_A_NUMBER
    if i < stop and (text[i] == 101 or text[i] == 69):
        j, below, power = i + 1, False, 0
        if j < stop and (text[j] == 45 or text[j] == 43):
            below, j = text[j] == 45, j + 1
        if j >= stop or not 48 <= text[j] <= 57:
            return 0.0, j, NOT_A_NUMBER
        while j < stop and 48 <= text[j] <= 57:
            power = min(100_000, 10 * power + np.int64(text[j] - 48))
            j += 1
        q, i = q + (-power if below else power), j
    if w == np.uint64(0):
        return (-0.0 if negative else 0.0), i, EXACT
    if not dropped and w <= EXACT_INTEGERS and -22 <= q <= 22:
        value = np.float64(w) * POWERS[q] if q >= 0 else np.float64(w) / POWERS[-q]
        return (-value if negative else value), i, EXACT
    value, sure = scaled(w, q, tables, bits)
    if sure and dropped:
        above, sure = scaled(w + np.uint64(1), q, tables, bits)
        sure = sure and above == value
    return (-value if negative else value), i, EXACT if sure else UNSURE
