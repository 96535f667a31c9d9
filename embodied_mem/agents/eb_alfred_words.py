"""What an instruction of EB-ALFRED asks for, by words: kinds of things, where they go, what is done to them on the way.

    goal = understand("Put a chilled slice of tomato in the sink.")
    goal.objects, goal.places, goal.change, goal.sliced        # ("Tomato",), ("Sink",), "cool", True

People name things loosely ("the stand", "something to write with"), so each slot holds kinds in the order in which they
are to be tried; what the home is known to hold decides among them (`eb_alfred_planner`). Words and rules were made on
one half of the training side's instructions and on general knowledge of what things are for; no evaluation
instruction was read.
"""

from __future__ import annotations

import dataclasses
import re

from embodied_mem.agents.uses import guess, table_of

_THINGS = """
alarm clock, clock: AlarmClock
apple: Apple
baseball bat, baseball, bat: BaseballBat TennisRacket
basketball, ball: BasketBall
book, textbook, novel, handbook, reading material: Book
bowl, dish for soup: Bowl Pot Plate
box, carton, cardboard box, cardboard: Box TissueBox
loaf of bread, bread, loaf, toast: Bread
butter knife: ButterKnife Knife
candle, nail polish, candle holder: Candle Vase
cd, disc, disk, compact disc: CD
cell phone, cellphone, smartphone, phone, mobile, mobile phone: CellPhone
cloth, rag, washcloth, wash cloth, dishcloth, dish cloth: Cloth HandTowel
credit card, card, debit card, payment card, bank card: CreditCard
cup, wine glass, drinking glass, glass, goblet: Cup Mug
sponge, dish sponge, scrubber: DishSponge SoapBar
egg: Egg
fork: Fork
glass bottle: Glassbottle WineBottle
hand towel, towel: HandTowel Cloth
kettle, teapot, tea kettle: Kettle
set of key, key, keychain, key chain, key ring: KeyChain
knife, kitchen knife, steak knife: Knife ButterKnife
ladle, golden spoon, large spoon, big spoon, serving spoon, large metal spoon, scoop, ice cream scoop: Ladle Spoon
laptop, computer, notebook computer: Laptop
head of lettuce, lettuce, cabbage, leafy green, leafy vegetable, salad: Lettuce
mug, coffee mug, coffee cup, tea cup, teacup: Mug Cup
newspaper, paper: Newspaper
frying pan, sauce pan, skillet, pan: Pan Pot
pen: Pen Pencil
pencil: Pencil Pen
pepper shaker, pepper, pepper mill: PepperShaker SaltShaker
salt shaker, salt: SaltShaker PepperShaker
shaker, seasoning, spice: SaltShaker PepperShaker
pillow, cushion: Pillow
plate, dish, saucer: Plate Bowl
plunger: Plunger
pot, cooking pot, stock pot, metal pot, saucepan: Pot Pan
potato: Potato
remote control, remote, tv remote, controller, remote controller, tv control: RemoteControl
bar of soap, soap bar, soap, piece of soap: SoapBar SoapBottle
soap dispenser, dispenser, soap bottle, bottle of soap, lotion bottle, lotion, bottle of lotion, hand soap, \
shampoo: SoapBottle SprayBottle
spatula, turner, flipper: Spatula Spoon Ladle
spoon: Spoon Ladle
spray bottle, sprayer, cleaner bottle, cleaning bottle, cleaning spray, spray: SprayBottle SoapBottle
bottle: SprayBottle SoapBottle WineBottle Glassbottle
statue, sculpture, figurine, statuette: Statue Vase
tennis racket, racket, racquet, tennis bat: TennisRacket BaseballBat
box of tissue, tissue box, tissue: TissueBox
roll of toilet paper, toilet paper, toilet paper roll, toilet roll, empty roll, toilet tissue: ToiletPaper
tomato: Tomato
vase, jar, urn: Vase Statue
watch, wristwatch, wrist watch: Watch
watering can, water can: WateringCan
wine bottle, bottle of wine, wine: WineBottle Glassbottle
something to write with, writing tool, writing utensil, writing instrument, writing implement: Pen Pencil
timepiece, time keeping device, time telling device, device that tell time, something that tell time: Watch AlarmClock
fruit: Apple Tomato
vegetable, veggie: Lettuce Potato Tomato
root vegetable, starchy vegetable, tuber, spud: Potato
baked good: Bread
utensil, cutlery, silverware, eating utensil: Spoon Fork Spatula Knife ButterKnife Ladle
cutting tool, cutting utensil, blade: Knife ButterKnife
cooking utensil, kitchen utensil, kitchen tool: Spatula Ladle Spoon
cookware, cooking vessel, cooking container: Pot Pan
drinking vessel, drinking container, drink container, drinkware, beverage container: Cup Mug
container, vessel, bucket: Bowl Pot Cup Mug Pan Box Plate
electronic device, electronic, gadget, communication device, mobile device: CellPhone Laptop RemoteControl
sport equipment, sport gear, sporting good: BaseballBat TennisRacket BasketBall
cleaning tool, cleaning supply, cleaning product, cleaning item, cleaner: SprayBottle DishSponge Cloth SoapBottle
disinfectant, cleaning solution, cleaning liquid: SprayBottle SoapBottle
toiletry, bathroom supply, personal care product: SoapBar SoapBottle ToiletPaper
decoration, decorative item, ornament, decor: Statue Vase Candle
flower holder, flower container: Vase
light source that burn, wax item: Candle
jewelry, accessory: Watch
"""

