"""What numbers of runs can show, and what they cannot: intervals, paired tests, shares, how many would be enough."""
