"""The benchmark: starts what is compared, loads it in turns, and reports ratios.

It must never report a rate of work that was not done: every answer and every stored row counts.
"""