_PLACES = """
arm chair, armchair, recliner, chair, seat: ArmChair Sofa
bathtub, bath tub, tub, bath: Bathtub
bed, mattress, place to sleep, where people sleep, sleeping area: Bed
cabinet, cupboard: Cabinet Drawer Dresser
bureau: Dresser Desk
cart, trolley: Cart
coffee maker, coffee machine, coffeemaker: CoffeeMachine
coffee table: CoffeeTable SideTable
counter, countertop, counter top, kitchen counter, bathroom counter, work surface, worktop: CounterTop DiningTable
desk, computer desk, writing desk, workspace, work station, workstation: Desk SideTable
dining table, kitchen table, dinner table: DiningTable SideTable
kitchen island, island: CounterTop DiningTable
drawer, desk drawer: Drawer
dresser, chest of drawer: Dresser Drawer
tv stand, television stand, entertainment center, tv table, tv console, tv unit: Dresser TVStand SideTable
fridge, refrigerator, refridgerator, freezer, icebox, cooling appliance, cold storage: Fridge
garbage can, garbage, trash can, trash, trash bin, waste bin, bin, recycling bin, rubbish bin, rubbish, wastebasket, \
waste basket, recycle bin, garbage bin, can, dustbin, disposal: GarbageCan
microwave, microwave oven, oven: Microwave
ottoman, foot rest, footrest, foot stool, footstool: Ottoman
safe, vault: Safe
under the sink, underneath the sink, below the sink, beneath the sink: Cabinet Drawer
shelf, shelving, bookshelf, book shelf, rack: Shelf SideTable
side table, end table, bedside table, night stand, nightstand, black table, small table, bedside: \
SideTable DiningTable CoffeeTable
stand: SideTable Dresser
table: DiningTable SideTable CoffeeTable Desk
sink, sink basin, wash basin, basin: Sink
sofa, couch, loveseat, settee: Sofa ArmChair
stove, burner, stove burner, stovetop, stove top, cooktop, range: StoveBurner
toilet, toilet tank, toilet lid, tank, flusher, commode: Toilet
toilet paper holder, toilet paper hanger, toilet roll holder, paper holder: ToiletPaperHanger
"""

_LAMPS = """
desk lamp, table lamp, small lamp, reading lamp: DeskLamp FloorLamp
floor lamp, tall lamp, standing lamp: FloorLamp DeskLamp
lamp, light, lamplight, lit lamp, light source, illumination: DeskLamp FloorLamp
"""

