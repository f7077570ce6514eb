"""Checks what must fit together between declarations."""
