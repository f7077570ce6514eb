"""Makes changes of customers, orders and their items at random, as SQL that both databases take, from a seed."""

import random
from collections.abc import Iterator

_CITIES = ("Oslo", "Rome", "Bonn", "Kiel", "Œuvre", "")
_STATES = ("new", "paid", "sent")


def first_rows(seed: int, tags: bool) -> Iterator[str]:
    """Inserts of 12 customers, 40 orders and their items. `tags`: orders have a list of them."""
    chance = random.Random(seed)
    for customer in range(1, 13):
        yield _insert(
            "customers", customer, f"customer {customer}", chance.choice(_CITIES), _amount(chance),
            f"{chance.randrange(1950, 2025)}-02-{chance.randrange(1, 29):02}", chance.choice([None, "a note"]),
            _time(chance, 6),
        )  # fmt: skip
    for order in range(1, 41):
        yield _new_order(chance, order, tags)
        for line in range(1, chance.randrange(1, 4)):
            yield _new_line(chance, order, line)


def later_rows(seed: int, orders: range, tags: bool) -> Iterator[str]:
    """Some 60 changes, of which each is a transaction; orders of these numbers are new."""
    chance = random.Random(seed)
    fresh = iter(orders)
    for _ in range(60):
        order, customer = chance.randrange(1, orders.start), chance.randrange(1, 13)
        match chance.randrange(8):
            case 0:
                yield _new_order(chance, next(fresh), tags)
            case 1:
                yield f"delete from orders where id = {order};"
            case 2 | 3:
                to = chance.choice([str(chance.randrange(1, 16)), "null"])
                yield f"update orders set customer_id = {to} where id = {order};"
            case 4:
                paid = chance.choice(_STATES)
                values, some = f"status = '{paid}', amount = {_amount(chance)}", f"{order} and {order + 2}"
                yield f"update orders set {values} where id between {some};"
            case 5:
                city = chance.choice(_CITIES)
                yield f"update customers set city = '{city}', changed = '{_time(chance, 6)}' where id = {customer};"
            case 6:
                yield f"update customers set credit = {_amount(chance)} where id = {customer};"
            case _:
                values = f"quantity = {chance.randrange(100)}, price = {_amount(chance)}"
                yield f"update items set {values} where order_id = {order};"


def _new_order(chance: random.Random, order: int, tags: bool) -> str:
    customer = chance.choice([chance.randrange(1, 16), chance.randrange(1, 13), None])
    values = [order, customer, _amount(chance), _time(chance, 3), chance.choice(_STATES)]
    words = [chance.choice(["{}", '{new,"a b"}', None])] if tags else []
    return _insert("orders", *values, *words)


def _new_line(chance: random.Random, order: int, line: int) -> str:
    return _insert(
        "items", order, line, chance.choice(["pen", "ink", None]), chance.randrange(1, 9), _amount(chance)
    )


def _amount(chance: random.Random) -> str:
    return f"{chance.randrange(-99_999, 9_999_999) / 100:.2f}"


def _time(chance: random.Random, digits: int) -> str:
    second = f"{chance.randrange(60):02}.{chance.randrange(10**digits):0{digits}}"
    return f"2024-{chance.randrange(1, 13):02}-{chance.randrange(1, 29):02} {chance.randrange(24):02}:30:{second}"


def _insert(table: str, *values: object) -> str:
    texts = ["null" if value is None else f"'{value}'" for value in values]
    return f"insert into {table} values ({', '.join(texts)});"