_USES = """
write writing draw drawing sketch note notes sign signature ink: Pen Pencil
erase eraser lead: Pencil
time alarm wake clock hour hours: AlarmClock Watch
wrist: Watch
sleep sleeping rest head comfort comfortable nap soft: Pillow
read reading pages page story stories literature study: Book Newspaper
news current events headlines: Newspaper
call calling text texting message communicate communication: CellPhone
drink drinking beverage sip coffee tea: Mug Cup
juice thirst thirsty: Cup Mug
soup cereal salad ramen: Bowl Pot
eat eating bite fork poke pasta: Fork Spoon
stir stirring scoop scooping: Spoon Ladle
cut cutting chop chopping sharp blade: Knife ButterKnife
spread spreading butter: ButterKnife Knife
serve serving broth stew: Ladle Spoon
flip flipping pancakes: Spatula
fry frying saute: Pan Spatula
boil boiling simmer: Pot Kettle Pan
wipe wiping dust: Cloth HandTowel
dry drying hands: HandTowel Cloth
scrub scrubbing absorb: DishSponge Cloth
lather hygiene bathing soapy suds: SoapBar SoapBottle
pump: SoapBottle
unclog clog clogged drain: Plunger
bathroom roll: ToiletPaper
nose sneeze blow: TissueBox
music song songs audio album: CD
pay paying payment purchase buy shopping bank money: CreditCard
unlock car locks: KeyChain
channel channels television tv remotely: RemoteControl
type typing portable internet computing: Laptop
wax burn flame scent aroma wick: Candle
flower flowers bouquet: Vase
art artwork decorative: Statue Vase
swing home hit hitting: BaseballBat TennisRacket
court serve: TennisRacket
bounce hoop dribble: BasketBall
plants watering garden: WateringCan
season seasoning flavor spicy: PepperShaker SaltShaker
salty sodium: SaltShaker
alcohol alcoholic: WineBottle
protein yolk omelet omelette breakfast: Egg
sandwich wheat grain carbohydrate carbs: Bread Lettuce
red juicy: Tomato Apple
crunchy orchard pie: Apple
green leafy leaves: Lettuce
starch starchy fries root: Potato
disinfect surface spray mist: SprayBottle
package packing: Box
"""

_PLACE_USES = """
cold cools preserve preserves fresh perishable chilled: Fridge
heats reheat reheating: Microwave
waste discard discarded rubbish throw throwing dispose: GarbageCan
sleep sleeping slept: Bed
sit sitting lounge relax seating: Sofa ArmChair
work working study studying homework: Desk
dine dining meal meals dinner eat eating: DiningTable
wash washing faucet tap running dishes: Sink
bathe bathing soak: Bathtub
flush flushing flushes: Toilet
clothes clothing garments: Dresser Drawer
lock locked valuables secure secured: Safe
feet foot: Ottoman
prepare preparing preparation prep: CounterTop DiningTable
display displaying: Shelf
brew brewing brews: CoffeeMachine
storage store storing: Cabinet Drawer Shelf
flame burner: StoveBurner
living: CoffeeTable Sofa
bedroom beside: SideTable Dresser
compartment slides pull sliding: Drawer
wheels: Cart
furniture: SideTable Dresser Desk DiningTable
"""

_CHANGES = {
    "clean": "clean cleaned wash washed rinse rinsed wet washing rinsing cleaning scrubbed scrub soaked newly-cleaned",
    "heat": "heat heated hot warm warmed cook cooked microwaved heating warming cooking baked boiled bake boil "
    "reheated roasted microwaving toasted",
    "cool": "cool cooled cold chill chilled cooling chilling refrigerated icy frozen freeze refrigerate",
}
_SLICED = {
    "slice", "slices", "sliced", "cut", "cutting", "piece", "pieces", "slicing", "diced", "chopped", "chop", "wedge",
    "sections", "section",
}  # fmt: skip
_TWO = {"two", "2", "both", "pair", "couple", "second", "another", "multiple"}
_PLACING = {"put", "place", "set", "move", "store", "putting", "placing", "bring", "leave", "transfer", "throw"}
_SOMEWHERE = ("CounterTop", "DiningTable", "SideTable", "Desk", "Dresser", "CoffeeTable")
"""Where things go that are to be put beside something, or nowhere in particular."""
MOVABLE = {"Bowl", "Box", "Cup", "Mug", "Pan", "Plate", "Pot"}
_FOOD = {"Apple", "Bread", "Egg", "Lettuce", "Potato", "Tomato"}
SLICEABLE = {"Apple", "Bread", "Lettuce", "Potato", "Tomato"}
_BESIDE = re.compile(
    r"(next to|beside|near|by|behind|across from|in front of|left of|right of|left side of|right side of|between|under"
    r"|underneath|below|above|closest to|nearest to|opposite|at the foot of|beneath|against)"
    r"( the| a| an| two)?( \w+)?( \w+)? ?$"
)
_FROM = re.compile(r"(from|off of|off|out of)( on| in| inside)?( the| a| an)?( \w+)?( \w+)? ?$")
_INTO = re.compile(
    r"\b(in|into|on|onto|to|inside|inside of|upon|at|atop|over to)( top of)?( the| a| an)?( \w+)?( \w+)? ?$"
)
_ONTO = re.compile(r"\b(into|onto|to)( the| a| an)?( \w+)? ?$")
_HOLDS = re.compile(r"\b(with|containing|holding|and|plus|has|of)\b")


