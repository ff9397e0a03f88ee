"""The options of each command, and nothing else: to show or check them imports no library.

A module here is called like the command's, and its ``parser()`` is the only list of what the command takes. Help, the
variables of make's targets (`dp_leakage.commands.by_make`) and the console script follow from it.
"""
