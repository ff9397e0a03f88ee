"""The model that is given away: one training on all records, and a folder that says what it protects.

``dp-leakage release STUDY CELL`` makes the folder, ``dp-leakage verify FOLDER`` checks it without the data.
"""
