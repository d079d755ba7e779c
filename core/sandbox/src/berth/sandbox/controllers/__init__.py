"""The few controllers without which objects that others make would just lie there.

Source: pkg/controller/{deployment,garbagecollector,serviceaccount} (v1.36), much shortened.
"""
