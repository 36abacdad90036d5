"""`report.html`: one self-contained page about a run. Data as JSON, a template, and the code that fills it."""
