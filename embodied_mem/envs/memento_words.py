"""The words that generated personalised episodes are made of: what things mean to a user, and his arrangements."""

from __future__ import annotations

PEOPLE = (
    "brother", "sister", "grandfather", "grandmother", "uncle", "aunt", "best friend", "neighbour", "colleague",
    "daughter", "son", "cousin", "teacher", "roommate", "mother", "father",
)  # fmt: skip
TRIPS = (
    "Lisbon", "Kyoto", "Iceland", "Peru", "Morocco", "the Alps", "Hanoi", "Scotland", "Greece", "Mexico", "Tasmania",
    "Norway", "Istanbul", "Cape Town", "Sicily", "Seoul",
)  # fmt: skip
PURPOSES = (
    "Sunday baking", "chess evenings", "garden parties", "drawing lessons", "video calls", "train rides", "choir",
    "weekend hikes", "card games", "late-night reading", "school mornings", "birthday dinners", "language classes",
    "movie nights", "spring cleaning", "guests from abroad",
)  # fmt: skip
GROUPS = (
    "collection", "travel kit", "painting kit", "picnic set", "desk set", "hobby things", "weekend bag", "keepsake set",
    "camping gear", "gift table", "study kit", "office kit",
)  # fmt: skip

HISTORY = (
    ("was a gift from my {person}", "the {thing} that my {person} gave me"),
    ("is a souvenir from my trip to {trip}", "my souvenir {thing} from {trip}"),
    ("belonged to my {person} when I was a child", "the {thing} that belonged to my {person}"),
    ("is something that I won with my {person}", "the {thing} that I won with my {person}"),
)
PREFERENCE = (
    ("is the one I like best for {purpose}", "my favourite {thing} for {purpose}"),
    ("is what I always pick for {purpose}", "the {thing} that I always pick for {purpose}"),
)
OWNERSHIP = (
    ("is mine, not my {person}'s", "my own {thing}, not my {person}'s"),
    ("is the one that I share with my {person}", "the {thing} that I share with my {person}"),
)
"""(what the acquisition instruction says after "The <thing>", how the utilisation instruction calls it)."""

OCCASIONS = (
    "tea break", "morning stretch", "board game evening", "homework hour", "family call", "late shift",
    "poetry reading", "Saturday brunch", "music practice", "letter writing", "house concert", "crossword break",
    "painting afternoon", "repair session", "nap time", "stargazing night", "book club", "quiet hour", "puzzle evening",
    "sewing session", "language lesson", "garden break", "photo sorting", "early shift", "podcast recording",
    "cooking class", "rainy afternoon", "visit of my parents", "yoga session",
)  # fmt: skip

PREFERRED = (
    "I like to have the {things} on the {place} for my {occasion}.",
    "I prefer to keep the {things} on the {place}, because it suits my {occasion}.",
    "I enjoy having the {things} on the {place} during my {occasion}.",
)
ROUTINES = (
    "I usually put the {things} on the {place} before my {occasion}.",
    "I always arrange the {things} on the {place} for my {occasion}.",
    "Every week I set the {things} on the {place} for my {occasion}.",
)
REQUESTS = (
    "Could you set things up for my {occasion}?",
    "Can you prepare my {occasion} as I like it?",
    "Please get the house ready for my {occasion}.",
    "Can you arrange everything for my {occasion}?",
)
ORDERS = (
    "Move the {things} from the {origin} to the {place}.",
    "Take the {things} from the {origin} and put them on the {place}.",
    "Bring the {things} from the {origin} to the {place}.",
)
POLITE = (
    "Could you move {things} from the {origin} to the {place}?",
    "Please bring {things} from the {origin} to the {place}.",
)