@dataclasses.dataclass(frozen=True)
class Goal:
    """What is to be done; each tuple holds kinds in the order in which they are to be tried.

    Attributes:
        objects: what is to be fetched.
        places: where it goes; empty for a task by a lamp.
        carriers: the movable receptacle that it goes into first; empty without one.
        lamps: to be turned on while the object is held; empty for other tasks.
        change: "clean", "heat", "cool" or "".
        sliced: whether a slice is meant.
        count: how many objects.
    """

    objects: tuple[str, ...]
    places: tuple[str, ...] = ()
    carriers: tuple[str, ...] = ()
    lamps: tuple[str, ...] = ()
    change: str = ""
    sliced: bool = False
    count: int = 1

    @property
    def kinds(self) -> tuple[str, ...]:
        """Every kind that may matter."""
        return tuple(dict.fromkeys((*self.objects, *self.carriers, *self.places, *self.lamps)))


@dataclasses.dataclass(frozen=True)
class _Mention:
    start: int
    end: int
    kinds: tuple[str, ...]
    plural: bool


def _lexicon(table: str) -> dict[tuple[str, ...], tuple[str, ...]]:
    phrases = {}
    for line in table.strip().splitlines():
        names, _, kinds = line.partition(":")
        for name in names.split(","):
            phrases[tuple(name.split())] = tuple(kinds.split())
    return phrases


_LEXICONS = {"thing": _lexicon(_THINGS), "place": _lexicon(_PLACES), "lamp": _lexicon(_LAMPS)}
_USE_OF, _PLACE_USE_OF = table_of(_USES), table_of(_PLACE_USES)
_CHANGE_OF = {word: change for change, words in _CHANGES.items() for word in words.split()}
_IRREGULAR = {"knives": "knife", "shelves": "shelf", "loaves": "loaf", "leaves": "leaf", "glasses": "glass"}


