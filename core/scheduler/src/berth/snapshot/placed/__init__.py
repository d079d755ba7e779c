"""Counts of placed pods and volumes, kept up to date as pods come and go."""
