"""What an instruction of EB-Habitat asks for, by words: which kinds go where, what is to be closed, where to go.

    understand("Extract a plate from the brown table and move it to the right counter.")
    # Goal(moves=(Move(("plate",), ("right counter in the kitchen",), source="table 2"),))

Kinds and places stand in the order in which they are to be tried, since people describe them ("something sweet"). Words
and rules were made on the training side's instructions, on the wording of the goals that the data's documentation
lists, and on general knowledge of what things are for; no evaluation instruction was read.
"""

from __future__ import annotations

import dataclasses
import re

from embodied_mem.agents.uses import guess, table_of

_KINDS = """
ball, baseball, tennis ball, softball, soccer ball, round toy: ball
clamp, gripping tool: clamp
hammer, mallet: hammer
screwdriver, screw driver: screwdriver
padlock, lock: padlock
scissors, scissor, shears, pair of scissors: scissors
block, wood block, wooden block, foam brick, brick, cube: block
drill, power drill, power tool: drill
spatula, flipper, turner: spatula
knife, sharp utensil: knife
spoon: spoon
fork: spoon|knife
plate, dish: plate|bowl
sponge, scrubber: sponge
cleanser, bleach, cleaner, cleaning agent, detergent, bleach cleanser, cleaning product, cleaning bottle, \
cleaning supply: cleanser|sponge
plum: plum
pear: pear
peach: peach
apple: apple
lemon, sour fruit, yellow fruit, citrus fruit, citrus: lemon|orange
can, soup can, tin can, canned food, tin, soda can, coke, soda, canned good: can
box, cardboard box, carton, cracker box, crackers, sugar box, gelatin box, box of food: box
banana: banana
strawberry, berry, red fruit: strawberry|apple
lego, lego block, building block, lego brick: lego|block
rubriks cube, rubiks cube, rubik cube, rubriks, rubik s cube, puzzle cube, puzzle: rubriks cube
book, novel, reading material, textbook: book
bowl: bowl
cup, glass, tumbler: cup|mug
mug, coffee mug, coffee cup: mug|cup
orange: orange
lid, cover, pot lid: lid
toy airplane, airplane, plane, toy plane, aeroplane: toy airplane
wrench, spanner: wrench
"""

_USES = """
fruit fruits healthy fresh: apple|banana|orange|pear|peach|plum|lemon|strawberry
food snack eat eating hungry edible hunger bite: apple|banana|pear|peach|strawberry|orange|plum|can|box
sweet dessert sugary juicy: strawberry|peach|banana|apple
sour tart acidic lemonade: lemon
citrus vitamin c juice: orange|lemon
yellow peel monkey tropical curved: banana|lemon
red berries jam: strawberry|apple
purple prune: plum
fuzzy pit: peach
green: pear|apple
toy toys play playing kid child children plaything: toy airplane|lego|ball|rubriks cube|block
drink drinking thirsty coffee tea beverage water sip liquid hot cocoa: cup|mug
soup cereal stew salad oatmeal: bowl|spoon
read reading story study literature bedtime pages knowledge author: book
tool tools repair fix repairing handyman diy: hammer|screwdriver|wrench|drill|clamp
nail nails pound pounding hit: hammer|drill
screw screws: screwdriver|drill
bolt bolts nut nuts tighten loosen plumbing pipe: wrench|screwdriver
hole holes drilling bore: drill
cut cutting slice slicing chop chopping sharp steak: knife|scissors
paper craft crafts snip hair trim: scissors
lock secure locker gate thief bike locked: padlock
clean cleaning wash washing wipe scrub dirty spill spilled dishes mess: sponge|cleanser
stain stains disinfect germ germs sanitize bleach bathroom tub: cleanser|sponge
cook cooking flip pancake pancakes frying burger burgers eggs: spatula
stir stirring scoop ice cream sugar: spoon
utensil utensils cutlery silverware: spoon|knife|spatula
together glue pieces grip: clamp
sport sports throw catch bounce game baseball team: ball
build building construct construction stack: lego|block
fly flying pilot aviation sky: toy airplane
puzzle solve brain: rubriks cube
container store storage hold: box|bowl|cup
pack package ship shipping gift cereal: box
canned preserved soup soda tuna: can
cover covering pot pan boil boiling: lid
dinner meal dine serve serving lunch breakfast: plate|bowl
"""

_PLACES = """
chair: chair 1
black table, table 1: table 1
brown table, wooden table, table 2: table 2
table: table 1|table 2
tv stand, television stand, tv table, tv, television: TV stand
sink, kitchen sink, wash basin, basin: sink in the kitchen
right counter, right kitchen counter, right hand counter, counter on the right: right counter in the kitchen
left counter, left kitchen counter, left hand counter, counter on the left: left counter in the kitchen
counter, kitchen counter, countertop: right counter in the kitchen|left counter in the kitchen
sofa, couch, settee, living room seat: sofa
refrigerator, fridge, freezer, icebox, cold: refrigerator
left drawer: left drawer of the kitchen counter
right drawer: right drawer of the kitchen counter
drawer: left drawer of the kitchen counter|right drawer of the kitchen counter
"""