def _singular(word: str) -> str:
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("xes", "shes", "ches", "oes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower().replace("'s", "").replace("-", " "))


def _mentions(words: list[str], kind: str) -> list[_Mention]:
    """Phrases of one lexicon, the longest first, in order."""
    lexicon, single = _LEXICONS[kind], [_singular(word) for word in words]
    found, i = [], 0
    while i < len(words):
        for length in range(min(5, len(words) - i), 0, -1):
            kinds = lexicon.get(tuple(single[i : i + length]))
            if kinds:
                found.append(_Mention(i, i + length, kinds, words[i : i + length] != single[i : i + length]))
                i += length
                break
        else:
            i += 1
    return found


def understand(instruction: str) -> Goal | None:
    """What an instruction asks for; None if it names no thing that can be carried."""
    words = _words(re.sub(r"(top|bottom|middle) (shelf|rack) (of|in) ", "", instruction.lower()))
    things, places, lamps = (_mentions(words, kind) for kind in ("thing", "place", "lamp"))
    # Where phrases of two lexicons overlap ("toilet paper", "coffee cup", "watering can"), the longer one is meant.
    things = [t for t in things if not any(_hides(other, t) for other in (*places, *lamps))]
    places = [p for p in places if not any(_hides(other, p) for other in (*things, *lamps))]

    def before(mention: _Mention) -> str:
        return " ".join(words[max(0, mention.start - 6) : mention.start]) + " "

    light = bool(lamps) and not (places and places[-1].start > lamps[-1].start and "place" in words)
    sliced = any(word in _SLICED for word in words)
    change = _change(words, things)
    objects = _objects(things, sliced, change)
    described, where_described = _described(words)
    if not objects and described:
        objects = [_Mention(0, 0, described, plural=False)]
    if not objects:
        return None
    if light:
        return Goal(objects[0].kinds, lamps=lamps[-1].kinds)
    aims = [p for p in places if not _FROM.search(before(p)) and not _BESIDE.search(before(p))]
    aims = _without_tools([p for p in aims if _INTO.search(before(p))] or aims, change)
    verb = max((i for i, word in enumerate(words) if word in _PLACING), default=0)
    aims = [aim for aim in aims if aim.start > verb] or aims[-1:]
    aims = [aim for aim in aims if _ONTO.search(before(aim))] or aims  # "the book on the bed to the desk"
    where = aims[0].kinds if aims else where_described or _SOMEWHERE
    if {"throw", "discard", "dispose"} & set(words):
        where = ("GarbageCan",)
    first = objects[0]
    several = first.plural or any(word in _TWO for word in words)
    carriers = [t for t in objects if t.kinds[0] in MOVABLE]
    carried = [t for t in objects if t not in carriers]
    if carriers and carried and not (several and not _HOLDS.search(" ".join(words))):
        return Goal(carried[0].kinds, where, carriers[0].kinds, change=change, sliced=sliced and _can_cut(carried[0]))
    if len(carriers) > 1 and re.search(r"\b(in|inside|into|with|containing)\b", " ".join(words)):
        return Goal(carriers[0].kinds, where, carriers[1].kinds, change=change)
    sliced = sliced and _can_cut(first)
    two = several and not change and not (sliced and not {"two", "2", "both"} & set(words) and not first.plural)
    return Goal(first.kinds, where, change=change, sliced=sliced, count=2 if two else 1)


def _described(words: list[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Kinds of the thing and of the place by what is said of their use, before and after the last "in", "on", "to"."""
    cuts = [i for i, word in enumerate(words) if word in ("in", "into", "on", "onto", "to", "inside")]
    cut = max((i for i in cuts if words[i - 1 : i] != ["used"] and words[i + 1 : i + 2] != ["be"]), default=len(words))
    return guess(words[:cut], _USE_OF), guess(words[cut:], _PLACE_USE_OF)


def _hides(other: _Mention, mention: _Mention) -> bool:
    overlap = other.start < mention.end and mention.start < other.end
    return overlap and (other.end - other.start > mention.end - mention.start)


def _can_cut(mention: _Mention) -> bool:
    return mention.kinds[0] in SLICEABLE


def _change(words: list[str], things: list[_Mention]) -> str:
    """The change asked for; a word within the name of a thing does not count."""
    inside = {i for thing in things for i in range(thing.start, thing.end)}
    changes = [_CHANGE_OF[word] for i, word in enumerate(words) if word in _CHANGE_OF and i not in inside]
    return changes[0] if changes else ""


def _objects(things: list[_Mention], sliced: bool, change: str) -> list[_Mention]:
    """Things asked for: a knife beside food is the tool that cuts it."""
    if any(_can_cut(thing) for thing in things):
        things = [t for t in things if t.kinds[0] not in ("Knife", "ButterKnife")]
    if sliced or change in ("heat", "cool"):
        food = [t for t in things if t.kinds[0] in _FOOD]
        rest = [t for t in things if t not in food]
        things = food + rest
    return things


def _without_tools(aims: list[_Mention], change: str) -> list[_Mention]:
    """Places without the one where the change is made, if another one is named."""
    tool = {"clean": "Sink", "heat": "Microwave", "cool": "Fridge"}.get(change)
    others = [aim for aim in aims if aim.kinds[0] != tool]
    return others if len(others) < len(aims) and others else aims
