"""Fixtures for all tests of estimators."""

import os

import pytest


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch):
    """Tests write hundreds of small files that need not survive a power cut."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)
