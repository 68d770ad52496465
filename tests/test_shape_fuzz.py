"Random programs: what is accepted runs at every size, with the shapes that were said."
import pytest
from tests.shape.fuzz import trial


@pytest.mark.slow
def test_what_is_accepted_runs():
    wrong, tried, kept = trial(seed=7, programs=130)
    assert wrong == []
    assert tried > 800 and kept > tried/2
