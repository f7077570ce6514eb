"""Random prefixes of keys: the span that a store reads for one ends behind all that begin with it."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz.mutations import SECONDS
from lakejoin.storage.stores.scan.order import beginning_with, successor

pytestmark = pytest.mark.bad_input(20)
EXAMPLES = settings(max_examples=int(200 + 20 * SECONDS), deadline=None)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)


@EXAMPLES
@given(st.one_of(st.tuples(texts, texts), st.tuples(st.binary(max_size=3), st.binary(max_size=3))))
def test_span_of_a_prefix_ends_behind_all_that_begin_with_it(pair: tuple[Any, Any]) -> None:
    """As stores order text and bytes: by code points, which are ordered as UTF-8 is."""
    prefix, rest = pair
    low, high = beginning_with((), prefix)

    if prefix and low is not None and (end := successor(prefix)) is not None:
        assert low.place[0] <= prefix + rest < end
        assert high is not None
        assert high.place == (end,)
