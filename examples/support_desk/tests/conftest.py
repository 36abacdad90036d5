"""The desk as every test starts with it: open for business, no tickets yet."""

import pytest
from support_desk.agents import create_billing, create_dispatcher
from support_desk.desk import Desk


@pytest.fixture
def desk(statek_app):
    """The stored desk, in a store of this test's own."""
    return Desk()


@pytest.fixture
def dispatcher(desk):
    """The agent that takes tickets; the billing specialist is there too."""
    create_billing()
    return create_dispatcher()
