"""The desk that every test starts with: open, without tickets."""

import pytest
from support_desk.agents import create_billing, create_dispatcher
from support_desk.desk import Desk


@pytest.fixture
def desk(statek_app):
    """The stored desk, in a separate store for each test."""
    return Desk()


@pytest.fixture
def dispatcher(desk):
    """The agent that takes tickets; also creates the billing specialist."""
    create_billing()
    return create_dispatcher()
