"""The mechanisms: noise that turns sensitive counts into publishable ones."""
