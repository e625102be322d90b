"""Words of pages: pure functions of plain data, without Streamlit."""
