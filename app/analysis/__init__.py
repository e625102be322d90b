"""What pages and reports compute: without streamlit, each question once for all who ask the same (`cache`)."""
