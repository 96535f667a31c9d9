"""Words of any script, signs and dates: each is found by itself, however it was written."""

from __future__ import annotations

import pytest

from embodied_mem.memory import LexicalEmbedder, LifelongMemory
from embodied_mem.memory.words import content_words, date_words, same_text, words_of

SIGNS = [
    ("I like 🍕", "🍕"), ("She sent 👍🏽", "👍"), ("We saw 🇩🇪!", "🇩🇪"), ("Door code ★★☆", "★"), ("It costs 3 €", "€"),
    ("猫が二匹います。", "猫"), ("我家有一只猫。", "猫"), ("고양이가 자고 있다", "고양이"), ("ที่บ้านมีแมวสองตัว", "แมว"),
    ("コーヒーが好きです", "コーヒー"), ("I write C++ at work", "C++"),
    ('The screw is 5" long', '5"'), ("We sit at #3", "#3"),
    ("It is 50% off", "50%"), ("यह मेरी किताब है", "किताब"), ("J'ai besoin de l'eau", "eau"), ("At O'Brien's", "Brien"),
]  # fmt: skip
OTHERS = [
    "The lamp is blue",
    "今天天气很好",
    "We met at noon",
    "何か食べたい",
    "I write C at home",
    "그는 학교에 간다",
    "ฝนตกหนัก",
]


@pytest.mark.parametrize(("text", "query"), SIGNS)
@pytest.mark.parametrize("embedder", [None, LexicalEmbedder()])
def test_signs_and_scripts_without_spaces_are_found(text, query, embedder):
    memory = LifelongMemory(embedder=embedder)
    for one in [*OTHERS[:3], text, *OTHERS[3:]]:
        memory.tell(one)
    assert memory.retrieve(query, k=1).items[0].text.strip(".") == text.strip(".")


MAY_8 = [
    "8 May 2024", "8th of May, 2024", "May 8, 2024", "May 8th 2024", "2024-05-08", "2024/5/8", "08.05.2024",
    "05/08/2024",
    "5/8/2024", "2024-05-08T10:30:00Z", "Wednesday, 8 May 2024", "1:56 pm on 8 May, 2024", "the eighth of May 2024",
    "8. Mai 2024", "8 mai 2024", "8 de mayo de 2024", "2024年5月8日", "2024년 5월 8일", "20240508", "8 MAY 2024",
]  # fmt: skip
OTHER_DAYS = ["2024-03-08", "May 18, 2024", "2024-12-25", "8 May 2021", "11 April 2024"]


@pytest.mark.parametrize("told", MAY_8)
def test_dates_meet_in_all_forms(told):
    assert "2024-05-08" in content_words(told)


@pytest.mark.parametrize(
    ("told", "asked"),
    [(told, "8 May 2024") for told in MAY_8]
    + [(MAY_8[0], asked) for asked in ("2024-05-08", "May 8th", "May 2024", "in May")],
)
def test_the_note_of_a_date_comes_first(told, asked):
    memory = LifelongMemory()
    for number, when in enumerate([*OTHER_DAYS[:2], told, "2024-12-26", OTHER_DAYS[4]]):
        if asked in ("May 8th", "8 May 2024", "2024-05-08") or "May" not in when or when == told:
            memory.tell(f"I bought thing {number}.", when=when)
    assert told in memory.retrieve(f"What did I buy {'' if asked == 'in May' else 'on '}{asked}?", k=1).items[0].text


@pytest.mark.parametrize(
    "text", ["I may go", "a march on Rome", "99/99/2024", "room 12 05", "2024", "chapter 3", "", "13 13 2024"]
)
def test_what_is_no_date_has_no_date_words(text):
    assert date_words(words_of(text)) == []


def test_same_text_differs_by_letters_digits_and_signs_only():
    same = ["I am not allergic to nuts.", " i AM not\nallergic to nuts", "I am not al\u200blergic, to nuts!",
            "“I am not allergic to nuts”"]  # fmt: skip
    assert len({same_text(text) for text in same}) == 1
    other = ["I can swim", "I can't swim", "I like C", "I like C++", "-5", "5", "3.5", "35", "3 5", "1 23", "12 3"]
    assert len({same_text(text) for text in other}) == len(other)
