"""The modules that a program may import: those that were imported when the component was built.

The component holds a picture of the interpreter after its start, and no library beside it. A module
that is not in this picture does not exist for a program.
"""

import importlib

NAMES = """
abc array ast base64 binascii bisect calendar cmath collections collections.abc colorsys contextlib
copy csv dataclasses datetime decimal difflib enum fnmatch fractions functools graphlib hashlib heapq
hmac html io itertools json keyword math numbers operator pprint random re secrets shlex statistics
string struct sys textwrap time timeit traceback types typing unicodedata urllib.parse uuid warnings
weakref zlib
""".split()

# Modules that those above import only when one of their functions is called.
LATER = """
_strptime encodings.ascii encodings.cp1252 encodings.hex_codec encodings.idna encodings.latin_1
encodings.punycode encodings.rot_13 encodings.utf_16 encodings.utf_32 encodings.utf_8_sig
""".split()

for name in NAMES + LATER:
    importlib.import_module(name)
