"""Stand-in for ai2thor 2.1.0: its smallest image, and the download of its build, which takes a while.

Follows ai2thor/controller.py of the package: `start`, `download_binary`.
"""

import os
import sys
import time
import types

__version__ = os.environ.get("STAND_IN_THOR", "2.1.0")


class Controller:
    def __init__(self):
        self.base = os.path.join(os.path.expanduser("~"), ".ai2thor")

    def download_binary(self):
        """Unpack beside the place and rename, as there: a second one that does it meanwhile cannot rename."""
        build, unpacked = os.path.join(self.base, "releases/thor"), os.path.join(self.base, "tmp/thor")
        for folder in (os.path.dirname(build), os.path.dirname(unpacked)):
            os.makedirs(folder, exist_ok=True)
        if not os.path.isdir(build):
            time.sleep(0.2)
            os.mkdir(unpacked)
            with open(os.path.join(unpacked, "thor"), "w"):
                pass
            os.rename(unpacked, build)

    def start(self, player_screen_width=300, player_screen_height=300, x_display=None):
        if player_screen_height < 300 or player_screen_width < 300:
            raise Exception("Screen resolution must be >= 300x300")
        self.download_binary()


controller = sys.modules["ai2thor.controller"] = types.ModuleType("ai2thor.controller")
controller.Controller = Controller
