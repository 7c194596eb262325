"""Pages: one self-contained HTML file of one or several results, sweeps or comparisons."""
