"""The paper's experiments, reproduced: ``python -m reproduction``.

A newcomer's way through: ``choices.yaml`` says what the paper leaves open;
``choices.py`` reads it and ``problems.py`` turns it into scenarios.  ``closed_forms.py`` computes
what needs no network.  The experiments are in ``mean_estimation.py`` (section 5.1),
``theorem.py``, ``theory.py``, ``classification.py`` (section 5.2), ``scalability.py``
(appendix E), ``tuning.py``, ``other_choices.py``, ``beyond.py`` and ``private.py``.  ``claims.py``
lists the paper's sentences, ``verdicts.py`` judges them and ``remarks.py`` says what else one
should know, ``reproduce.py`` runs it all and ``page.py`` writes it down.
"""
