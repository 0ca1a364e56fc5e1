"""Letters for pictures: five dots wide, seven high. Capitals only; small letters become them."""

import numpy as np
from numpy.typing import NDArray

WIDE, HIGH = 5, 7

_DRAWN = (
    (
        "ABCDEFGHIJKLM",
        """
 ###  ####   ###  ####  ##### #####  ###  #   #  ###    ### #   # #     #   #
#   # #   # #   # #   # #     #     #   # #   #   #      #  #  #  #     ## ##
#   # #   # #     #   # #     #     #     #   #   #      #  # #   #     # # #
##### ####  #     #   # ####  ####  # ### #####   #      #  ##    #     # # #
#   # #   # #     #   # #     #     #   # #   #   #      #  # #   #     #   #
#   # #   # #   # #   # #     #     #   # #   #   #   #  #  #  #  #     #   #
#   # ####   ###  ####  ##### #      #### #   #  ###   ##   #   # ##### #   #""",
    ),
    (
        "NOPQRSTUVWXYZ",
        """
#   #  ###  ####   ###  ####   #### ##### #   # #   # #   # #   # #   # #####
##  # #   # #   # #   # #   # #       #   #   # #   # #   # #   # #   #     #
# # # #   # #   # #   # #   # #       #   #   # #   # #   #  # #   # #     #
#  ## #   # ####  #   # ####   ###    #   #   # #   # # # #   #     #     #
#   # #   # #     # # # # #       #   #   #   # #   # # # #  # #    #    #
#   # #   # #     #  #  #  #      #   #   #   #  # #  ## ## #   #   #   #
#   #  ###  #      ## # #   # ####    #    ###    #   #   # #   #   #   #####""",
    ),
    (
        "0123456789",
        """
 ###    #    ###  #####    #  #####  ###  #####  ###   ###
#   #  ##   #   #     #   ##  #     #   #     # #   # #   #
#  ##   #       #    #   # #  ####  #        #  #   # #   #
# # #   #      #    ##  #  #      # ####    #    ###   ####
##  #   #     #       # #####     # #   #  #    #   #     #
#   #   #    #    #   #    #  #   # #   #  #    #   # #   #
 ###   ###  #####  ###     #   ###   ###   #     ###   ###""",
    ),
    (
        ".,:;-+%/()=<>",
        """
                                    ##  #     #    #   #             #   #
             ##    ##           #   ##  #     #   #     #           #     #
             ##    ##           #      #     #   #       #  #####  #       #
                        ##### #####   #     #    #       #        #         #
       ##    ##    ##           #    #     #     #       #  #####  #       #
 ##    ##    ##    ##           #   #  ## #       #     #           #     #
 ##    #           #                #  ## #        #   #             #   #""",
    ),
)  # fmt: skip


def _read() -> dict[str, NDArray[np.bool_]]:
    found = {" ": np.zeros((HIGH, WIDE), dtype=bool)}
    for letters, drawn in _DRAWN:
        lines = [line.ljust(len(letters) * (WIDE + 1)) for line in drawn.split("\n")[1:]]
        for k, letter in enumerate(letters):
            dots = [[c == "#" for c in line[k * (WIDE + 1) : k * (WIDE + 1) + WIDE]] for line in lines]
            found[letter] = np.array(dots, dtype=bool)
    return found


_LETTERS = _read()


def written(text: str) -> NDArray[np.bool_]:
    """A line of text as dots; what has no letter is left blank."""
    glyphs = [np.pad(_LETTERS.get(c, _LETTERS[" "]), ((0, 0), (0, 1))) for c in text.upper()]
    return np.concatenate(glyphs, axis=1) if glyphs else np.zeros((HIGH, 0), dtype=bool)
