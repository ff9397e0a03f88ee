"""Options of each command, without any other imports, so that showing and checking them is fast.

Modules have the names of their commands, and ``parser()`` is the only list of a command's options. Help, the variables
of make's targets (`dp_leakage.commands.by_make`) and the console script follow from it.
"""
