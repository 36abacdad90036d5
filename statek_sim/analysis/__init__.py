"""What runs mean for usage: where bytes and tokens are, what the estimate does to decisions, which limits fit."""
