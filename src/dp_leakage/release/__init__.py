"""Release of a model: one training on all records, and a folder that documents its protection.

``dp-leakage release STUDY CELL`` makes the folder, ``dp-leakage verify FOLDER`` checks it without the data.
"""
