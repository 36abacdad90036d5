"""A support desk run by STATEK agents: a durable ticket queue, a dispatcher, specialists, and limited refunds."""
