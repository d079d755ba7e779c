"""The kinds that are served: how each is stored, defaulted, admitted and validated."""
