"""The privacy that a mechanism gives: exact profiles, calibration and the paper's accountant."""
