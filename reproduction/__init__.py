"""The paper's experiments, reproduced: ``python -m reproduction``.

A newcomer's way through: ``choices.yaml`` says what the paper leaves open; ``choices.py`` reads it
and ``problems.py`` turns it into scenarios.  ``closed_forms.py`` computes what needs no network;
``paper.py`` has work done once and fills in texts, ``measuring.py`` means, intervals and lines.
An experiment is a function that returns its tables and draws its figure: ``mean_estimation.py``
(section 5.1), ``classification.py`` (5.2), ``scalability.py`` (appendix E), ``theory.py``,
``tuning.py``, ``other_choices.py``, ``beyond.py`` and ``private.py``.  ``claims.py`` judges the
paper's sentences, ``reproduce.py`` runs it all and ``page.py`` writes it down.  What is said in
words is in ``captions.md``, ``claims.md`` and ``page.md``.
"""
