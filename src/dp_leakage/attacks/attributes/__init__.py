"""Attribute inference compared with imputation: the value of a record's attribute, and what the model adds to the
guess.
"""
