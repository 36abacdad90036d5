"""The real `statek` package inside the process of a test, so that the test and its jobs share their objects.

What a process shares is put back after each test; what differs from run to run is put in order.
"""
