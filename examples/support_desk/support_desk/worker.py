"""The process that runs the desk: `python -m support_desk.worker FOLDER`."""

import sys

import dbzero as db0
import statek
from statek import start_statek

from support_desk.agents import create_billing, create_dispatcher
from support_desk.desk import Desk


def serve():
    """Process tickets as they arrive. The store must be open."""
    dispatcher = create_dispatcher()
    create_billing()
    start_statek(agents=[dispatcher], task_queue_size_funcs={dispatcher: Desk().waiting}, max_concurrency=10)


if __name__ == "__main__":
    db0.init(sys.argv[1], read_write=True)
    statek.init()
    statek.open_prefix("/support-desk/tickets", "rw")
    serve()
