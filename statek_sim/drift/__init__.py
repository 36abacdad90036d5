"""What an upgrade of STATEK changes: two behaviour profiles side by side, scenario by scenario, with the reasons."""
