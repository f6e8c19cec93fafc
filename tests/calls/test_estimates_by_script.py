"""A first prompt, which no endpoint has counted, is not taken for shorter than a small model's tokenizer takes it.

The counts are those of SmolLM2's tokenizer.
"""

from __future__ import annotations

import pytest

from decisor.runtime.prompt import estimate_fewest_tokens, estimate_tokens

COUNTS = [
    ("The demand of goods is defined as the sum of all demands connected to the goods, in the city. ", 106),
    (
        "Welches Gebäude sollte um fünf Stufen erhöht werden, damit der Preis möglichst stark fällt? "
        "Für größere Häuser gelten außerdem Übergangsregeln. ",
        317,
    ),
    (
        "Quelle décision réduit le plus les coûts d'électricité dès l'été prochain, étant donné les règles énoncées "
        "ci-après ? ",
        251,
    ),
    ("Który magazyn należy zamknąć, żeby koszty były najniższe, a dostawy wciąż zdążyły na święta? ", 326),
    ("Какое здание следует расширить, чтобы рыночная цена кораблей снизилась сильнее всего? ", 346),
    ("Ποιο κτίριο πρέπει να αναβαθμίσουμε ώστε να μειωθεί η τιμή στην αγορά; ", 311),
    ("أي مبنى يجب أن نرفع مستواه لخفض سعر السوق إلى أقصى حد ممكن؟ ", 316),
    ("איזה בניין כדאי להגדיל כדי להוריד את מחיר השוק ככל האפשר? ", 296),
    ("बाज़ार मूल्य को अधिकतम कम करने के लिए हमें किस भवन का स्तर बढ़ाना चाहिए? ", 381),
    ("เราควรเพิ่มระดับอาคารใดเพื่อลดราคาตลาดให้มากที่สุด ", 445),
    ("我们应该提升哪座建筑的等级，才能最大程度地降低军舰的市场价格？", 290),
    ("市場価格を最も下げるには、どの建物のレベルを上げるべきでしょうか。", 270),
    ("시장 가격을 최대한 낮추려면 어떤 건물의 레벨을 올려야 합니까? ", 371),
    ("😀🚢📦✅", 55),
]


@pytest.mark.parametrize(("text", "count"), COUNTS)
def test_text_of_any_script_is_taken_for_no_shorter_and_for_not_much_longer(text: str, count: int) -> None:
    assert 0.95 * count <= estimate_tokens(text * 5) <= 1.4 * count


def test_a_prompt_is_refused_only_where_the_thriftiest_tokenizer_would_be_over_too() -> None:
    chinese = COUNTS[-4][0]
    assert estimate_fewest_tokens(chinese) == len(chinese) < estimate_tokens(chinese)
    assert estimate_fewest_tokens("plain words") == estimate_tokens("plain words")