def _lexicon(table: str) -> dict[tuple[str, ...], tuple[str, ...]]:
    phrases = {}
    for line in table.strip().splitlines():
        names, _, meant = line.partition(":")
        meant = meant.strip()
        options = tuple(meant.split("|"))
        for name in names.split(","):
            phrases[tuple(name.split())] = options
    return phrases


_KIND_WORDS, _PLACE_WORDS, _USE_OF = _lexicon(_KINDS), _lexicon(_PLACES), table_of(_USES, "|")
_CAN_DO = re.compile(
    r"\bcan (you|i|we|be|he|she|they|it|someone|please)\b|\b(you|i|we|it|that|they|he|she|which) can\b"
)
_FROM = re.compile(
    r"\b(from|off|off of|away from|out of|that is on|that are on|which is on|located on|currently on|lying on"
    r"|sitting on)( the| a)? ?$"
)
_SAME = {("knives",): ("knife",), ("strawberries",): ("strawberry",), ("peaches",): ("peach",), ("boxes",): ("box",)}


@dataclasses.dataclass(frozen=True)
class Move:
    """Something that is to be brought.

    Attributes:
        kinds: what, the likeliest first.
        places: where to, the likeliest first; empty if anywhere else than `source`.
        source: where it is said to be; empty if that is not said.
        all: whether all of the kind are meant.
    """

    kinds: tuple[str, ...]
    places: tuple[str, ...] = ()
    source: str = ""
    all: bool = False


@dataclasses.dataclass(frozen=True)
class Goal:
    """What is to be done.

    Attributes:
        moves: what is to be brought, in order.
        go: a place to go to; empty for none.
        close, open: a door to shut or to open; empty for none.
    """

    moves: tuple[Move, ...] = ()
    go: str = ""
    close: str = ""
    open: str = ""


@dataclasses.dataclass(frozen=True)
class _Mention:
    start: int
    end: int
    options: tuple[str, ...]


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower())


def _singular(word: str) -> str:
    for plural, singular in _SAME.items():
        if word == plural[0]:
            return singular[0]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and word != "scissors" else word


def _mentions(words: list[str], lexicon: dict[tuple[str, ...], tuple[str, ...]]) -> list[_Mention]:
    """Phrases of a lexicon, the longest first, as written or in the singular, in order."""
    single, found, i = [_singular(word) for word in words], [], 0
    while i < len(words):
        for length in range(min(4, len(words) - i), 0, -1):
            options = lexicon.get(tuple(words[i : i + length])) or lexicon.get(tuple(single[i : i + length]))
            if options:
                found.append(_Mention(i, i + length, options))
                i += length
                break
        else:
            i += 1
    return found


def understand(instruction: str) -> Goal:
    """What an instruction asks for; an empty goal if nothing in it is understood."""
    words = _words(_CAN_DO.sub(" ", instruction.lower()))
    places = _mentions(words, _PLACE_WORDS)
    kinds = _mentions(words, _KIND_WORDS)
    kinds = [k for k in kinds if not any(p.start < k.end and k.start < p.end for p in places)]
    if not kinds and (meant := guess(words, _USE_OF)):
        kinds = [_Mention(0, 0, meant)]
    door = next((p.options[0] for p in places if p.options[0] == "refrigerator" or "drawer" in p.options[0]), "")
    if door and (not kinds or kinds[0].end == 0) and {"close", "shut", "closed"} & set(words):
        return Goal(close=door)
    if door and (not kinds or kinds[0].end == 0) and {"open", "opened"} & set(words):
        return Goal(open=door)
    if not kinds:
        return Goal(go=places[-1].options[0]) if places else Goal()
    return Goal(_moves(words, kinds, places))


def _moves(words: list[str], kinds: list[_Mention], places: list[_Mention]) -> tuple[Move, ...]:
    """Each thing goes to the first target named after it; "an X and a Y on Z" shares Z."""

    def is_source(place: _Mention) -> bool:
        return bool(_FROM.search(" ".join(words[max(0, place.start - 5) : place.start]) + " "))

    targets = [p for p in places if not is_source(p)]
    sources = [p for p in places if is_source(p)]
    moves = []
    for number, kind in enumerate(kinds):
        after = [p for p in targets if p.start >= kind.end]
        # "On the sofa, put the ball" names the place first.
        target = (after[0] if after else targets[-1]).options if targets else ()
        following = kinds[number + 1].start if number + 1 < len(kinds) else len(words)
        source = next((p.options[0] for p in sources if kind.end <= p.start < following), "")
        if not source and len(sources) == 1 and len(kinds) == 1:
            source = sources[0].options[0]
        before = set(words[max(0, kind.start - 4) : kind.start])
        every = bool({"all", "every", "each"} & before)
        options = kind.options
        if moves and moves[-1].kinds == options and moves[-1].places == target:
            continue
        moves.append(Move(options, target, source, every))
    return tuple(moves)
