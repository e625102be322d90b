"""Figures and tables: pure functions from small frames, without Streamlit."""
