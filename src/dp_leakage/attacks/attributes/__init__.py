"""Attribute inference beside imputation: which value has a record's attribute, and what does the model add?"""
