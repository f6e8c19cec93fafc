"""Against published tables and worked examples. Figures marked "scipy" were computed once with scipy 1.17.1 and
statsmodels 0.15.0: proportion_confint(method="wilson"), mcnemar(exact=True), multipletests(method="holm"),
cohens_kappa, bootstrap(method="percentile", n_resamples=100_000)."""

from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decisor.lab.statistics import (
    Interval,
    bootstrap,
    holm,
    kappa,
    mcnemar,
    pass_at_k,
    pass_hat_k,
    sign_flip,
    wilson,
)

# Newcombe 1998 (Statistics in Medicine 17, table I, method 3), to four places; then scipy.
WILSON = [
    (81, 263, 0.2553, 0.3662),
    (15, 148, 0.0624, 0.1605),
    (0, 20, 0.0, 0.1611),
    (1, 29, 0.0061, 0.1718),
    (0, 10, 0.0, 0.2775328),
    (9, 10, 0.59584997, 0.98212379),
    (10, 10, 0.7224672, 1.0),
    (129, 200, 0.57652113, 0.70801372),
]
MCNEMAR = [
    (0, 0, 1.0),
    (7, 7, 1.0),
    (5, 0, 0.0625),
    (1, 9, 0.021484375),
    (3, 12, 0.03515625),
    (59, 6, 4.964650327128616e-12),
    (121, 59, 4.4344492637551645e-06),
    (86, 150, 3.7159361395713866e-05),
    (400, 330, 0.010605994778707762),
]


@pytest.mark.parametrize(("right", "asked", "low", "high"), WILSON)
def test_wilsons_interval_is_the_published_one(right: int, asked: int, low: float, high: float) -> None:
    found = wilson(right, asked)
    digits = 4 if asked in (263, 148, 20, 29) else 8
    assert (round(found.low, digits), round(found.high, digits)) == (low, high)


@given(st.integers(1, 5000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilsons_interval_holds_the_share_and_never_leaves_0_to_1(case: tuple[int, int]) -> None:
    right, asked = case
    found = wilson(right, asked)
    assert 0.0 <= found.low <= right / asked <= found.high <= 1.0
    assert wilson(0, 0) == Interval(0.0, 1.0)


@pytest.mark.parametrize(("one", "other", "p"), MCNEMAR)
def test_mcnemars_p_is_the_exact_one(one: int, other: int, p: float) -> None:
    assert mcnemar(one, other) == pytest.approx(p, rel=1e-12) == mcnemar(other, one)


def test_mcnemar_by_hand_over_every_way_that_five_coins_can_fall() -> None:
    """One of five cases goes the other way: 1 + 5 of the 32 falls are as lopsided, and as many on the other side."""
    falls = [sum(coins) for coins in product((0, 1), repeat=5)]
    assert mcnemar(1, 4) == sum(heads in (0, 1, 4, 5) for heads in falls) / 32


@pytest.mark.parametrize(("one", "other"), [(1, 9), (3, 12), (12, 10), (40, 62)])
def test_flipping_signs_comes_to_mcnemars_p(one: int, other: int) -> None:
    differences = [1.0] * one + [-1.0] * other + [0.0] * 30
    assert sign_flip(differences, rounds=200_000) == pytest.approx(mcnemar(one, other), abs=0.004)


def test_flipping_signs_of_nothing_or_of_one_case_shows_nothing() -> None:
    assert sign_flip([]) == sign_flip([0.0, 0.0]) == 1.0
    assert sign_flip([0.7]) == 1.0


def test_the_bootstrap_of_differences_agrees_with_scipy() -> None:
    """scipy: 0.01 to 0.17."""
    found = bootstrap([1.0] * 14 + [-1.0] * 5 + [0.0] * 81, rounds=100_000)
    assert found.low == pytest.approx(0.01, abs=0.005) and found.high == pytest.approx(0.17, abs=0.005)


def test_drawing_counts_and_drawing_cases_give_the_same_interval() -> None:
    few = [0.0, 0.5, 1.0] * 40
    many = [value + 1e-9 * at for at, value in enumerate(few)]  # all distinct: drawn case by case
    one, other = bootstrap(few, 100_000), bootstrap(many, 100_000)
    assert one.low == pytest.approx(other.low, abs=0.005) and one.high == pytest.approx(other.high, abs=0.005)


def test_the_same_seed_gives_the_same_interval_and_another_seed_nearly() -> None:
    values = [0.1 * at for at in range(30)]
    assert bootstrap(values, seed=3) == bootstrap(values, seed=3) != bootstrap(values, seed=4)
    assert bootstrap(values, seed=3).low == pytest.approx(bootstrap(values, seed=4).low, abs=0.05)


def test_the_bootstrap_covers_the_mean_about_as_often_as_it_says() -> None:
    """200 samples of 60 coins that fall on heads with 0.4: a 95 % interval holds 0.4 in 185 to 197 of them."""
    import numpy as np

    rng = np.random.default_rng(11)
    held = [bootstrap((rng.random(60) < 0.4).astype(float).tolist(), 2_000) for _ in range(200)]
    assert 182 <= sum(one.low <= 0.4 <= one.high for one in held) <= 198


def test_holms_correction_is_scipys() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.03, 0.06, 0.06, 0.02))
    assert holm([0.001, 0.001, 0.6, 0.2, 0.049]) == pytest.approx((0.005, 0.005, 0.6, 0.4, 0.147))
    assert holm([]) == () and holm([0.7, 0.8]) == (1.0, 1.0)


@given(st.lists(st.floats(0, 1), max_size=12))
def test_a_corrected_p_is_never_smaller_keeps_the_order_and_stays_under_one(ps: list[float]) -> None:
    found = holm(ps)
    assert all(p <= q <= 1 for p, q in zip(ps, found, strict=True))
    assert [q for _, q in sorted(zip(ps, found, strict=True))] == sorted(found)


@pytest.mark.parametrize(("right", "tries"), [(0, 5), (1, 5), (3, 5), (5, 5), (2, 8)])
def test_pass_of_k_is_the_share_of_all_choices_of_k_tries_with_one_right_or_all_right(right: int, tries: int) -> None:
    results = [True] * right + [False] * (tries - right)
    for k in range(1, tries + 1):
        choices = list(combinations(results, k))
        assert pass_at_k(right, tries, k) == pytest.approx(sum(map(any, choices)) / len(choices))
        assert pass_hat_k(right, tries, k) == pytest.approx(sum(map(all, choices)) / len(choices))


def test_pass_at_more_than_there_were_tries_is_refused() -> None:
    with pytest.raises(ValueError, match="Of 3 tries, 4 cannot be drawn"):
        pass_at_k(1, 3, 4)


def test_kappa_is_statsmodels() -> None:
    """cohens_kappa([[20, 5], [10, 15]]) = 0.4; [[8, 2, 1], [3, 9, 0], [1, 2, 7]] = 0.58807212."""
    table = [[8, 2, 1], [3, 9, 0], [1, 2, 7]]
    pairs = [("abc"[i], "abc"[j]) for i, line in enumerate(table) for j, many in enumerate(line) for _ in range(many)]
    assert kappa([one for one, _ in pairs], [other for _, other in pairs]) == pytest.approx(0.5880721220527045)
    assert kappa(["a"], ["a"]) is None and kappa([], []) is None
    assert kappa(["a", "b"], ["b", "a"]) == -1.0
