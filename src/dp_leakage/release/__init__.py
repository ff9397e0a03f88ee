"""The model that is given away: one training on all records, and a folder that says what it protects.

``python -m dp_leakage.release make STUDY CELL`` makes the folder, ``… verify FOLDER`` checks it without the data.
"""
