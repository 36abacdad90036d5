"""Every crash, every order, every limit: what a scenario does when its run departs from the undisturbed one."""
