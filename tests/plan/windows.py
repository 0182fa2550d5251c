"""What windows and first rows mean, row by row."""

from functools import cmp_to_key


def compared(node):
    """Return a comparison of rows by the order of ``node``, without the key."""

    def compare(left, right):
        for item in node.order:
            a, b = left[item.column], right[item.column]
            if a == b:
                continue
            if a is None or b is None:
                return -1 if (a is None) == item.nulls_first else 1
            return -1 if (a < b) == item.ascending else 1
        return 0

    return compare


def partitions(node, rows):
    """Return the rows by partition, each in order, ties by the key."""
    found = {}
    for row in sorted(rows, key=lambda row: tuple((row[i] is not None, row[i]) for i in node.key)):
        found.setdefault(tuple(row[i] for i in node.partition), []).append(row)
    return [sorted(members, key=cmp_to_key(compared(node))) for members in found.values()]


def ranks(node, members, ranking):
    """Return the rank of each of a partition's rows."""
    compare = compared(node)
    numbers = []
    for row in members:
        before = [other for other in members if compare(other, row) < 0]
        if ranking == "rank":
            numbers.append(1 + len(before))
        elif ranking == "dense_rank":
            numbers.append(1 + len({tuple(other[i.column] for i in node.order) for other in before}))
        else:
            numbers.append(len(numbers) + 1)
    return numbers


def first_rows(node, rows):
    """Return the rows of a TopK."""
    return [
        (*row, rank)
        for members in partitions(node, rows)
        for row, rank in zip(members, ranks(node, members, node.ranking), strict=True)
        if node.offset < rank <= node.limit
    ]


def windowed(node, rows):
    """Return the rows of a Window."""
    out = []
    for members in partitions(node, rows):
        columns = [called(node, call, members) for call in node.calls]
        out += [(*row, *values) for row, *values in zip(members, *columns, strict=True)]
    return out


def called(node, call, members):
    """Return the values of ``call`` over a partition."""
    if call.function in ("row_number", "rank", "dense_rank"):
        return ranks(node, members, call.function)
    if call.function in ("lag", "lead"):
        step = call.constants[0] * (1 if call.function == "lead" else -1)
        places = [i + step for i in range(len(members))]
        return [members[p][call.arguments[0]] if 0 <= p < len(members) else None for p in places]
    return [framed(call, frame(node, call, members, i)) for i in range(len(members))]


def frame(node, call, members, place):
    """Return the rows that the row at ``place`` sees."""
    compare = compared(node)
    if call.unit == "rows":
        start = 0 if call.start is None else max(0, place - call.start)
        return members[start : None if call.stop is None else max(0, place + call.stop + 1)]
    assert not call.start
    assert not call.stop
    row = members[place]
    return [
        other
        for other in members
        if (call.start is None or compare(other, row) >= 0) and (call.stop is None or compare(other, row) <= 0)
    ]


def framed(call, rows):
    """Return the value of a function over a frame."""
    if call.function == "count_star":
        return len(rows)
    values = [row[call.arguments[0]] for row in rows]
    if call.function == "first_value":
        return values[0] if values else None
    values = [value for value in values if value is not None]
    if call.function == "count":
        return len(values)
    return {"sum": sum, "min": min, "max": max}[call.function](values) if values else None
