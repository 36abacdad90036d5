"""A support desk run by STATEK agents: a durable queue of tickets, a dispatcher, specialists, refunds with limits."""
