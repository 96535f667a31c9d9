"""Kinds of things in EB-ALFRED, by name as its texts have them."""

DOORS = ("Fridge", "Microwave", "Cabinet", "Drawer", "Safe")
BASINS = {"Sink": "SinkBasin", "Bathtub": "BathtubBasin"}
"""Kind that actions name -> kind that holds things there."""
RECEPTACLES = {
    "ArmChair", "BathtubBasin", "Bed", "Bowl", "Box", "Cabinet", "Cart", "CoffeeMachine", "CoffeeTable",
    "CounterTop", "Cup", "Desk", "DiningTable", "Drawer", "Dresser", "Fridge", "GarbageCan", "HandTowelHolder",
    "LaundryHamper", "Microwave", "Mug", "Ottoman", "Pan", "Plate", "Pot", "Safe", "Shelf", "SideTable",
    "SinkBasin", "Sofa", "StoveBurner", "TVStand", "Toaster", "Toilet", "ToiletPaperHanger", "TowelHolder",
}  # fmt: skip
MOVABLE = {"Bowl", "Box", "Cup", "Mug", "Pan", "Plate", "Pot"}
"""Receptacles that can be carried."""
FOOD = {"Apple", "Bread", "Egg", "Lettuce", "Potato", "Tomato"}
SLICEABLE = {"Apple", "Bread", "Lettuce", "Potato", "Tomato"}
TOOLS = {"clean": "Sink", "heat": "Microwave", "cool": "Fridge"}
"""Change -> kind, as actions name it, of what makes it."""


def actions_of_change(change: str, tool: str) -> list[str]:
    """What changes a thing in the tool of this name, from when it was put there until it is taken again."""
    if change == "clean":
        return ["turn on the Faucet", "turn off the Faucet"]
    heat = ["turn on the Microwave", "turn off the Microwave"] if change == "heat" else []
    return [f"close the {tool}", *heat, f"open the {tool}"]
