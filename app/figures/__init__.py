"""What is drawn: one builder per figure, from data alone, without streamlit. Pages and reports call the same."""
